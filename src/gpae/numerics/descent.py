"""Gradient descent of many rows at once, each on its own loss; the best row that counts is kept.

The loss of a batch is the sum of the rows' losses and the optimisers work entry by entry, so every row follows the path
it would follow alone. Nothing of the path is stored but the best point.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Descent", "Evaluation", "descend"]

_LOOK = 25
"""Iterations between two looks at whether all rows are done."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What a state means: the row it stands for, its loss, the gradient by the state, and whether the row counts."""

    row: Float[Tensor, "B D"]
    loss: Float[Tensor, " B"]
    gradient: Float[Tensor, "B k"]
    valid: Bool[Tensor, " B"]
    rank: Float[Tensor, " B"] | None = None
    """What the best row is least in; None: the loss."""


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Where the rows ended: the best valid row (where ``found``), and the last state."""

    row: Float[Tensor, "B D"]
    found: Bool[Tensor, " B"]
    state: Float[Tensor, "B k"]


def descend(
    start: Float[Tensor, "B k"],
    evaluate: Callable[[Float[Tensor, "B k"]], Evaluation],
    optimiser: Callable[[list[Tensor]], torch.optim.Optimizer],
    n_iterations: int,
    *,
    stop_at_first: bool = False,
    patience: int | None = None,
    settled: Callable[[Float[Tensor, " B"]], Bool[Tensor, " B"]] | None = None,
    projected: Callable[[Float[Tensor, "B k"]], Float[Tensor, "B k"]] | None = None,
) -> Descent:
    """Walk ``n_iterations`` steps from ``start`` and return, for each row, the valid point of least loss (or rank).

    Parameters
    ----------
    evaluate
        The rows of a state; called once an iteration, and once more at the end.
    optimiser
        Makes a torch optimiser of a list of parameters.
    stop_at_first
        Freeze a row as soon as it is valid.
    patience
        Freeze a row whose loss has not fallen for so many iterations.
    settled
        Is told the rows' losses, point after point from the start on, and says which rows to freeze.
    projected
        Puts a state back to where it may be, after each step.
    """
    state = start.clone()
    walker = optimiser([state])
    here = evaluate(state)
    row, found = here.row.clone(), here.valid.clone()
    best = torch.where(here.valid, _rank(here), torch.inf)
    lowest, waited = here.loss.clone(), torch.zeros_like(here.loss)
    done = found.clone() if stop_at_first else torch.zeros_like(found)
    if settled is not None:
        done = done | settled(here.loss)
    for iteration in range(n_iterations):
        if iteration % _LOOK == 0 and bool(done.all()):
            break
        before = state.clone()
        state.grad = here.gradient
        walker.step()
        if projected is not None:
            state.copy_(projected(state))
        # momentum would carry a row on that has no gradient any more
        state.copy_(torch.where(done.unsqueeze(1), before, state))
        here = evaluate(state)
        better = here.valid & ~done & (_rank(here) < best)
        row = torch.where(better.unsqueeze(1), here.row, row)
        best, found = torch.where(better, _rank(here), best), found | better
        if stop_at_first:
            done = done | better
        if patience is not None:
            falls = here.loss < lowest
            lowest, waited = torch.minimum(lowest, here.loss), torch.where(falls, 0.0, waited + 1)
            done = done | (waited >= patience)
        if settled is not None:
            done = done | settled(here.loss)
    return Descent(row, found, state)


def _rank(here: Evaluation) -> Float[Tensor, " B"]:
    return here.loss if here.rank is None else here.rank
