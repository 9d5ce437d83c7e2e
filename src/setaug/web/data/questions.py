"""Queries about a dataset, with results as JSON. They run in a process that keeps its datasets in memory."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from sys import getsizeof
from types import MappingProxyType
from typing import Any, BinaryIO

import orjson

from setaug.analysis.inspection import inspect_file
from setaug.augmenter import PairFormat, SetAugmenter
from setaug.engines import augment_files
from setaug.errors import DataError
from setaug.examples import Columns, Example, read_stream
from setaug.orders.edges import Thresholds
from setaug.orders.graph import OrderGraph
from setaug.orders.statistics import LabelStatistics
from setaug.reporting.graph_pictures import to_svg
from setaug.vocabulary import LabelIndex, joined_label
from setaug.web.data.processes import stop_if_asked
from setaug.web.limits import Limits, Refusal

_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})
_EXAMPLE, _LABEL, _PAIR = 160, 200, 24
"""Memory in bytes of an example, a distinct label and a label pair, in addition to their characters."""
_MOST_COMMAS = 8
"""Maximum number of commas in a typed label."""
_INSPECTIONS = 8
"""Cached results per dataset."""


@dataclass(frozen=True)
class Source:
    """A file of examples, and how to read it."""

    path: Path
    name: str
    """The client's name for it."""
    kind: str
    columns: Columns


class Contents:
    """The contents of a file."""

    def __init__(self, examples: list[Example]) -> None:
        self.examples = examples
        self.statistics = LabelStatistics().update(example.labels for example in examples)
        self.frequent_labels = self.statistics.most_common()

    @cached_property
    def index(self) -> LabelIndex:
        """The labels, for matching typed text."""
        return LabelIndex(label for label, _ in self.frequent_labels)


class TooLarge(Exception):  # noqa: N818 - it is no error
    """The dataset is too large for this process."""


_contents: dict[Source, Contents] = {}
_inspections: dict[Path, OrderedDict[tuple[float, float, bool], bytes]] = {}
"""The datasets and results that this process has cached."""


def forget_removed() -> None:
    """Drop cached files that no longer exist."""
    for source in [one for one in _contents if not one.path.exists()]:
        del _contents[source]
    for path in [one for one in _inspections if not one.exists()]:
        del _inspections[path]


def read(source: Source, limits: Limits | None, most: int | None = None) -> dict[str, Any]:
    """Read a file, and return how large it is; raise a `DataError`, a `Refusal` or `TooLarge` if it cannot be used.

    Parameters
    ----------
    most
        The memory in bytes above which it is `TooLarge`.

    """
    with source.path.open("rb") as stream:
        examples, n_memory = read_bounded(stream, source.name, source.kind, source.columns, limits, most)
    found = _contents[source] = Contents(examples)
    joined = joined_label(label for label, _ in found.frequent_labels)
    return {"n_memory": n_memory, "n_examples": len(examples), "joined": joined}


def _contents_of(source: Source) -> Contents:
    """Return the contents of a file; it is read again if the process was restarted."""
    if source not in _contents:
        read(source, None)
    return _contents[source]


