"""SETAUG without training: few-shot prompts with labels in an informative order."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from setaug.augmenter import SetAugmenter
from setaug.decoding.samples import predict_by_vote, probability_matrix
from setaug.decoding.set_request import SetRequest
from setaug.errors import DataError, EndpointError
from setaug.estimator import SetEstimator
from setaug.examples import Columns, Data, LabelSets, checked_columns, make_examples, make_texts
from setaug.predictions import Prediction
from setaug.prompting.answers import AnswerLog, open_answers, request_key
from setaug.prompting.endpoint import Request, Tell, ask, negotiate_sets
from setaug.prompting.prompt import KINDS, FewShotPrompt, choose_shots, write_instruction
from setaug.prompting.reading import UNKNOWN, AnswerReader, ReadAnswer
from setaug.registry import check_choice
from setaug.settings import WAYS, Endpoint, Progress, check_whole
from setaug.vocabulary import LabelIndex, check_vocabulary, known_labels

_CHANGES = ("samples", "choose", "threshold", "k", "temperature", "seed", "unknown")
_OURS = ("model", "messages", "prompt", "n", "stream")
"""Fields of a request that users cannot set."""


@dataclass(frozen=True, kw_only=True)
class PromptReport:
    """Statistics of a prediction: requests, tokens, and labels in the answers."""

    n_texts: int
    n_answers: int
    """Answers that were used for the predictions."""
    n_new: int
    """Answers that were not cached."""
    prompt_tokens: int
    completion_tokens: int
    """Tokens of the new answers, as reported by the server; 0 if it reports none."""
    n_cut_off: int
    """Answers that were truncated at the maximum number of tokens."""
    n_labels: int
    """Labels in all answers."""
    n_mapped: int
    """Labels that were matched despite differences in case or whitespace."""
    n_unknown: int
    """Labels outside the vocabulary that were kept."""
    n_dropped: int
    """Labels outside the vocabulary that were dropped."""
    n_repeated: int
    n_refused: int
    """Texts without an answer, because the server rejected them."""
    first_refusal: str | None = None


class PromptedSetModel(SetEstimator):
    """Predict sets with a few-shot prompt for a language model.

    `fit` counts labels and chooses the examples; only `predict` sends requests to the server.

    Parameters
    ----------
    model
        The name of the model on the server.
    augmenter
        The order and format of the labels in the examples; by default SETAUG's (specific labels first, with sizes). Its
        ``random_state`` is also the seed for choosing the examples. One sampled order is shown for each example.
    shots
        Number of examples in the prompt (24 in the paper); all if there are fewer.
    shot_choice
        ``random``, or ``cover``: examples with as many distinct labels as possible.
    kind
        ``chat`` for messages, ``completion`` for one text.
    instruction
        The instruction; ``{labels}`` is replaced by the list of labels. By default, it describes the format of the
        labels and, for a closed vocabulary of at most `max_listed` labels, lists them. An empty string omits it.
    vocabulary
        ``closed``: only the labels of the training data; ``open``: any text can be a label; or a list of additional
        labels.
    unknown
        ``keep`` labels outside the vocabulary (the prediction lists them as unknown), or ``drop`` them.
    samples
        If above 0, sample this many answers, vote, and return a probability for each label.
    choose, threshold, k
        How to choose a set from the samples; see `setaug.settings.WAYS`. ``best`` is ``expected-f1``; k is for
        ``top-k``, by default the mean size of the samples.
    temperature
        Sampling temperature; by default 0, or 1 with samples.
    seed
        Seed for sampling, if the server supports it.
    max_tokens
        Maximum number of tokens in an answer.
    constrained
        Whether to constrain the answers to sets. The server must be ``setaug serve``, or vLLM or ``transformers serve``
        with setaug's constraint; the first prediction checks it.
    skip_refused
        Whether a text that the server rejects (because it is too long, for example) gets an empty set instead of ending
        the run.
    endpoint
        The server, and how to send requests to it.

    Attributes
    ----------
    augmenter_
        A fitted copy of `augmenter` with one additional order.
    prompt_
        The few-shot prompt.
    shots_
        The indices of the examples in the prompt.
    answers_
        The cached answers, unless they are in a file.
    report_
        The statistics of the last prediction.

    Examples
    --------
    >>> from setaug.sample import sample_examples
    >>> model = PromptedSetModel("any", shots=2, max_listed=0, kind="completion").fit(list(sample_examples(64)))
    >>> print(model.request("The ferry was late.")["prompt"].splitlines()[3])
    Labels: 3 | sonata | crowd | event

    """

    def __init__(
        self,
        model: str,
        *,
        augmenter: SetAugmenter | None = None,
        shots: int = 24,
        shot_choice: str = "random",
        kind: str = "chat",
        instruction: str | None = None,
        max_listed: int = 200,
        vocabulary: str | Sequence[str] = "closed",
        unknown: str = "keep",
        samples: int = 0,
        choose: str = "expected-f1",
        threshold: float = 0.5,
        k: int | None = None,
        temperature: float | None = None,
        seed: int = 0,
        max_tokens: int = 256,
        constrained: bool = False,
        skip_refused: bool = False,
        endpoint: Endpoint | None = None,
    ) -> None:
        self.model = model
        self.augmenter = augmenter or SetAugmenter()
        self.shots = shots
        self.shot_choice = shot_choice
        self.kind = kind
        self.instruction = instruction
        self.max_listed = max_listed
        self.vocabulary = vocabulary
        self.unknown = unknown
        self.samples = samples
        self.choose = choose
        self.threshold = threshold
        self.k = k
        self.temperature = temperature
        self.seed = seed
        self.max_tokens = max_tokens
        self.constrained = constrained
        self.skip_refused = skip_refused
        self.endpoint = endpoint or Endpoint()

    def check(self) -> Self:
        """Raise if a parameter is invalid."""
        self.augmenter.check()
        check_vocabulary(self.vocabulary)
        for name, choices in (("kind", KINDS), ("unknown", UNKNOWN), ("choose", {"best": "", **WAYS})):
            check_choice(name, getattr(self, name), choices)
        for name, least in (("shots", 0), ("max_listed", 0), ("samples", 0), ("max_tokens", 1), ("seed", 0)):
            check_whole(name, getattr(self, name), at_least=least)
        check_whole("k", self.k, at_least=1, optional=True)
        if self.k is not None and self.choose != "top-k":
            raise ValueError(f"k is for choose='top-k', and choose is {self.choose!r}.")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise ValueError(f"temperature must be from 0 to 2, got {self.temperature!r}.")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must be from 0 to 1, got {self.threshold!r}.")
        choose_shots([], 0, way=self.shot_choice)
        if {"\n", "\r"} & {*self.augmenter.codec.encode(["a", "b"])}:
            raise ValueError("labels are parsed from one line, so the separator must not contain a newline.")
        if not isinstance(self.endpoint.request.get("seed", 0), int | None):
            raise ValueError(f"the seed of a request must be an integer, got {self.endpoint.request['seed']!r}.")
        for name in _OURS:
            if name in self.endpoint.request:
                raise ValueError(f'the field "{name}" of a request cannot be set.')
        return self

    def fit(
        self,
        data: Data | Iterable[str],
        labels: LabelSets | None = None,
        *,
        columns: Columns | None = None,
        dev: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Count the labels of examples (or rows; or texts and their label sets), and choose the few-shot examples.

        `dev` and `progress` are ignored; they exist for compatibility with other models.
        """
        self.check()
        self.columns_ = checked_columns(columns)
        examples = make_examples(data, labels, self.columns_)
        if not examples:
            raise DataError("the training data is empty.")
        self.augmenter_ = replace(self.augmenter, n_orders=1).fit(examples)
        self.statistics_ = self.augmenter_.statistics_
        self.labels_ = known_labels(self.statistics_, self.vocabulary)
        self.answers_ = AnswerLog()
        self.shots_ = choose_shots(examples, self.shots, way=self.shot_choice, seed=self.augmenter_.random_state)
        pairs = list(self.augmenter_.augment(examples[at] for at in self.shots_))  # given and sampled order
        self.prompt_ = FewShotPrompt(instruction=self._instruct(), shots=tuple(pairs[1::2]), kind=self.kind)
        return self

    def _instruct(self) -> str:
        codec, labels = self.augmenter_.codec, sorted(self.labels_ or ())
        if self.instruction is not None:
            return self.instruction.replace("{labels}", codec.form.list_labels(labels))
        return write_instruction(codec, labels if 0 < len(labels) <= self.max_listed else None)

    def request(self, text: str, **changes: Any) -> dict[str, Any]:
        """Return the exact request body for a text (for several samples, ``n`` is added)."""
        return self._changed(changes)._body(text)

    def _changed(self, changes: Mapping[str, Any]) -> Self:
        self._check_fitted()
        if strange := changes.keys() - set(_CHANGES):
            raise TypeError(f"a prompted model does not accept {', '.join(sorted(strange))}.")
        changed = type(self)(**{**self.get_params(deep=False), **changes}).check()
        changed.augmenter_, changed.prompt_, changed.labels_ = self.augmenter_, self.prompt_, self.labels_
        return changed

    def _body(self, text: str) -> dict[str, Any]:
        before, after = self.augmenter_.around_text
        temperature = (1.0 if self.samples else 0.0) if self.temperature is None else self.temperature
        body = {
            "model": self.model,
            **self.prompt_.body(before + text + after),
            "temperature": temperature,
            "max_tokens": self.max_tokens,
            **({"seed": self.seed} if self.samples else {}),
            **({"vllm_xargs": self._sets.parameters()} if self.constrained else {}),
            **self.endpoint.request,
        }
        return {name: value for name, value in body.items() if value is not None}

    @property
    def _sets(self) -> SetRequest:
        """The allowed sets of an answer."""
        labels = None if self.labels_ is None else tuple(self.labels_)
        return SetRequest(labels=labels, sizes=None, codec=self.augmenter_.codec)

    def predict(
        self,
        data: Iterable[str] | Data,
        *,
        answers: str | Path | None = None,
        progress: Progress | None = None,
        tell: Tell = lambda reason: None,
        **changes: Any,
    ) -> list[Prediction]:
        """Predict the set of each text (or example, or row).

        Parameters
        ----------
        answers
            A file to which each answer is appended as it arrives. Answers in it are not requested again. Without a
            file, answers are cached in memory.
        progress
            Called with the stage, the number of items done, and their total.
        tell
            Called with the reason if requests pause.
        changes
            Changes for this call to samples, choose, threshold, k, temperature, seed or unknown.

        """
        model = self._changed(changes)
        texts, keys = make_texts(data, self.columns_)
        names = [request_key(model._body(text), self.endpoint.server) for text in texts]
        wanted: dict[str, Request] = {}
        for at, (name, text, key) in enumerate(zip(names, texts, keys, strict=True), start=1):
            what = f"text {at}" if key is None else f"text {at} (id {key})"
            wanted.setdefault(name, Request(name, partial(model._body, text), max(model.samples, 1), what))
        refusals: dict[str, str] | None = {} if model.skip_refused else None
        with nullcontext(self.answers_) if answers is None else open_answers(answers) as log:
            n_before = len(log.responses)
            try:
                model._ask(list(wanted.values()), log, refusals, progress, tell)
            finally:
                read = model._reader().read
                readings = {
                    name: [read(answer.text) for answer in log.of(name)[: request.n_answers]]
                    for name, request in wanted.items()
                }
                self.report_ = _report(names, readings, log, n_before, refusals)
        return [model._predict(readings[name], key) for name, key in zip(names, keys, strict=True)]

    def predict_proba(self, data: Iterable[str] | Data, **changes: Any) -> NDArray[np.float64]:
        """Return the probability of each label (columns, as in ``classes_``) for each text (rows), from samples.

        Parameters
        ----------
        changes
            As for `predict`. Samples are required, here or in the parameters of the model.

        """
        labels = list(self.classes_)
        if not changes.get("samples", self.samples):
            raise ValueError("probabilities require samples; pass samples=16, for example.")
        return probability_matrix(self.predict(data, **changes), labels)

    def _ask(
        self,
        requests: list[Request],
        log: AnswerLog,
        refusals: dict[str, str] | None,
        progress: Progress | None,
        tell: Tell,
    ) -> None:
        n_done = sum(len(log.of(request.key)) >= request.n_answers for request in requests)

        def count() -> None:
            nonlocal n_done
            n_done += 1
            if progress is not None:
                progress("asking", n_done, len(requests))

        try:
            if self.constrained and n_done < len(requests):
                write = negotiate_sets(self.endpoint, requests[0].make_body(), tell)
                requests = [replace(one, make_body=partial(_written, write, one.make_body)) for one in requests]
            ask(requests, log, self.endpoint, refusals=refusals, done=count, tell=tell)
        except EndpointError as error:
            n_there = sum(len(log.of(request.key)) >= request.n_answers for request in requests)
            raise EndpointError(f"{error} ({n_there:,} of {len(requests):,} texts are done.)") from None

    def _reader(self) -> AnswerReader:
        index = None if self.labels_ is None else LabelIndex(self.labels_)
        return AnswerReader(codec=self.augmenter_.codec, index=index, unknown=self.unknown)

    def _predict(self, read: list[ReadAnswer], key: str | int | None) -> Prediction:
        if not read:  # refused
            return Prediction(labels=(), id=key)
        if self.samples:
            strange = frozenset(label for one in read for label in one.prediction.unknown or ())
            return predict_by_vote(
                [one.prediction.labels for one in read],
                way=self.choose,
                threshold=self.threshold,
                k=self.k,
                strange=None if self.labels_ is None else strange,
                key=key,
            )
        (one,) = read
        return replace(one.prediction, id=key)


