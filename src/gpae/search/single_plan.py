"""The frame of the methods that look for one plan a row: tiles in single precision, then rows that can be written."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.numerics.tiles import in_tiles
from gpae.search.rounding import finalised
from gpae.table.layout import Layout

__all__ = ["CLEAR", "People", "Walk", "search_one_plan"]

CLEAR = 1e-5
"""Logit units beyond the boundary from which single precision can be trusted to tell the side."""


class People:
    """One tile of people as tensors: who they are, where they may go, and the side of the target class."""

    __slots__ = ("lower", "sign", "upper", "x")

    def __init__(self, x: Tensor, lower: Tensor, upper: Tensor, sign: Tensor) -> None:
        self.x: Float[Tensor, "B D"] = x
        self.lower: Float[Tensor, "B D"] = lower
        self.upper: Float[Tensor, "B D"] = upper
        self.sign: Float[Tensor, " B"] = sign


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
) -> tuple[Labels, Rows]:
    """Run ``walk`` tile by tile; return the positions of those who have a plan, and their plans.

    ``more`` are further tensors with one entry a row, such as the keys of a row's own random numbers.
    """
    tensors = [torch.as_tensor(part, dtype=torch.float32) for part in (x, lower, upper, 2.0 * target - 1.0)]

    def one_tile(*tile: Tensor) -> tuple[Tensor, Tensor]:
        return walk(People(*tile[:4]), *tile[4:])

    row, found = in_tiles(one_tile, (*tensors, *more))
    at = np.flatnonzero(found.numpy())
    u = finalised(layout, row.numpy()[at].astype(np.float64), x[at], lower[at], upper[at])
    return at.astype(np.int64), u
