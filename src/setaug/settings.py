"""Settings and named choices, with their defaults and help sentences.

Imports no torch, numba or numpy, so it is cheap for the command line, the server and the experiments.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

from setaug.errors import EndpointError
from setaug.registry import check_choice

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with the stage, the number of items done, and their total if known."""

SEEDS = (15143, 27122, 999888)
"""The paper's seeds."""
MIN_EXAMPLES = 100
"""With fewer training examples none are held out, unless asked for: both parts would be too small."""

PAPER_MODEL = "facebook/bart-base"
"""The smaller of the paper's models that are fine-tuned, on the Hugging Face Hub."""

PRECISIONS: dict[str, dict[str, Any]] = {"float32": {}, "bfloat16": {"bf16": True}, "float16": {"fp16": True}}
"""Numeric precisions, and the arguments of transformers' Trainer that select them."""

WEIGHTS = {
    "float32": "full precision",
    "bfloat16": "half the memory for weights, gradients and optimizer, but small updates are lost to rounding",
}
"""Data types of the weights, in training and when a model is loaded."""

OBJECTIVES = {
    "plain": "likelihood of the given order and the sampled ones",
    "closed": "the same, normalized over the tokens that the set constraint allows",
    "mixed": "the mean of plain and closed",
    "elbo": "a lower bound of the set's likelihood, from sampled orders only",
    "iwelbo": "the importance-weighted bound over the sampled orders",
}
"""Training objectives."""
CONSTRAINED = ("closed", "mixed")
"""Objectives that know which tokens the set constraint allows; they need a closed vocabulary."""
DRAWN = ("elbo", "iwelbo")
"""Objectives whose orders are all sampled, without the given one."""

TRACKERS = {
    "tensorboard": "files in the run's folder",
    "wandb": "Weights & Biases",
    "mlflow": "MLflow",
}
"""Experiment trackers that training can report to, through transformers."""

RECIPES = {
    "default": "values that depend on the type of model and the number of texts",
    "paper": "the paper's values (appendix D): 3 epochs, learning rate 1e-5, 120 tokens, all training data",
}
"""Sources of the training settings that are not given."""
PAPER_EPOCHS, PAPER_RATE, PAPER_LENGTH = 3, 1e-5, 120
_RATES = {
    "t5": 5e-4,
    "encoder-decoder": 5e-5,
    "causal": 5e-5,
    "adapters": 2e-4,
    "encoder": 5e-5,
    "small-encoder": 2e-4,
}
"""Learning rates by type of model."""
_ENCODERS = ("encoder", "small-encoder")
_MIN_UPDATES, _MIN_ENCODER_UPDATES = 400, 1200
"""Encoders have one target per text, where generators have three with their default."""
_EPOCHS = range(3, 31)
"""The number of epochs is what the updates need, within these bounds: small data needs more epochs."""
_LENGTH = 256
"""Tokens of a text and of a target: batches are only as long as their longest text, so short texts cost no more."""


def default_recipe(*, classifies: bool) -> dict[str, Any]:
    """Return what the default recipe decides for classifiers, or for models that write sets."""
    rates = {kind: rate for kind, rate in _RATES.items() if classifies or kind not in _ENCODERS}
    found = {"learning_rates": rates, "min_updates": _MIN_UPDATES, "epochs": [_EPOCHS[0], _EPOCHS[-1]]}
    return found | ({"min_encoder_updates": _MIN_ENCODER_UPDATES} if classifies else {})


_OPENAI = "https://api.openai.com/v1"

WAYS = {
    "expected-f1": "the set with the highest expected F1",
    "expected-jaccard": "a set with a high expected Jaccard index",
    "exact-match": "the most probable set",
    "threshold": "all labels whose probability is at least the threshold",
    "top-k": "the k most probable labels",
    "size": "the k most probable labels, where k is the most probable size",
}
"""Rules for choosing a set from label probabilities or from sampled sets."""

CHOICES = {
    "best": "expected-f1, or another rule that is clearly better on the dev data",
    "written": "the set that the model generates",
    **WAYS,
    "oracle-k": "the k most probable labels, where k is the size of the true set",
}
"""How to choose a predicted set."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A training method: the paper's own or one of its baselines.

    Parameters
    ----------
    help
        One sentence for the command line.
    ordering
        How to order the labels of a target.
    one_order
        Whether every copy of an example has the same order.
    writes_size
        Whether the set's size is written first by default.
    model
        The type of model.

    """

    help: str
    ordering: str = "given"
    one_order: bool = False
    writes_size: bool = True
    model: str = "generator"


