"""How well a surrogate knows the model that it was distilled from, and how it is mended where it does not."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.search.guide import Kernel, Said, straight_ways
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom

__all__ = ["Fidelity", "Guide"]

_MARGIN = 0.5
"""Standard deviations of the surrogate's logits beyond its boundary that plans are proposed at: a little further than
needed, as a surrogate is not quite right."""
_BOUND = 3.0
"""The same, beyond which a model that is too sure is not followed."""
_NOISE = 0.1
"""The same, for what the surrogate need not explain."""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """A surrogate beside the model, on training rows that it was not distilled from."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """A surrogate that proposes plans to a search on the model itself."""

    classifier: GPAEClassifier
    scale: Array
    """D: one over the standard deviation of numbers, 1 for everything else."""

    def __call__(self, people: Freedom, seed: int) -> tuple[NDArray[np.intp], Array]:
        """A way across the surrogate's boundary for each person."""
        return self._ways(people, None)

    def refitted(self, people: Freedom, rows: Array, logits: Array) -> tuple[NDArray[np.intp], Array]:
        """Ways of people to whom the model has said something else (``logits``) about a row each (B x D)."""
        bound = _BOUND * self.classifier.logit_spread_
        return self._ways(people, Said(rows[:, None], np.clip(logits, -bound, bound)[:, None]))

    def _ways(self, people: Freedom, said: Said | None) -> tuple[NDArray[np.intp], Array]:
        classifier, spread = self.classifier, self.classifier.logit_spread_
        size = float(classifier.model_.theta.square().sum()) ** 0.5
        kernel = Kernel(classifier.length_scale_, size, _NOISE * spread)
        return straight_ways(classifier.model_, people, self.scale, _MARGIN * spread, kernel, said)
