"""From a model's raw score to a probability that can be believed."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from gpae.arrays import Labels
from gpae.table.constraint import Array

__all__ = ["Calibration"]

_WEAK = 1e4
"""The inverse of the penalty on the slope: next to none, but enough where a model is never wrong."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Platt's: P(favourable | g) = sigmoid(slope g + offset), fitted to rows that the model was not fitted to."""

    slope: float
    offset: float

    @classmethod
    def of(cls, logits: Array, labels: Labels) -> "Calibration | None":
        """Fit; None where the rows are of one class only, which says nothing."""
        if len(np.unique(labels)) < 2:
            return None
        fitted = LogisticRegression(C=_WEAK, max_iter=1000).fit(logits[:, None], labels)
        return cls(float(fitted.coef_[0, 0]), float(fitted.intercept_[0]))

    def __call__(self, logits: Array) -> Array:
        """The probabilities."""
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(self.slope * logits + self.offset, -700, 700))))
