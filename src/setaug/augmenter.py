"""SETAUG as data augmentation: from examples to prompt-completion pairs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Self

import orjson

from setaug import registry
from setaug.codec import SetCodec
from setaug.examples import Columns, Data, Example, LabelSets, Pair, as_examples
from setaug.orders.arrays import SetBatch
from setaug.orders.edges import EdgeTable, Number, Thresholds
from setaug.orders.graph import OrderGraph
from setaug.orders.orderings import Ordering, make_ordering
from setaug.orders.statistics import LabelStatistics
from setaug.vocabulary import warn_of_joined

_BATCH = 1024
"""Examples per batch."""


@dataclass(kw_only=True, eq=False)
class SetAugmenter:
    """Converts examples to training pairs for models that write sets.

    The pairs of an example have its labels in the given order, then in `n_orders` other orders. Parameters follow
    scikit-learn's contract: they are stored unchanged, and `fit` learns only ``statistics_``.

    Parameters
    ----------
    n_orders
        The number of orders to add per example.
    ordering
        How to choose them, by name; see `registry.ORDERINGS`. By default, specific labels come first (TSAMPLE).
    sampler
        How to sample from the order graph, by name; see `registry.SAMPLERS`. By default, uniformly.
    distinct
        Whether the orders of an example must be distinct, as long as unused ones remain.
    min_pmi, min_ratio
        When two labels have a fixed order; see `Thresholds`.
    with_size
        Whether the size of the set comes before the labels (CARD).
    separator
        The text between two labels, for forms with a separator.
    template
        The template of the prompt; ``{text}`` is replaced by the text.
    random_state
        The seed. The orders of an example depend only on it and on the example's index.
    written_as
        The text format of a set, by name; see `registry.FORMS`. By default, labels with a separator.

    Examples
    --------
    >>> examples = [
    ...     Example("We beat them 3:1.", ["event", "match", "volleyball"]),
    ...     *[Example("They lost.", ["event", "match"])] * 4,
    ...     *[Example("The fair opens.", ["event"])] * 20,
    ...     *[Example("She sings.", ["person"])] * 50,
    ... ]
    >>> augmenter = SetAugmenter(n_orders=1).fit(examples)
    >>> for pair in augmenter.augment(examples[:1]):
    ...     print(pair.completion)
    3 | event | match | volleyball
    3 | volleyball | match | event
    >>> augmenter.graph({"event", "match"}).n_orders
    1

    """

    n_orders: int = registry.DEFAULT_N_ORDERS
    ordering: str = registry.DEFAULT_ORDERING
    sampler: str = registry.DEFAULT_SAMPLER
    distinct: bool = False
    min_pmi: Number = registry.DEFAULT_MIN_PMI
    min_ratio: Number = registry.DEFAULT_MIN_RATIO
    with_size: bool = True
    separator: str = registry.DEFAULT_SEPARATOR
    template: str = "{text}"
    random_state: int = 0
    written_as: str = registry.DEFAULT_FORM

    @property
    def codec(self) -> SetCodec:
        """The codec that writes and reads completions."""
        return SetCodec(separator=self.separator, with_size=self.with_size, written_as=self.written_as)

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds for a fixed order of two labels."""
        return Thresholds(min_pmi=self.min_pmi, min_ratio=self.min_ratio)

    @property
    def around_text(self) -> tuple[str, str]:
        """What the template puts before and after the text."""
        before, _, after = self.template.partition("{text}")
        return before, after

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's estimators do."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as scikit-learn's estimators do."""
        for name in params:
            registry.check_choice("parameter", name, self.get_params())
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def check(self) -> Self:
        """Raise if a parameter is invalid."""
        for name in ("n_orders", "random_state"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, got {value!r}.")
            if not 0 <= value < 1 << 63:
                raise ValueError(f"{name} must be from 0 to 2**63 - 1, got {value}.")
        registry.check_choice("ordering", self.ordering, registry.ORDERINGS)
        registry.check_choice("sampler", self.sampler, registry.SAMPLERS)
        if self.template.count("{text}") != 1:
            raise ValueError(f"template must contain {{text}} exactly once, got {self.template!r}.")
        _ = self.codec, self.thresholds
        return self

    def fit(
        self, data: Data | Iterable[str], labels: LabelSets | None = None, *, columns: Columns | None = None
    ) -> Self:
        """Count the labels of the training data, into ``statistics_``; see `augment` for the parameters."""
        self.check()
        self.statistics_ = LabelStatistics().update(
            example.labels for example in as_examples(data, columns, labels=labels)
        )
        warn_of_joined(self.statistics_.labels)
        return self

    def augment(
        self,
        data: Data | Iterable[str],
        labels: LabelSets | None = None,
        *,
        carry: Sequence[str] = (),
        columns: Columns | None = None,
    ) -> Iterator[Pair]:
        """Yield the pairs of each example while reading the examples.

        Parameters
        ----------
        data, labels
            Examples, rows (a Hugging Face dataset) or a table (a data frame); or texts, and their label sets or
            indicator matrix. They may differ from those of `fit`; unknown labels have no edges.
        carry
            Fields of a row to copy to its pairs.
        columns
            The names of the text and label columns of rows, and of labels that are numbers.

        """
        self.check()
        ordering = self.make_ordering(self.statistics_.labels, self.statistics_.edges(self.thresholds))
        examples = as_examples(data, columns, labels=labels)
        first_index = 0
        while batch := list(islice(examples, _BATCH)):
            yield from self._augment_batch(batch, ordering, first_index, carry)
            first_index += len(batch)

    def make_ordering(self, labels: list[str], edges: EdgeTable, *, is_plain: bool = False) -> Ordering:
        """Return the ordering that the parameters name."""
        return make_ordering(
            self.ordering,
            labels=labels,
            edges=edges,
            sampler=self.sampler,
            distinct=self.distinct,
            is_plain=is_plain,
        )

    def _augment_batch(
        self, examples: list[Example], ordering: Ordering, first_index: int, carry: Sequence[str]
    ) -> Iterator[Pair]:
        ids = self.statistics_.ids
        batch = SetBatch.of([ids.get(label, -1) for label in example.labels] for example in examples)
        orders = ordering.orders(batch, self.n_orders, seed=self.random_state, first_index=first_index)
        positions = orders.positions.tolist()
        before, after = self.around_text
        codec = self.codec
        for example, start in zip(examples, batch.starts.tolist(), strict=False):
            prompt = before + example.text + after
            fields = {name: example.fields.get(name) for name in carry}
            labels = example.labels
            yield Pair(prompt, codec.encode(labels), fields)
            for row in positions:
                order = [labels[at] for at in row[start : start + len(labels)]]
                yield Pair(prompt, codec.encode(order), fields)

    def graph(self, labels: Iterable[str]) -> OrderGraph:
        """Return the order graph of one set (Algorithm 1)."""
        return OrderGraph.of_set(labels, self.statistics_, self.thresholds)

    def __getattr__(self, name: str) -> Any:
        if name == "statistics_":
            raise AttributeError("this SetAugmenter is not fitted yet; call fit(examples) first.")
        raise AttributeError(f"'SetAugmenter' object has no attribute {name!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class PairFormat:
    """The shape of a pair as a JSON object.

    Examples
    --------
    >>> PairFormat.named("columns", ("source", "target")).row(Pair("a", "1 | b"))
    {'source': 'a', 'target': '1 | b'}

    """

    prompt: str = "prompt"
    completion: str = "completion"
    is_chat: bool = False
    """Whether prompt and completion become messages of a user and an assistant."""
    is_one_list: bool = False
    """Whether the messages are in one list, ``messages``, instead of one for the prompt and one for the completion."""
    system: str | None = None
    """The text of a system message before the others, if any."""

    @classmethod
    def named(cls, name: str, columns: Sequence[str] | None = None, *, system: str | None = None) -> "PairFormat":
        """Return a format of `registry.PAIR_FORMATS`; only ``columns`` takes names, only chats a system message."""
        registry.check_choice("format", name, registry.PAIR_FORMATS)
        if (columns is not None) != (name == "columns"):
            raise ValueError(
                'the format "columns" requires two column names; other formats do not accept column names.'
            )
        is_chat = name in ("chat", "chat-prompt-completion")
        if system is not None and not is_chat:
            raise ValueError(f"only chat formats have a system message; got the format {name!r}.")
        if columns is None:
            return cls(is_chat=is_chat, is_one_list=name == "chat", system=system)
        prompt, completion = columns
        if prompt == completion:
            raise ValueError(f"the two columns must differ, got {prompt!r} twice.")
        return cls(prompt=prompt, completion=completion)

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of a written row."""
        return ("messages",) if self.is_chat and self.is_one_list else (self.prompt, self.completion)

    def check_carried(self, carry: Sequence[str]) -> "PairFormat":
        """Raise if a field of a row has the name of a field of a pair."""
        for name in carry:
            if name in self.names:
                raise ValueError(f'the field "{name}" cannot be carried: pairs have a field with this name.')
        return self

    def prompt_messages(self, prompt: str) -> list[dict[str, str]]:
        """Return the messages of a prompt: the system's, if any, and the user's."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, {"role": "user", "content": prompt}]

    def row(self, pair: Pair) -> dict[str, Any]:
        """Return the JSON object of a pair."""
        row: dict[str, Any] = {self.prompt: pair.prompt, self.completion: pair.completion}
        if self.is_chat:
            question = self.prompt_messages(pair.prompt)
            answer = [{"role": "assistant", "content": pair.completion}]
            if self.is_one_list:
                row = {"messages": question + answer}
            else:
                row = {self.prompt: question, self.completion: answer}
        return {**row, **pair.fields}

    def around(self) -> tuple[bytes, bytes, bytes]:
        """Return the bytes of a written row before the prompt, between prompt and completion, and after."""
        mark = "-"
        while any(mark in text for text in (self.prompt, self.completion, self.system or "")):
            mark += "-"
        row = orjson.dumps(self.row(Pair(f"{mark}P", f"{mark}C"))).decode()
        before, between, behind = re.split(f"{mark}[PC]", row)
        return before.encode(), between.encode(), behind.removesuffix("}").encode()
