"""The classifier that a method explains, asked about people's plans."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import Rows
from gpae.classifier import Classifier
from gpae.models.given_model import logit_of
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom

__all__ = ["OwnModel"]


@dataclass(frozen=True, slots=True, eq=False)
class OwnModel:
    """A classifier of encoded rows."""

    classifier: Classifier

    def probability(self, rows: Rows, values: Array) -> Array:
        """Of the favourable class, for encoded rows; their values in the user's units are not looked at."""
        return np.asarray(self.classifier.predict_proba(rows)[:, 1]) if len(rows) else np.zeros(0)

    def logits(self, freedom: Freedom, person: NDArray[np.intp], U: Array) -> Array:
        """The logits of people's plans."""
        if hasattr(self.classifier, "logits"):
            return np.asarray(self.classifier.logits(U)) if len(U) else np.zeros(0)
        if hasattr(self.classifier, "decision_function"):
            return np.asarray(self.classifier.decision_function(U)) if len(U) else np.zeros(0)
        return logit_of(self.probability(U, U))
