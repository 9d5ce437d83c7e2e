"""Make the share of generations that hold a label mean what it says: isotonic regression on dev data."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Calibration:
    """Map shares to probabilities, by straight lines between points."""

    shares: tuple[float, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def fit(cls, shares: Sequence[Mapping[str, float]], gold: Sequence[Collection[str]]) -> "Calibration":
        """Learn from dev examples how often a label with some share is right; it never falls as the share grows.

        Labels that no generation holds are left out: they keep no probability.
        """
        from sklearn.isotonic import IsotonicRegression

        pairs = [
            (share, float(label in labels))
            for found, labels in zip(shares, gold, strict=True)
            for label, share in found.items()
        ]
        if not pairs:
            raise ValueError("there is nothing to calibrate with: no dev example has a generated label.")
        x, y = np.array(pairs).T
        fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(x, y)
        return cls(tuple(fitted.X_thresholds_.tolist()), tuple(fitted.y_thresholds_.tolist()))

    def __call__(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Give the probability of each label."""
        values = np.interp(list(shares.values()), self.shares, self.probabilities).tolist()
        return dict(zip(shares, values, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """Give it as JSON."""
        return {"shares": list(self.shares), "probabilities": list(self.probabilities)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Calibration":
        """Read it back."""
        return cls(tuple(saved["shares"]), tuple(saved["probabilities"]))
