"""Whole levels and whole steps inside a gradient search: the rows that are judged are rows that can be returned.

:meth:`Layout.snap` is exact; compiled, it is fast enough to be asked at every step. Elsewhere this is its shadow on
tensors, for the columns where rounding is linear: it decides what a search sees, never what is returned.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from gpae.arrays import Rows
from gpae.kernels.snapping import is_compiled, snap
from gpae.table.layout import Layout
from gpae.table.scaling import MinMax
from gpae.table.value_block import ValueBlock

__all__ = ["Rounding", "finalised"]

_SAME = 1e-6
"""Encoded values in single precision closer than this are the same value."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """Columns with a step and their grid, and the columns of each one-hot group."""

    step: Float[Tensor, " D"]
    """0 where a column takes every value."""
    origin: Float[Tensor, " D"]
    groups: tuple[Tensor, ...]
    flagged: tuple[int, ...]
    """Value columns with a flag behind them; where it says missing, the value means nothing and stays."""
    codes: Float[Tensor, "c D"]
    """Values that are states and no amounts; infinite where a column has fewer than c of them."""
    least: Float[Tensor, " D"]
    most: Float[Tensor, " D"]
    """Where the amounts of a column with codes begin and end."""
    exact: Layout | None
    """What rounds exactly, where that is compiled."""

    @classmethod
    def of(cls, layout: Layout, dtype: torch.dtype = torch.float32) -> "Rounding":
        """Read the grids off a layout."""
        step, origin = np.zeros(layout.width), np.zeros(layout.width)
        values = [block for block in layout.features if isinstance(block, ValueBlock)]
        codes = np.full((max((len(b.grid.codes) for b in values), default=0), layout.width), np.inf)
        least, most = np.full(layout.width, -np.inf), np.full(layout.width, np.inf)
        for block in values:
            at, grid, to_unit = block.start, block.grid, block.scaling.to_unit
            if grid.step is not None and isinstance(block.scaling, MinMax):
                step[at] = grid.step / (block.scaling.high - block.scaling.low)
                origin[at] = to_unit(grid.minimum)
            if grid.codes:
                codes[: len(grid.codes), at] = to_unit(np.array(grid.codes))
                least[at], most[at] = to_unit(grid.minimum), to_unit(grid.maximum)
            step[at + 1 : at + block.width] = 1.0  # the flag
        groups = tuple(torch.as_tensor(group) for group in layout.groups)
        flagged = tuple(block.start for block in values if block.missing)
        parts = {"step": step, "origin": origin, "codes": codes, "least": least, "most": most}
        tensors = {name: torch.as_tensor(part, dtype=dtype) for name, part in parts.items()}
        return cls(groups=groups, flagged=flagged, exact=layout if is_compiled(layout) else None, **tensors)

    def __call__(
        self,
        u: Float[Tensor, "B D"],
        x: Float[Tensor, "B D"],
        lower: Float[Tensor, "B D"],
        upper: Float[Tensor, "B D"],
    ) -> Float[Tensor, "B D"]:
        """Return the rows rounded inside their bounds; a person off the grid keeps the own value if it is near.

        Persons and bounds in double precision, in which it can be told whether a value is a code.
        """
        if self.exact is not None:
            return torch.from_numpy(snap(self.exact, *(part.numpy() for part in (u, x, lower, upper)))).to(u.dtype)
        x, lower, upper = (part.to(u.dtype) for part in (x, lower, upper))
        u = torch.minimum(torch.maximum(u, lower), upper)
        step = torch.where(self.step > 0, self.step, 1.0)
        whole = torch.where(self.step > 0, self.origin + ((u - self.origin) / step).round() * step, u)
        whole = self._or_code(u, x, whole, lower, upper)
        near = (self.step > 0) & ((u - x).abs() <= 0.5 * step)
        rounded = torch.where(near, x, whole)
        for group in self.groups:
            score = torch.where(upper[:, group] > 0, u[:, group], -torch.inf)
            level = torch.nn.functional.one_hot(score.argmax(1), len(group)).to(u.dtype)
            rounded[:, group] = torch.where(lower[:, group] == upper[:, group], x[:, group], level)
        for value in self.flagged:
            rounded[:, value] = torch.where(rounded[:, value + 1] >= 0.5, x[:, value], rounded[:, value])
        return rounded

    def _or_code(
        self,
        u: Float[Tensor, "B D"],
        x: Float[Tensor, "B D"],
        whole: Float[Tensor, "B D"],
        lower: Float[Tensor, "B D"],
        upper: Float[Tensor, "B D"],
    ) -> Float[Tensor, "B D"]:
        """Return the nearest amount or, where it is nearer, the nearest code; between them there is nothing."""
        if not len(self.codes):
            return whole.clamp(lower, upper)
        state = ((x - self.codes.unsqueeze(1)).abs() <= _SAME).any(0)
        low = torch.where(state, self.least, torch.minimum(self.least, x))
        high = torch.where(state, self.most, torch.maximum(self.most, x))
        best = whole.clamp(torch.maximum(lower, low), torch.minimum(upper, high))
        for code in self.codes:
            open_ = (code >= lower - _SAME) & (code <= upper + _SAME)
            best = torch.where(open_ & ((code - u).abs() < (best - u).abs()), code, best)
        return best


def finalised(layout: Layout, u: Rows, x: Rows, lower: Rows, upper: Rows) -> Rows:
    """The last step of every method: rows as they can be written down.

    A search in single precision returns what it did not move as the rounded value; the person's own is put back.
    """
    untouched = u.astype(np.float32) == x.astype(np.float32)
    return snap(layout, np.where(untouched, x, u), x, lower, upper)
