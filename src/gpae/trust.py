"""How far a plan can be trusted: a probability to be believed, and whether retrained models would still agree."""

from dataclasses import dataclass

import numpy as np

from gpae.arrays import Rows
from gpae.models.calibration import Calibration
from gpae.models.replicas import Replicas
from gpae.table.constraint import Array

__all__ = ["Trust"]


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """What is known beyond the model itself; None where nothing is."""

    calibration: Calibration | None = None
    replicas: Replicas | None = None

    def calibrated(self, logits: Array) -> Array:
        """The probability of the favourable label among people with such a score; NaN where that is not known."""
        return np.full(len(logits), np.nan) if self.calibration is None else self.calibration(logits)

    def survival(self, rows: Rows, logits: Array) -> Array:
        """The share of retrained models that still favour these rows; NaN where that is not known."""
        if self.replicas is None or not len(rows):
            return np.full(len(rows), np.nan)
        return self.replicas.survival(rows, logits)
