"""The classifier's bias where validation rows hold the classes in other shares than training rows do.

A classifier fitted to rows of which a quarter are favourable errs on rows of which half are, by a constant in the logit
(Adult's published split is of that kind). One number can be set on the rows that say what to expect.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.models.training import Rows, cross_entropy_of
from gpae.numerics.autoencoder import AutoEncoder, logit

__all__ = ["adjusted", "shift"]

_DOUBT = 10.0
"""Twice the log-likelihood that a shift must gain. Rows of the same kind gain so much once in six hundred times."""
_STEPS = 30


@torch.no_grad()
def adjusted(model: AutoEncoder, valid: Rows) -> AutoEncoder:
    """The model with its bias shifted where the validation rows contradict it beyond doubt."""
    return replace(model, theta0=model.theta0 + shift(logit(model, model.encode(valid.x)), valid))


def shift(g: Float[Tensor, " N"], rows: Rows) -> float:
    """What to add to the logits for the least cross-entropy; 0 where chance may explain the gain."""
    if not 0 < float(rows.y.mean()) < 1:
        return 0.0
    added = 0.0
    for _ in range(_STEPS):
        p = torch.sigmoid(g + added)
        slope, curvature = (rows.weight * (p - rows.y)).sum(), (rows.weight * p * (1 - p)).sum()
        added -= float((slope / curvature.clamp(min=1e-12)).clamp(-1, 1))
    gain = len(g) * float(cross_entropy_of(g, rows) - cross_entropy_of(g + added, rows))
    return added if 2 * gain > _DOUBT else 0.0
