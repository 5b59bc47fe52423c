"""Search in a decoder's latent space: rows judged as they can be returned, gradients taken as if nothing were rounded.

The decoder's row u is put inside its bounds and onto whole levels and steps, x~ = round(u). Losses are those of x~;
their gradient by x~ is passed on to u as it stands (straight-through) and pulled back to the latent state.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gpae.numerics.descent import Evaluation
from gpae.search.rounding import Rounding
from gpae.search.single_plan import People

__all__ = ["Judgement", "judged"]


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """Of rows: their loss, its gradient by the row, whether they count, and what the best one is least in."""

    loss: Float[Tensor, " B"]
    pull: Float[Tensor, "B D"]
    valid: Bool[Tensor, " B"]
    rank: Float[Tensor, " B"] | None = None


def judged(
    state: Float[Tensor, "B k"],
    decode: Callable[[Float[Tensor, "B k"]], Float[Tensor, "B D"]],
    judge: Callable[[Float[Tensor, "B D"]], Judgement],
    rounding: Rounding,
    people: People,
) -> Evaluation:
    """Decode a state, judge its rows and pull the gradient back."""
    with torch.enable_grad():  # tiles run without
        latent = state.detach().requires_grad_()
        u = decode(latent)
    row = rounding(u.detach(), *people.exact)
    verdict = judge(row)
    (gradient,) = torch.autograd.grad(
        u, latent, torch.where(_free(u.detach(), verdict.pull, people), verdict.pull, 0.0)
    )
    return Evaluation(row, verdict.loss, gradient, verdict.valid, verdict.rank)


def _free(u: Float[Tensor, "B D"], pull: Float[Tensor, "B D"], people: People) -> Bool[Tensor, "B D"]:
    """Columns that can follow a step against the pull; one at its bound cannot go beyond."""
    below = (u <= people.lower) & (pull > 0)
    above = (u >= people.upper) & (pull < 0)
    return (people.lower < people.upper) & ~below & ~above
