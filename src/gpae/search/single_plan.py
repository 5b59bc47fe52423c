"""The frame of the methods that look for one plan a row: tiles in single precision, then rows that can be written."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.numerics.tiles import in_tiles
from gpae.search.rounding import finalised
from gpae.table.layout import Layout

__all__ = ["People", "Walk", "beyond_boundary", "search_one_plan"]

_CLEAR = 1e-5
"""Logit units beyond the boundary from which single precision can be trusted to tell the side."""


def beyond_boundary(margin: float) -> list[float]:
    """The logit from which a row is an answer: the margin, then, for those whom it leaves without one, any at all."""
    return [margin, _CLEAR] if margin > _CLEAR else [_CLEAR]


class People:
    """One tile of people as tensors: who they are, where they may go, and the target's side from which logit on."""

    __slots__ = ("clear", "lower", "sign", "upper", "x")

    def __init__(self, x: Tensor, lower: Tensor, upper: Tensor, sign: Tensor, clear: float) -> None:
        self.x: Float[Tensor, "B D"] = x
        self.lower: Float[Tensor, "B D"] = lower
        self.upper: Float[Tensor, "B D"] = upper
        self.sign: Float[Tensor, " B"] = sign
        self.clear = clear


Walk = Callable[..., tuple[Float[Tensor, "B D"], Bool[Tensor, " B"]]]
"""(people, more tensors with one entry a row) -> a row for each of them, and whether it is an answer."""


def search_one_plan(
    layout: Layout,
    x: Rows,
    target: Labels,
    lower: Rows,
    upper: Rows,
    walk: Walk,
    more: Sequence[Tensor] = (),
    *,
    margin: float = 0.0,
) -> tuple[Labels, Rows]:
    """Run ``walk`` tile by tile; return the positions of those who have a plan, and their plans.

    ``more`` are further tensors with one entry a row, such as the keys of a row's own random numbers. Who gets no plan
    beyond the margin is searched for again without it.
    """
    tensors = [torch.as_tensor(part, dtype=torch.float32) for part in (x, lower, upper, 2.0 * target - 1.0)]
    tensors = [*tensors, *more]
    waiting, answered, answers = torch.arange(len(x)), [], []
    for clear in beyond_boundary(margin):
        row, found = in_tiles(partial(_one_tile, walk, clear), [part[waiting] for part in tensors])
        answered.append(waiting[found])
        answers.append(row[found])
        waiting = waiting[~found]
        if not len(waiting):
            break
    at = torch.cat(answered).numpy()
    u = torch.cat(answers).numpy().astype(np.float64)
    return at, finalised(layout, u, x[at], lower[at], upper[at])


def _one_tile(
    walk: Walk, clear: float, x: Tensor, lower: Tensor, upper: Tensor, sign: Tensor, *more: Tensor
) -> tuple[Tensor, Tensor]:
    return walk(People(x, lower, upper, sign, clear), *more)