def read_bounded(
    stream: BinaryIO, name: str, kind: str, columns: Columns, limits: Limits | None, most: int | None = None
) -> tuple[list[Example], int]:
    """Return examples, and about how much memory they and their counts take; raise a `Refusal` if it is too much.

    Each label is in memory once, and what else a row holds is not kept.
    """
    found: list[Example] = []
    known: dict[str, str] = {}
    n_bytes = n_pairs = 0
    for _, example in read_stream(stream, name, kind, columns, None):
        n_bytes += getsizeof(example.text) + sum(_LABEL + getsizeof(one) for one in example.labels if one not in known)
        n_bytes += _EXAMPLE + 8 * len(example.labels)
        n_pairs += len(example.labels) * (len(example.labels) - 1) // 2
        if limits is not None:
            _check(len(example.labels), limits.labels_per_set, f"labels in set {len(found) + 1}", name)
            _check(n_pairs, limits.label_pairs, "label pairs over all sets", name)
            _check(n_bytes + _PAIR * n_pairs, limits.held_memory // 2, "bytes of memory", name)
        if most is not None and n_bytes + _PAIR * n_pairs > most:
            raise TooLarge
        if not len(found) % 1000:
            stop_if_asked()
        labels = tuple(known.setdefault(label, label) for label in example.labels)
        found.append(Example(example.text, labels, fields=_NO_FIELDS))
    if not found:
        raise DataError("contains no examples.", source=name)
    return found, n_bytes + _PAIR * n_pairs


def _check(n: int, most: int, what: str, name: str) -> None:
    if n > most:
        raise Refusal(413, f"{name}: too many {what}; the limit is {most:,}. Use the command line for more.")


def statistics(source: Source, thresholds: Thresholds, with_diagnosis: bool) -> bytes:
    """Return the output of ``setaug inspect --json``; the last few results are cached."""
    key = (float(thresholds.min_pmi), float(thresholds.min_ratio), with_diagnosis)
    kept = _inspections.setdefault(source.path, OrderedDict())
    if key not in kept:
        found = inspect_file(
            source.path,
            thresholds=thresholds,
            columns=source.columns,
            kind=source.kind,
            with_diagnosis=with_diagnosis,
            progress=stop_if_asked,
        )
        advice = found.diagnosis and found.diagnosis.advice
        command = advice.command(source.name, columns=source.columns) if advice else None
        kept[key] = _json(found.to_dict() | {"command": command})
        while len(kept) > _INSPECTIONS:
            kept.popitem(last=False)
    return kept[key]


def labels(source: Source, search: str, limit: int) -> bytes:
    """Find labels: an exact match first, then the most frequent."""
    wanted = search.casefold()
    hits = [(label, n) for label, n in _contents_of(source).frequent_labels if wanted in label.casefold()]
    hits.sort(key=lambda pair: pair[0].casefold() != wanted)
    return _json({"n": len(hits), "labels": [{"label": label, "count": n} for label, n in hits[:limit]]})


def typed(source: Source, text: str) -> bytes:
    """Return the labels of a comma-separated text, and the number of sets that contain each."""
    contents = _contents_of(source)
    found = split_labels(text, contents.index)
    return _json({"labels": [{"label": label, "count": contents.statistics.count(label)} for label in found]})


def split_labels(text: str, known: LabelIndex) -> list[str]:
    """Split a text at commas, but not within a known label; the longest one is taken.

    Examples
    --------
    >>> split_labels("smith, john, Person, zebra,", LabelIndex(["Smith, John", "Person", "John"]))
    ['Smith, John', 'Person', 'zebra']

    """
    parts, found = text.split(","), []
    while parts:
        lengths = range(min(len(parts), _MOST_COMMAS + 1), 0, -1)
        labels = ((n, known.find(",".join(parts[:n]).strip())) for n in lengths)
        n, label = next(((n, label) for n, label in labels if label is not None), (1, parts[0].strip()))
        found.append(label)
        del parts[:n]
    return list(dict.fromkeys(label for label in found if label))


def graph(source: Source, thresholds: Thresholds, around: str | None, top: int) -> bytes:
    """Return the strongest edges of the label graph, or the neighbourhood of a label, also as an SVG image."""
    statistics = _contents_of(source).statistics
    if around is None:
        return _json(_drawn(OrderGraph.of_space(statistics, thresholds, top=top)))
    if not statistics.count(around):
        raise Refusal(404, f"no set contains the label {around!r}.")
    return _json(_drawn(OrderGraph.around(around, statistics, thresholds, top=top)))


def examples(source: Source, label: str | None, offset: int, limit: int) -> bytes:
    """Return examples, all of them or those with a label, paginated."""
    found = _contents_of(source).examples
    chosen = [at for at, one in enumerate(found) if label is None or label in one.labels]
    page = [(at, found[at]) for at in chosen[offset : offset + limit]]
    rows = [{"index": at, "text": one.text[:2000], "labels": one.labels} for at, one in page]
    return _json({"n": len(chosen), "examples": rows})


def orders(
    source: Source, labels: Sequence[str], thresholds: Thresholds, writer: SetAugmenter, n: int, seed: int
) -> bytes:
    """Return the order graph of a set, the exact number of its orders, and some of them, also as training text."""
    graph = OrderGraph.of_set(labels, _contents_of(source).statistics, thresholds)
    n_drawn = n if graph.n_orders is None else min(n, graph.n_orders)
    drawn = graph.draw(n_drawn, seed=seed, distinct=True)
    return _json(
        {
            **_drawn(graph),
            "n_orders": None if graph.n_orders is None else str(graph.n_orders),
            "log2_orders": graph.log2_orders,
            "orders": drawn,
            "completions": [writer.codec.encode(order) for order in drawn],
        }
    )


def augment(source: Source, path: Path, augmenter: SetAugmenter, pair_format: PairFormat, most: int) -> None:
    """Write pairs; stop if they exceed the size limit or the client has disconnected."""
    path.parent.mkdir()
    augment_files(
        source.path,
        path,
        augmenter,
        columns=source.columns,
        kind=source.kind,
        pair_format=pair_format,
        progress=_bounded(path.parent, most),
    )


def _bounded(folder: Path, most: int) -> Callable[..., None]:
    def check(*_: object) -> None:
        stop_if_asked()
        if folder_size(folder) > most:
            raise Refusal(413, f"the pairs exceed {most:,} bytes; use fewer orders, or setaug augment.")

    return check


def folder_size(folder: Path) -> int:
    """Return the total size of the files in a folder and its subfolders."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def _drawn(graph: OrderGraph) -> dict[str, Any]:
    return {"labels": graph.labels, "edges": [asdict(edge) for edge in graph.edges], "svg": to_svg(graph)}


def _json(content: Any) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
