"""The frame of the methods that look for one plan a row: tiles in single precision, then rows that can be written.

A search has legs: who has no answer after one goes on to the next, and these few come together in tiles of their own.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.numerics.tiles import TILE, in_tiles
from gpae.search.rounding import finalised
from gpae.table.layout import Layout

__all__ = ["Leg", "People", "beyond_boundary", "search_one_plan"]

_CLEAR = 2e-5
"""Logit units beyond the boundary from which single precision can be trusted to tell the side."""

_FEW = 32
"""Rows in a tile of the later legs, which few people need."""


def beyond_boundary(margin: float) -> list[float]:
    """The logit from which a row is an answer: the margin, then, for those whom it leaves without one, any at all."""
    return [margin, _CLEAR] if margin > _CLEAR else [_CLEAR]


class People:
    """One tile of people as tensors: who they are, where they may go, and the target's side from which logit on.

    In single precision, as searches want it; ``exact`` has x, lower and upper as they were given.
    """

    __slots__ = ("clear", "exact", "lower", "sign", "upper", "x")

    def __init__(self, x: Tensor, lower: Tensor, upper: Tensor, sign: Tensor, clear: float) -> None:
        self.exact = x.double(), lower.double(), upper.double()
        self.x: Float[Tensor, "B D"] = x.float()
        self.lower: Float[Tensor, "B D"] = lower.float()
        self.upper: Float[Tensor, "B D"] = upper.float()
        self.sign: Float[Tensor, " B"] = sign
        self.clear = clear


Leg = Callable[..., tuple[Float[Tensor, "B D"], Bool[Tensor, " B"], *tuple[Tensor, ...]]]
"""(people, more tensors with one entry a row) -> a row for each of them, whether it is an answer, and more tensors for
the next leg."""


def search_one_plan(
    layout: Layout,
    x: Rows,
    target: Labels,
    lower: Rows,
    upper: Rows,
    legs: Sequence[Leg],
    more: Sequence[Tensor] = (),
    *,
    margin: float = 0.0,
) -> tuple[Labels, Rows]:
    """Run the legs tile by tile; return the positions of those who have a plan, and their plans.

    ``more`` are further tensors with one entry a row for the first leg, such as the keys of a row's own random numbers.
    Who gets no plan beyond the margin is searched for again without it.
    """
    people = [torch.as_tensor(part) for part in (x, lower, upper)]
    people.append(torch.as_tensor(2.0 * target - 1.0, dtype=torch.float32))
    waiting, answered, answers = torch.arange(len(x)), [], []
    for clear in beyond_boundary(margin):
        carried, tile = [part[waiting] for part in more], TILE
        for leg in legs:
            row, found, *carried = in_tiles(
                partial(_one_tile, leg, clear), [*(part[waiting] for part in people), *carried], tile
            )
            answered.append(waiting[found])
            answers.append(row[found])
            waiting, carried, tile = waiting[~found], [part[~found] for part in carried], _FEW
            if not len(waiting):
                break
        if not len(waiting):
            break
    at = torch.cat(answered).numpy()
    u = torch.cat(answers).numpy().astype(np.float64)
    return at, finalised(layout, u, x[at], lower[at], upper[at])


def _one_tile(
    leg: Leg, clear: float, x: Tensor, lower: Tensor, upper: Tensor, sign: Tensor, *more: Tensor
) -> tuple[Tensor, ...]:
    return leg(People(x, lower, upper, sign, clear), *more)
