"""How well a surrogate knows the model that it was distilled from."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fidelity"]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """A surrogate beside the model, on the training rows."""

    agreement: float
    """Share of rows that both decide alike."""
    correlation: float
    """Of their scores."""

    @classmethod
    def of(cls, model: NDArray[np.float64], surrogate: NDArray[np.float64]) -> "Fidelity":
        """Compare two lists of scores."""
        agreement = float(((model > 0.5) == (surrogate > 0.5)).mean())
        varies = model.std() > 0 and surrogate.std() > 0
        return cls(agreement, float(np.corrcoef(model, surrogate)[0, 1]) if varies else float("nan"))
