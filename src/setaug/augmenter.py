"""SETAUG as data augmentation: examples in, prompt-completion pairs out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

import orjson

from setaug.codec import SetCodec
from setaug.examples import Columns, Data, Example, Pair, as_examples
from setaug.orders.edges import EdgeTable, Number, Thresholds
from setaug.orders.graph import OrderGraph
from setaug.orders.orderings import ORDERINGS, SAMPLERS, Ordering, make_ordering
from setaug.orders.statistics import LabelStatistics, SetBatch

_BATCH = 1024
"""So many examples are ordered at once."""


@dataclass(kw_only=True, eq=False)
class SetAugmenter:
    """Turn examples into pairs that teach a model to write sets.

    Per example it gives the labels in the order given, then in `n_orders` further orders.

    Parameters
    ----------
    n_orders
        How many orders to add per example.
    ordering
        How to choose them: ``topological`` (specific labels first: TSAMPLE), ``reversed``, ``random``, ``frequency``
        (frequent labels first) or ``given``. All give the same number of pairs.
    sampler
        How to draw topological orders: ``uniform`` (each with the same chance) or ``quick`` (as a random topological
        sort does, which is not uniform).
    distinct
        Whether the orders added to an example must differ as long as there are different ones.
    min_pmi, min_ratio
        When two labels have a fixed order; see `Thresholds`.
    size
        Whether the set's size stands in front of the labels (CARD).
    separator
        What stands between two labels.
    template
        The prompt; ``{text}`` stands for the text.
    random_state
        The seed. An example's orders depend on it, on the example's index and on nothing else.

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

    n_orders: int = 2
    ordering: str = "topological"
    sampler: str = "uniform"
    distinct: bool = False
    min_pmi: Number = 1.0
    min_ratio: Number = 3.0
    size: bool = True
    separator: str = " | "
    template: str = "{text}"
    random_state: int = 0

    @property
    def codec(self) -> SetCodec:
        """The codec that writes the completions, and reads them back."""
        return SetCodec(separator=self.separator, size=self.size)

    @property
    def thresholds(self) -> Thresholds:
        """When two labels have a fixed order."""
        return Thresholds(min_pmi=self.min_pmi, min_ratio=self.min_ratio)

    @property
    def around_text(self) -> tuple[str, str]:
        """What the template puts before and behind the text."""
        before, _, after = self.template.partition("{text}")
        return before, after

    def check(self) -> Self:
        """Raise if a parameter makes no sense."""
        for name in ("n_orders", "random_state"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, got {value!r}.")
            if not 0 <= value < 1 << 63:
                raise ValueError(f"{name} must not be negative nor above 2**63, got {value}.")
        for name, choices in (("ordering", ORDERINGS), ("sampler", SAMPLERS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}.")
        if self.template.count("{text}") != 1:
            raise ValueError(f"template must hold {{text}} exactly once, got {self.template!r}.")
        _ = self.codec, self.thresholds
        return self

    def fit(self, data: Data) -> Self:
        """Count the labels of the training data; afterwards the counts are in `statistics_`."""
        self.check()
        self.statistics_ = LabelStatistics().update(example.labels for example in as_examples(data))
        return self

    def augment(self, data: Data, *, carry: Sequence[str] = (), columns: Columns | None = None) -> Iterator[Pair]:
        """Give the pairs of each example, one after the other, while reading the examples.

        Parameters
        ----------
        data
            Examples, or rows (a Hugging Face data set, say). They need not be those of `fit`; labels that were not
            counted have no edges.
        carry
            Fields of a row that its pairs shall have too.
        columns
            Where in a row text and labels stand.

        """
        self.check()
        ordering = self.make_ordering(self.statistics_.labels, self.statistics_.edges(self.thresholds))
        examples = as_examples(data, columns)
        first_index = 0
        while batch := list(islice(examples, _BATCH)):
            yield from self._augment_batch(batch, ordering, first_index, carry)
            first_index += len(batch)

    def make_ordering(self, labels: list[str], edges: EdgeTable) -> Ordering:
        """Make the ordering that the parameters ask for."""
        return make_ordering(self.ordering, labels=labels, edges=edges, sampler=self.sampler, distinct=self.distinct)

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
        """Give the order graph of one set (Algorithm 1)."""
        return OrderGraph.of_set(labels, self.statistics_, self.thresholds)

    def __getattr__(self, name: str) -> Any:
        if name == "statistics_":
            raise AttributeError("this SetAugmenter is not fitted yet; call fit(examples) first.")
        raise AttributeError(f"'SetAugmenter' object has no attribute {name!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class PairFormat:
    """Say how a pair is written as one JSON object.

    Examples
    --------
    >>> PairFormat.named("columns", ("source", "target")).row(Pair("a", "1 | b"))
    {'source': 'a', 'target': '1 | b'}

    """

    prompt: str = "prompt"
    completion: str = "completion"
    is_chat: bool = False
    """Whether the two become the messages of a user and an assistant."""
    is_one_list: bool = False
    """Whether these stand in one list, ``messages``, and not in a list for the prompt and one for the completion."""
    system: str | None = None
    """What a system message in front of the others says, where there is to be one."""

    @classmethod
    def named(cls, name: str, columns: Sequence[str] | None = None, *, system: str | None = None) -> "PairFormat":
        """Make a format by name.

        ``prompt-completion``; ``chat`` and ``chat-prompt-completion``, with a system message where one is given;
        ``columns`` with the names of two.
        """
        if name not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {name!r}.")
        if (columns is not None) != (name == "columns"):
            raise ValueError('the format "columns" needs the names of two columns, and no other format takes any.')
        is_chat = name in ("chat", "chat-prompt-completion")
        if system is not None and not is_chat:
            raise ValueError(f"only chat formats have a system message, and {name!r} is none.")
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
        """Raise if a field of a row cannot stand beside those of a pair."""
        for name in carry:
            if name in self.names:
                raise ValueError(f'the field "{name}" cannot be carried: the pairs have a field of that name.')
        return self

    def prompt_messages(self, prompt: str) -> list[dict[str, str]]:
        """Give the messages that a chat model is shown: the system's, where there is one, and the user's."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, {"role": "user", "content": prompt}]

    def row(self, pair: Pair) -> dict[str, Any]:
        """Give the object that is written for a pair."""
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
        """Give the bytes of a written row before the prompt, between prompt and completion, and behind."""
        prompt, completion = "\x00", "\x01"  # stand-ins, which no column is called; a system message may hold them
        row = orjson.dumps(self.row(Pair(prompt, completion)))
        rest, _, behind = row.rpartition(b"\\u0001")
        before, _, between = rest.rpartition(b"\\u0000")
        return before, between, behind.removesuffix(b"}")


FORMATS = ("prompt-completion", "chat", "chat-prompt-completion", "columns")