def _written(
    write: Callable[[dict[str, Any]], dict[str, Any]], make_body: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    return write(make_body())


def _report(
    names: list[str],
    readings: Mapping[str, list[ReadAnswer]],
    log: AnswerLog,
    n_before: int,
    refusals: dict[str, str] | None,
) -> PromptReport:
    new = log.responses[n_before:]
    read = [one for ones in readings.values() for one in ones]
    found = [one.prediction for one in read]
    n_dropped = sum(len(one.dropped) for one in read)
    n_repeated = sum(len(one.repeated or ()) for one in found)
    reasons = refusals or {}
    cut_off = [answer.is_cut_off for name, ones in readings.items() for answer in log.of(name)[: len(ones)]]
    return PromptReport(
        n_texts=len(names),
        n_answers=len(read),
        n_new=sum(len(response.answers) for response in new),
        prompt_tokens=sum(response.prompt_tokens for response in new),
        completion_tokens=sum(response.completion_tokens for response in new),
        n_cut_off=sum(cut_off),
        n_labels=sum(len(one.labels) for one in found) + n_repeated + n_dropped,
        n_mapped=sum(len(one.mapped) for one in read),
        n_unknown=sum(len(one.unknown or ()) for one in found),
        n_dropped=n_dropped,
        n_repeated=n_repeated,
        n_refused=sum(name in reasons for name in names),
        first_refusal=next(iter(reasons.values()), None),
    )