METHODS = {
    "setaug": Method(help="informative orders", ordering="topological"),
    "seq2seq": Method(help="one random order", ordering="random", one_order=True, writes_size=False),
    "random": Method(help="several random orders", ordering="random"),
    "frequency": Method(help="frequent labels first", ordering="frequency"),
    "reversed": Method(help="informative orders, reversed", ordering="reversed"),
    "classifier": Method(help="score each label independently", model="classifier", writes_size=False),
    "set-search": Method(help="write one label at a time", model="set-search", writes_size=False),
}


@dataclass(frozen=True, kw_only=True)
class DecodingMethod:
    """A method for generating text.

    Parameters
    ----------
    help
        One sentence for the command line.
    fixed
        Arguments of transformers' ``generate`` that are always the same.
    reads
        Fields of `Decoding`, with the arguments of ``generate`` that they set.

    """

    help: str
    fixed: Mapping[str, Any]
    reads: Mapping[str, str] = field(default_factory=dict)


DECODINGS = {
    "greedy": DecodingMethod(help="the most probable token at each step", fixed={"do_sample": False, "num_beams": 1}),
    "beam": DecodingMethod(help="beam search", fixed={"do_sample": False}, reads={"n_beams": "num_beams"}),
    "random": DecodingMethod(
        help="sample from all tokens",
        fixed={"do_sample": True, "top_k": 0, "top_p": 1.0},
        reads={"temperature": "temperature"},
    ),
    "top-k": DecodingMethod(
        help="sample from the most probable tokens",
        fixed={"do_sample": True, "top_p": 1.0},
        reads={"top_k": "top_k", "temperature": "temperature"},
    ),
    "nucleus": DecodingMethod(
        help="sample from the smallest set of tokens with most of the probability mass",
        fixed={"do_sample": True, "top_k": 0},
        reads={"top_p": "top_p", "temperature": "temperature"},
    ),
}
"""The paper's five decodings."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How to train. Settings that are None depend on the recipe; `completed` fills them in.

    Parameters
    ----------
    recipe
        Source of the settings that are not given.
    epochs
        Number of epochs; by default enough for 400 updates (encoders: 1,200), between 3 and 30.
    learning_rate
        Peak learning rate; by default 5e-4 for T5, 2e-4 for adapters and for encoders with a hidden size below 512
        (MiniLM), 5e-5 for other pretrained models, and for models from scratch that of their shape (1e-3 for ``tiny``).
    batch_size
        Examples per step and process, each with all of its orders.
    accumulate
        Steps per update.
    warmup
        Fraction of updates with linear warm-up; then the learning rate decays linearly to zero.
    weight_decay
        AdamW's weight decay.
    adam_epsilon
        AdamW's epsilon.
    max_source_length
        Maximum tokens of a text, by default 256 (the paper: 120); longer texts are truncated and counted.
    max_target_length
        Maximum tokens of a target, by default 256 (the paper: 120); examples that need more are skipped and counted.
    fresh_orders
        Sample new orders for each epoch.
    objective
        Training objective; see ``docs/likelihood.md``.
    precision
        Numeric precision; ``bfloat16`` and ``float16`` are mixed precision.
    weights
        Data type of the weights, in memory and in the saved model; LoRA adapters are always float32.
    gradient_checkpointing
        Recompute activations in the backward pass instead of storing them: less memory, more time.
    lora_rank
        Train LoRA adapters of this rank instead of all weights; they are merged at the end.
    label_head
        Train a head on the encoder that scores each label, and combine it with what the decoder writes; by default
        with the default recipe, for pretrained encoder-decoders with a closed vocabulary of at most 5,000 labels.
    held_out
        Fraction of the training data to hold out as dev data if none is given; by default 0.1 if there are at least
        100 examples; 0: none.
    patience
        Stop after this many evaluations without a better F1 on the dev data; by default never, since the learning
        rate decays and the last epochs are often the best.
    checkpoint_every
        Save and evaluate every N updates; by default after each epoch.
    seed
        Random seed; the same seed gives the same model.

    """

    recipe: str = field(default="default", metadata={"choices": RECIPES})
    epochs: int | None = None
    learning_rate: float | None = None
    batch_size: int = 8
    accumulate: int = 1
    warmup: float = 0.1
    weight_decay: float = 0.0
    adam_epsilon: float = 1e-8
    max_source_length: int | None = None
    max_target_length: int | None = None
    fresh_orders: bool = False
    objective: str = field(default="plain", metadata={"choices": OBJECTIVES})
    precision: str = field(default="float32", metadata={"choices": PRECISIONS})
    weights: str = field(default="float32", metadata={"choices": WEIGHTS})
    gradient_checkpointing: bool = False
    lora_rank: int | None = None
    label_head: bool | None = None
    held_out: float | None = None
    patience: int | None = None
    checkpoint_every: int | None = None
    seed: int = SEEDS[0]

    def __post_init__(self) -> None:
        check_choice("recipe", self.recipe, RECIPES)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("weights", self.weights, WEIGHTS)
        for name in ("accumulate", "batch_size"):
            check_whole(name, getattr(self, name), at_least=1)
        for name in ("checkpoint_every", "epochs", "lora_rank", "max_source_length", "max_target_length"):
            check_whole(name, getattr(self, name), at_least=1, optional=True)
        check_whole("patience", self.patience, at_least=0, optional=True)
        if self.learning_rate is not None and not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate must be above 0 and at most 1, got {self.learning_rate!r}.")
        for name in ("held_out", "warmup"):
            if (value := getattr(self, name)) is not None and not 0 <= value < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}.")
        check_seed(self.seed, bits=32)

    @property
    def is_paper(self) -> bool:
        """Whether the defaults are the paper's."""
        return self.recipe == "paper"

    @property
    def lengths(self) -> dict[str, int]:
        """The maximum tokens of texts and targets: those given, or those of the recipe.

        Examples
        --------
        >>> TrainingSettings(max_source_length=512).lengths
        {'max_source_length': 512, 'max_target_length': 256}

        """
        usual = PAPER_LENGTH if self.is_paper else _LENGTH
        given = {"max_source_length": self.max_source_length, "max_target_length": self.max_target_length}
        return {name: length or usual for name, length in given.items()}

    def part_held_out(self, n_examples: int) -> float:
        """Return the fraction to hold out if no dev data is given."""
        if self.held_out is not None:
            return self.held_out
        return 0.0 if self.is_paper or n_examples < MIN_EXAMPLES else 0.1

    def completed(self, kind: str, n_examples: int, *, n_processes: int = 1, own_rate: float | None = None) -> Self:
        """Return the settings with the values of the recipe filled in.

        Parameters
        ----------
        kind
            The type of model: ``t5``, ``encoder-decoder``, ``causal``, ``encoder``, ``small-encoder`` or ``adapters``.
        n_examples
            Number of training examples.
        own_rate
            The learning rate of a model from scratch.

        Examples
        --------
        >>> filled = TrainingSettings().completed("t5", 270)
        >>> filled.epochs, filled.learning_rate
        (12, 0.0005)

        """
        per_epoch = ceil(n_examples / (self.batch_size * self.accumulate * n_processes))
        least = _MIN_ENCODER_UPDATES if kind in _ENCODERS else _MIN_UPDATES
        needed = min(max(ceil(least / per_epoch), _EPOCHS[0]), _EPOCHS[-1])
        rate = own_rate or (PAPER_RATE if self.is_paper else _RATES[kind])
        return replace(
            self,
            epochs=self.epochs or (PAPER_EPOCHS if self.is_paper else needed),
            learning_rate=self.learning_rate or rate,
            patience=self.patience or None,
        )


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How to decode sets from a model.

    Parameters
    ----------
    name
        Decoding method.
    constrained
        Constrain the output to a set: no duplicate or unknown labels, as many labels as the stated size.
    size_is
        Force this size for every set, whatever `min_size` and `max_size` are.
    min_size
        Minimum size.
    max_size
        Maximum size; by default that of the largest training set.
    n_beams
        Number of beams.
    top_k
        Number of tokens to sample from, for ``top-k``.
    top_p
        Probability mass to sample from, for ``nucleus``.
    temperature
        Sampling temperature.
    samples
        Sample this many sets per text, and return a probability for each label.
    choose
        How to choose the set. ``best`` is ``expected-f1``, unless another rule was clearly better on the dev data in
        training; with samples, ``best`` and ``written`` are ``expected-f1``.
    threshold
        Minimum probability of a label, for ``threshold``; by default the best on the dev data, 0.5 for samples.
    k
        Number of labels, for ``top-k``; by default the best on the dev data, for samples their mean size.
    batch_size
        Sets per batch; fewer where texts are long, at most 128 tokens each on average.
    seed
        Random seed for sampling.

    Examples
    --------
    >>> Decoding(name="top-k", top_k=10).options()
    {'do_sample': True, 'top_p': 1.0, 'top_k': 10, 'temperature': 1.0}

    """

    name: str = field(default="greedy", metadata={"choices": DECODINGS})
    constrained: bool = True
    size_is: int | None = None
    min_size: int = 0
    max_size: int | None = None
    n_beams: int = 5
    top_k: int = 50
    top_p: float = 0.9
    temperature: float = 1.0
    samples: int = 0
    choose: str = field(default="best", metadata={"choices": CHOICES})
    threshold: float | None = None
    k: int | None = None
    batch_size: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("name", self.name, DECODINGS)
        check_choice("choose", self.choose, CHOICES)
        for name, least in (("n_beams", 1), ("top_k", 1), ("samples", 0), ("batch_size", 1), ("min_size", 0)):
            check_whole(name, getattr(self, name), at_least=least)
        for name in ("size_is", "max_size"):
            check_whole(name, getattr(self, name), at_least=0, optional=True)
        check_whole("k", self.k, at_least=1, optional=True)
        if self.k is not None and self.choose != "top-k":
            raise ValueError(f"k is for choose='top-k', and choose is {self.choose!r}.")
        if self.max_size is not None and self.max_size < self.min_size:
            raise ValueError(f"max_size {self.max_size} is below min_size {self.min_size}.")
        if not 0.001 <= self.temperature <= 1000:  # beyond, scores overflow or underflow
            raise ValueError(f"temperature must be from 0.001 to 1000, got {self.temperature!r}.")
        object.__setattr__(self, "temperature", float(self.temperature))  # transformers refuses whole numbers
        check_seed(self.seed, bits=64)
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p!r}.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must be from 0 to 1, got {self.threshold!r}.")
        if not self.constrained and (self.size_is is not None or self.max_size is not None or self.min_size):
            raise ValueError("size_is, min_size and max_size require the constraint.")

    @property
    def does_sample(self) -> bool:
        """Whether the text is sampled."""
        return bool(DECODINGS[self.name].fixed["do_sample"])

    def options(self) -> dict[str, Any]:
        """Return the arguments of ``generate``."""
        method = DECODINGS[self.name]
        return {**method.fixed, **{argument: getattr(self, name) for name, argument in method.reads.items()}}

    def sizes(self, largest: int) -> range:
        """Return the sizes that a set may have, given the largest in training."""
        if self.size_is is not None:
            return range(self.size_is, self.size_is + 1)
        most = max(largest, self.min_size) if self.max_size is None else self.max_size
        return range(self.min_size, most + 1)


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible server, and how to send requests to it.

    Parameters
    ----------
    base_url
        Base URL of the server, up to /v1; by default $OPENAI_BASE_URL, or https://api.openai.com/v1.
    key_variable
        Environment variable of the API key. The key is read when needed and never stored.
    concurrency
        Concurrent requests.
    timeout
        Seconds to wait for an answer.
    max_retries
        Retries while the server is busy, fails or hangs.
    max_wait
        The run ends if the server asks to wait longer than this many seconds.
    request
        Extra fields of each request; None removes a field: ``{"max_tokens": None}``.

    """

    base_url: str | None = field(default=None, metadata={"metavar": "URL"})
    key_variable: str = field(default="OPENAI_API_KEY", metadata={"metavar": "NAME"})
    concurrency: int = 8
    timeout: float = 120.0
    max_retries: int = 8
    max_wait: float = 600.0
    request: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("max_retries", 0)):
            check_whole(name, getattr(self, name), at_least=least)
        for name in ("timeout", "max_wait"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0 seconds, got {getattr(self, name)!r}.")
        if self.base_url is not None:
            _check_url(self.base_url)
        if not isinstance(self.request, Mapping):
            raise TypeError(f"request must map fields to values, got {self.request!r}.")

    @property
    def url(self) -> str:
        """The base URL, by default that of the environment or OpenAI's."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI

    @property
    def is_default(self) -> bool:
        """Whether the server is OpenAI's, which needs a key."""
        return self.url == _OPENAI

    @property
    def server(self) -> str:
        """The base URL without user name and password."""
        return self.url.rpartition("@")[2]

    def key(self) -> str | None:
        """Read the API key."""
        key = os.environ.get(self.key_variable, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise EndpointError(
                f"the environment variable {self.key_variable} is not a valid key: it contains invalid characters."
            )
        return key or None


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    try:
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        is_valid = False
    if not is_valid:
        raise ValueError(f"base_url must be a URL such as http://localhost:8000/v1, got {url!r}.")


def check_whole(name: str, value: object, *, at_least: int, optional: bool = False) -> None:
    """Raise `ValueError` unless a value is an integer of at least `at_least`."""
    if optional and value is None:
        return
    if type(value) is not int or value < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}, got {value!r}.")


def check_seed(value: object, *, bits: int) -> None:
    """Raise `ValueError` unless a value is a valid seed."""
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise ValueError(f"seed must be an integer below 2**{bits}, got {value!r}.")
