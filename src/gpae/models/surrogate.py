"""How well a surrogate knows the model that it was distilled from, and how it is mended where it does not."""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from gpae.arrays import Rows
from gpae.explainer import Explainer
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.numerics.fourier import features

__all__ = ["Fidelity", "refitted"]

_BOUND = 3.0
"""Standard deviations of the surrogate's logits beyond which a model that is too sure is not followed."""
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


def refitted(method: Explainer, rows: Rows, logits: NDArray[np.float64]) -> Explainer | None:
    """The method with its surrogate mended around rows of which the model itself says something else.

    The surrogate's logit is v'phi(x) + b, a draw of a Gaussian process with the kernel k = |theta|^2 phi'phi. What the
    model says of the rows, as residuals r = logits - g(rows), moves v by the process's posterior mean,

        dv = |theta|^2 Phi' (K + s^2 I)^-1 r,

    which is local: it fades with the kernel's length-scale. Latents move along theta alone, W += dv theta' / |theta|^2,
    so that the density's latents stay where they were on either side. None: this surrogate cannot be mended so.
    """
    classifier = method.classifier_
    if not isinstance(classifier, GPAEClassifier):
        return None
    model, bound = classifier.model_, _BOUND * classifier.logit_spread_
    said = torch.as_tensor(np.clip(logits, -bound, bound))
    size = model.theta.square().sum()
    phi = features(model.encoder, torch.as_tensor(rows))
    residual = said - (phi @ (model.encoder_weights @ model.theta) + model.theta0)
    noise = (_NOISE * classifier.logit_spread_) ** 2
    kernel = size * phi @ phi.T + noise * torch.eye(len(phi), dtype=phi.dtype)
    shift = phi.T @ torch.linalg.solve(kernel, residual)  # dv / |theta|^2
    mended, inner = copy(method), copy(classifier)
    inner.model_ = replace(model, encoder_weights=model.encoder_weights + torch.outer(shift, model.theta))
    mended.classifier_ = inner
    return mended
