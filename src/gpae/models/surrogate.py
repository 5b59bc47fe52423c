"""How well a surrogate knows the model that it was distilled from, and how it is mended where it does not."""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from gpae.arrays import Rows
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.numerics.fourier import features
from gpae.search.guide import straight_ways
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom

__all__ = ["Fidelity", "Guide"]

_MARGINS = (0.5,)
"""Standard deviations of the surrogate's logits beyond its boundary that plans are proposed at."""

_BOUND = 3.0
"""Standard deviations of the surrogate's logits beyond which a model that is too sure is not followed."""
_MENDED_BY = 256
"""Rows at most that a surrogate is mended by: a small system, solved at once."""
_NOISE = 0.1
"""The same, for what the surrogate need not explain."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """A surrogate that proposes plans to a search on the model itself."""

    classifier: GPAEClassifier
    scale: Array
    """D: one over the standard deviation of numbers, 1 for everything else."""

    def __call__(self, people: Freedom, seed: int) -> tuple[NDArray[np.intp], Array]:
        """Ways across the surrogate's boundary, by margins from next to nothing to far beyond it."""
        margins = [margin * self.classifier.logit_spread_ for margin in _MARGINS]
        return straight_ways(self.classifier.model_, people, self.scale, margins)

    def refitted(self, rows: Rows, logits: Array) -> "Guide":
        """The surrogate mended around rows of which the model itself says something else.

        The surrogate's logit is v'phi(x) + b, a draw of a Gaussian process with the kernel k = |theta|^2 phi'phi. What
        the model says of the rows, as residuals r = logits - g(rows), moves v by the process's posterior mean,

            dv = |theta|^2 Phi' (K + s^2 I)^-1 r,

        which is local: it fades with the kernel's length-scale. Latents move along theta alone,
        W += dv theta' / |theta|^2, and stay where they were in all other directions.
        """
        model, spread = self.classifier.model_, self.classifier.logit_spread_
        some = np.linspace(0, len(rows) - 1, min(len(rows), _MENDED_BY)).astype(int)
        said = torch.as_tensor(np.clip(logits[some], -_BOUND * spread, _BOUND * spread))
        phi = features(model.encoder, torch.as_tensor(rows[some]))
        residual = said - (phi @ (model.encoder_weights @ model.theta) + model.theta0)
        kernel = model.theta.square().sum() * phi @ phi.T
        noise = (_NOISE * spread) ** 2 * torch.eye(len(phi), dtype=phi.dtype)
        shift = phi.T @ torch.linalg.solve(kernel + noise, residual)  # dv / |theta|^2
        mended = copy(self.classifier)
        mended.model_ = replace(model, encoder_weights=model.encoder_weights + torch.outer(shift, model.theta))
        return Guide(mended, self.scale)
