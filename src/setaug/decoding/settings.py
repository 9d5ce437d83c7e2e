"""The paper's five ways to decode, by name, and what else can be asked of a prediction."""

from dataclasses import dataclass
from typing import Any

from setaug.decoding.choice import CHOICES

DECODINGS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False, "num_beams": 1},
    "beam": {"do_sample": False},
    "random": {"do_sample": True, "top_k": 0, "top_p": 1.0},
    "top-k": {"do_sample": True, "top_p": 1.0},
    "nucleus": {"do_sample": True, "top_k": 0},
}
"""The settings of transformers' ``generate`` that each stands for."""


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Say how to get sets from a model.

    Examples
    --------
    >>> Decoding(name="top-k", top_k=10).options()
    {'do_sample': True, 'top_p': 1.0, 'top_k': 10, 'temperature': 1.0}

    """

    name: str = "greedy"
    """``greedy``, ``beam``, or one that samples: ``random``, ``top-k``, ``nucleus``."""
    constrained: bool = True
    """Whether only sets can be written: no label twice, none unknown, as many as the size says."""
    size_is: int | None = None
    """The size that each set shall have."""
    min_size: int = 0
    max_size: int | None = None
    """By default the size of the largest training set."""
    n_beams: int = 5
    top_k: int = 50
    top_p: float = 0.9
    temperature: float = 1.0
    samples: int = 0
    """Where above 0, draw so many sets per text, and give a probability for each label."""
    choose: str = "expected-f1"
    """How to choose a set from the samples; see `CHOICES`."""
    threshold: float = 0.5
    """For ``vote``: the probability from which on a label is taken."""
    batch_size: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("name", DECODINGS), ("choose", CHOICES)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}.")
        for name, least in (("n_beams", 1), ("top_k", 1), ("samples", 0), ("batch_size", 1), ("min_size", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}.")
        for name in ("size_is", "max_size"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise ValueError(f"{name} must be a whole number from 0 on, got {value!r}.")
        if self.max_size is not None and self.max_size < self.min_size:
            raise ValueError(f"max_size {self.max_size} is below min_size {self.min_size}.")
        if not 0.001 <= self.temperature <= 1000:  # beyond, scores leave the range of numbers
            raise ValueError(f"temperature must be from 0.001 to 1000, got {self.temperature!r}.")
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 64:
            raise ValueError(f"seed must be a whole number below 2**64, got {self.seed!r}.")
        if not 0 < self.top_p <= 1 or not 0 <= self.threshold <= 1:
            raise ValueError(f"top_p and threshold must be from 0 to 1, got {self.top_p!r} and {self.threshold!r}.")
        if not self.constrained and (self.size_is is not None or self.max_size is not None or self.min_size):
            raise ValueError("a size can only be asked for with the constraint on.")

    @property
    def does_sample(self) -> bool:
        """Whether the text is drawn at random."""
        return bool(DECODINGS[self.name]["do_sample"])

    def options(self) -> dict[str, Any]:
        """Give the arguments for ``generate``."""
        options = dict(DECODINGS[self.name])
        if self.name == "beam":
            options["num_beams"] = self.n_beams
        if self.name == "top-k":
            options["top_k"] = self.top_k
        if self.name == "nucleus":
            options["top_p"] = self.top_p
        if self.does_sample:
            options["temperature"] = self.temperature
        return options

    def sizes(self, largest: int) -> range:
        """Give the sizes that a set may have, where the largest in training is known."""
        if self.size_is is not None:
            return range(self.size_is, self.size_is + 1)
        most = max(largest, self.min_size) if self.max_size is None else self.max_size
        return range(self.min_size, most + 1)
