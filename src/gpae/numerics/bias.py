"""The bias of a classifier for rows that hold the classes in other shares than the rows it was fitted to.

A classifier fitted to rows of which a quarter are favourable errs on rows of which half are, by a constant in the logit
(Adult's published split is of that kind). That one number can be set on rows that say what to expect.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

__all__ = ["shift"]

_DOUBT = 10.0
"""Twice the log-likelihood that a shift must gain. Rows of the same kind gain so much once in six hundred times."""
_STEPS = 30


def shift(g: Float[Tensor, " N"], y: Float[Tensor, " N"], weight: Float[Tensor, " N"]) -> float:
    """What to add to the logits for the least cross-entropy; 0 where chance may explain the gain."""
    if not 0 < float(y.mean()) < 1:
        return 0.0
    added = 0.0
    for _ in range(_STEPS):
        p = torch.sigmoid(g + added)
        slope, curvature = (weight * (p - y)).sum(), (weight * p * (1 - p)).sum()
        step = float((slope / curvature.clamp(min=1e-12)).clamp(-1, 1))
        added -= step
        if abs(step) < 1e-6:
            break
    gain = (weight * (softplus(g) - softplus(g + added) + y * added)).sum()
    return added if 2 * float(gain) > _DOUBT else 0.0
