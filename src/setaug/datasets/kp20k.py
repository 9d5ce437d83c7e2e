"""KP20k (Meng et al. 2017): titles and abstracts of papers with their authors' keyphrases.

Two formats are read. One2Set's (Ye et al. 2021) has tokenized, lower-case texts ``title . <eos> abstract`` in one file
and keyphrases separated by ``;`` in another. The other format is JSON lines with "title", "abstract" and "keyword" or
"keywords". A text is ``title . abstract`` in both.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from io import BufferedReader
from itertools import zip_longest
from typing import Any, cast

from setaug.datasets.entry import (
    Dataset,
    DatasetEntry,
    DatasetStatistics,
    Filter,
    Hub,
    Kind,
    make_example,
)
from setaug.datasets.files import Distribution, Files, decode_line, parse_lines
from setaug.errors import DataError, FileError
from setaug.examples import Example, json_lines, parse_json_row, shown
from setaug.storage import open_input

_SPLITS = ("train", "valid", "test")


def _read(files: Files) -> Dataset:
    """Read the splits, in either format."""
    if files.names[0].endswith("_src.txt"):
        return _dataset([list(_read_texts(files, split)) for split in _SPLITS])
    return _dataset([list(_read_json(files, *each)) for each in zip(files.names, _SPLITS, strict=True)])


def _dataset(splits: Sequence[list[Example]]) -> Dataset:
    train, dev, test = splits
    return Dataset(name="kp20k", train=train, dev=dev, test=test, labels=None)


def _read_texts(files: Files, split: str) -> Iterator[Example]:
    source, target = f"{split}_src.txt", f"{split}_trg.txt"
    with open_input(files.folder / source) as raw_texts, open_input(files.folder / target) as raw_phrases:
        # A raw file reads lines byte by byte.
        texts, phrases = (BufferedReader(cast(Any, raw), 1 << 20) for raw in (raw_texts, raw_phrases))
        for number, (text, listed) in enumerate(zip_longest(texts, phrases), 1):
            if text is None or listed is None:
                shorter = source if text is None else target
                raise FileError(f"{source} and {target} do not match: {shorter} ends before line {number}.")
            title, _, abstract = decode_line(text, source, number).partition("<eos>")
            labels = _phrases(decode_line(listed, target, number))
            yield make_example(make_text(title, abstract), labels, f"{split}-{number}")


def _read_json(files: Files, name: str, split: str) -> Iterator[Example]:
    with open_input(files.folder / name) as stream:
        lines = json_lines(stream)
        try:
            yield from parse_lines(lines, lambda at, line: _example(parse_json_row(line), f"{split}-{at}"), name)
        finally:
            cast(Any, lines).close()  # before its stream


def _convert(splits: Sequence[Any], repository: str) -> Dataset:
    def read(split: Any, name: str) -> list[Example]:
        rows = parse_lines(
            enumerate(split, 1), lambda number, row: _example(row, f"{name}-{number}"), f"{name} of {repository}"
        )
        return list(rows)

    return _dataset([read(split, name) for split, name in zip(splits, _SPLITS, strict=True)])


def _example(row: Mapping[str, Any], key: str) -> Example:
    keywords = row.get("keyword", row.get("keywords"))
    listed = keywords.split(";") if isinstance(keywords, str) else keywords
    text = make_text(_string(row, "title"), _string(row, "abstract"))
    if not isinstance(listed, list) or not all(isinstance(keyword, str) for keyword in listed):
        raise DataError(
            f'"keyword" or "keywords" must be a list of strings, or a string separated by ;, got {shown(keywords)}.'
        )
    return make_example(text, _phrases(listed), key)


def make_text(title: str, abstract: str) -> str:
    """Join title and abstract.

    Examples
    --------
    >>> make_text("sorting in parallel . ", " we sort .")
    'sorting in parallel . we sort .'

    """
    return " . ".join(filter(None, (" ".join(title.split()).removesuffix(".").rstrip(), " ".join(abstract.split()))))


def _phrases(listed: str | list[str]) -> list[str]:
    """Return the distinct phrases in order, without the marker ``<peos>``, which ends the present phrases."""
    phrases = listed.split(";") if isinstance(listed, str) else listed
    plain = (" ".join(phrase.split()) for phrase in phrases)
    return list(dict.fromkeys(phrase for phrase in plain if phrase and phrase != "<peos>"))


def _string(row: Mapping[str, Any], name: str) -> str:
    text = row.get(name)
    if not isinstance(text, str):
        raise DataError(f'"{name}" must be a string, got {shown(text)}.')
    return text


def _keep_phrases(examples: list[Example], *, are_present: bool) -> list[Example]:
    """Keep the keyphrases that are, or are not, in the text; stems decide, as in scoring."""
    from setaug.metrics.keyphrases import find_present

    found = find_present([example.labels for example in examples], [example.text for example in examples])
    return [
        make_example(
            one.text,
            [label for label, is_present in zip(one.labels, flags, strict=True) if is_present == are_present],
            str(one.id),
        )
        for one, flags in zip(examples, found, strict=True)
    ]


KEYPHRASES = Kind(
    name="keyphrases",
    vocabulary="open",
    keyphrases="one2set",
    filters={
        "present": Filter("keep only keyphrases that occur in the text", partial(_keep_phrases, are_present=True)),
        "absent": Filter(
            "keep only keyphrases that do not occur in the text", partial(_keep_phrases, are_present=False)
        ),
    },
)
ENTRY = DatasetEntry(
    name="kp20k",
    help="titles and abstracts of papers with their authors' keyphrases",
    distribution=Distribution(
        title="KP20k",
        folder="kp20k",
        layouts=[
            tuple(f"{split}_{side}.txt" for split in _SPLITS for side in ("src", "trg")),
            ("kp20k_training.json", "kp20k_validation.json", "kp20k_testing.json"),
            ("train.jsonl", "valid.jsonl", "test.jsonl"),
            ("train.json", "valid.json", "test.json"),
        ],
        expected="train_src.txt, train_trg.txt and the same of valid and test, or kp20k_training.json, "
        "kp20k_validation.json and kp20k_testing.json, or train.json, valid.json and test.json",
        origin="memray/seq2seq-keyphrase (JSON) and jiacheng-ye/kg_one2set (the others) on GitHub",
    ),
    read=_read,
    kind=KEYPHRASES,
    hub=Hub(
        repository="memray/kp20k",
        arguments={"data_files": {"train": "train.json", "validation": "valid.json", "test": "test.json"}},
        convert=_convert,
    ),
    paper_variant="kp20k[absent,min3]",
    paper=DatasetStatistics(
        mean_labels=3.87, min_labels=3, max_labels=79, n_labels=274_000, n_train=156_000, n_test=2000, n_dev=2000
    ),
)
