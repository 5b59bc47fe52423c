"""What one person may become, as boxes: levels, codes and missing values are points, numbers intervals.

Each combination of states is a box to begin with. Where numbers go in steps, a box shrinks to those that it holds.
Boxes all over which a rule between numbers is broken, or too much is changed, are dropped; other rules are only asked
about single rows, which is sound: rules can but take rows away.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from gpae.table.constraint import Array, Mask, Sums
from gpae.table.constraints.at_most import AtMost
from gpae.table.freedom import Freedom
from gpae.table.level_block import LevelBlock
from gpae.table.value_block import ValueBlock

__all__ = ["Boxes", "Domain"]

_MOST_ROOTS = 32_768
"""Combinations of states to begin with."""
_MOST_STEPS = 10_000
"""A number that has more is an interval and no more."""
_APART = 1e-9
"""So is one whose encoded steps are closer than this, and hard to tell from rounding."""
_SLACK = 1e-6
"""Relative to the numbers: by how much a box must break a rule to be dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Boxes of the free columns, and what the logit does not exceed on them."""

    lower: Float[Tensor, "n free"]
    upper: Float[Tensor, "n free"]
    bound: Float[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.bound)

    @property
    def width(self) -> Float[Tensor, "n free"]:
        """Of every side."""
        return self.upper - self.lower

    def at(self, index: Tensor | slice) -> "Boxes":
        """Some of them."""
        return Boxes(self.lower[index], self.upper[index], self.bound[index])

    def below(self, bound: Float[Tensor, "..."]) -> "Boxes":
        """With further bounds."""
        return Boxes(self.lower, self.upper, torch.minimum(self.bound, bound))

    def face(self, way: Float[Tensor, "n free"]) -> "Boxes":
        """Their faces, at the upper end of columns where ``way`` is 1, at the lower one where it is -1."""
        lower, upper = torch.where(way > 0, self.upper, self.lower), torch.where(way < 0, self.lower, self.upper)
        return Boxes(lower, upper, self.bound)

    def halved(self, column: Int64[Tensor, " n"]) -> "Boxes":
        """Both halves of each."""
        here = torch.arange(self.lower.shape[1]) == column.unsqueeze(1)
        middle = (self.lower + self.upper) / 2.0
        lower = torch.cat([self.lower, torch.where(here, middle, self.lower)])
        upper = torch.cat([torch.where(here, middle, self.upper), self.upper])
        return Boxes(lower, upper, self.bound.repeat(2))

    @classmethod
    def joined(cls, parts: "Sequence[Boxes]") -> "Boxes":
        """All together."""
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in ("lower", "upper", "bound")))


@dataclass(frozen=True, eq=False)
class Domain:
    """Boxes that hold every row that one person may become."""

    lower: Array
    upper: Array
    """R x D: a box for each combination of the features' states."""
    points: dict[int, Float[Tensor, " p"]]
    """For a column of steps the values that it may take, in order; others may take any between the bounds."""
    rules: "_Rules"

    @classmethod
    def of(cls, person: Freedom) -> "Domain | None":
        """The domain of the one person; None if there are too many combinations."""
        assert len(person) == 1
        parts = [_Setting.of(person, i) for i in range(len(person.layout.features))]
        sizes = [len(part.lower) for part in parts]
        total = math.prod(sizes)
        if total > _MOST_ROOTS:
            return None
        index = np.unravel_index(np.arange(total), [max(size, 1) for size in sizes])
        lower, upper = (
            np.concatenate([getattr(part, end)[at] for part, at in zip(parts, index, strict=True)], axis=1)
            for end in ("lower", "upper")
        )
        stepped = [(b.start, part.points) for b, part in zip(person.layout.features, parts, strict=True)]
        points = {start: torch.as_tensor(values) for start, values in stepped if values is not None}
        return cls(lower, upper, points, _Rules.of(person))

    @cached_property
    def free(self) -> Mask:
        """D: which columns are not the same in all rows."""
        return np.asarray(self.lower.min(axis=0, initial=np.inf) < self.upper.max(axis=0, initial=-np.inf))

    @cached_property
    def fixed(self) -> Array:
        """D: what the other columns are, 0 for the free ones."""
        return np.where(self.free, 0.0, self.lower[:1].sum(axis=0))

    @property
    def wide(self) -> NDArray[np.intp]:
        """Which of the free columns are more than a point in some box."""
        return np.flatnonzero((self.lower < self.upper)[:, self.free].any(axis=0))

    @property
    def far(self) -> Array:
        """D: how far from 0 each column goes."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper)).max(axis=0, initial=0.0)

    def roots(self) -> "Boxes":
        """The boxes in the free columns."""
        lower, upper = (torch.as_tensor(end[:, self.free]) for end in (self.lower, self.upper))
        return Boxes(lower, upper, torch.full((len(lower),), torch.inf, dtype=torch.float64))

    def rows(self, values: Float[Tensor, "n free"]) -> Array:
        """Rows (n x D) with these values in the free columns."""
        U = np.repeat(self.fixed[None], len(values), axis=0)
        U[:, self.free] = values.numpy()
        return U

    def shrunk(self, boxes: "Boxes") -> "Boxes":
        """Without what no row can be in: boxes shrink to the steps that they hold, and are dropped if rules forbid."""
        lower, upper = boxes.lower.clone(), boxes.upper.clone()
        end = torch.full((1,), torch.inf, dtype=torch.float64)
        for place, column in enumerate(np.flatnonzero(self.free).tolist()):
            if column in self.points:
                points = self.points[column]
                first = torch.searchsorted(points, lower[:, place].contiguous())
                last = torch.searchsorted(points, upper[:, place].contiguous(), right=True)
                lower[:, place] = torch.cat([points, end])[first]
                upper[:, place] = torch.cat([-end, points])[last]
        kept = (lower <= upper).all(dim=1)
        lower, upper, bound = lower[kept], upper[kept], boxes.bound[kept]
        return Boxes(lower, upper, bound).at(torch.as_tensor(self.rules.leave(self.rows(lower), self.rows(upper))))


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """What ties features together and can be said of a box: sums of numbers, and how many features may change."""

    person: Freedom
    sums: Sums
    """Those that bind in any case: they do not apply where one of their numbers is missing or a code."""
    limits: tuple[AtMost, ...]

    @classmethod
    def of(cls, person: Freedom) -> "_Rules":
        """The rules of the one person."""
        sums = person.sums
        stated = [isinstance(block, ValueBlock) and len(block.grid.codes) > 0 for block in person.layout.features]
        binding = ~(sums.weights != 0.0)[:, np.array(stated) | np.isnan(person.own[0])].any(axis=1)
        sums = Sums(sums.weights[binding], sums.low[binding], sums.high[binding])
        return cls(person, sums, tuple(rule for rule in person.constraints if isinstance(rule, AtMost)))

    def leave(self, lower: Array, upper: Array) -> Mask:
        """Which boxes (n x D) may hold a row that obeys."""
        good = np.ones(len(lower), dtype=np.bool_)
        if not len(self.sums) and not self.limits:
            return good
        low, high = self._numbers(lower), self._numbers(upper)
        size = np.maximum(np.abs(low), np.abs(high))
        weights = self.sums.weights.T
        plus, minus = weights.clip(min=0.0), weights.clip(max=0.0)
        slack = _SLACK * (1.0 + size @ np.abs(weights))
        good &= (low @ plus + high @ minus <= self.sums.high + slack).all(axis=1)
        good &= (high @ plus + low @ minus >= self.sums.low - slack).all(axis=1)
        own, slack = self._numbers(self.person.x), _SLACK * (1.0 + size)
        moved = (low > own + slack) | (high < own - slack) | self._switched(lower, upper)
        for rule in self.limits:
            good &= moved[:, rule.counted(self.person.schema)].sum(axis=1) <= rule.changes
        return good

    def _numbers(self, U: Array) -> Array:
        """n x F: numbers and ranks in the user's units, in which they keep their order; 0 for one-hot groups."""
        blocks, zero = self.person.layout.features, np.zeros(len(U))
        return np.stack(
            [b.scaling.to_user(U[:, b.start]) if isinstance(b, ValueBlock) else zero for b in blocks], axis=1
        )

    def _switched(self, lower: Array, upper: Array) -> Mask:
        """n x F: whose level, or whether there is a value at all, is another all over the box."""
        layout, x = self.person.layout, self.person.x
        outside = layout.discrete & ((lower > x + 0.5) | (upper < x - 0.5))
        return np.stack([outside[:, block.columns].any(axis=1) for block in layout.features], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Setting:
    """What one feature may become: boxes of its columns (p x w), and for steps the values of the first of them."""

    lower: Array
    upper: Array
    points: Array | None = None

    @classmethod
    def of(cls, person: Freedom, i: int) -> "_Setting":
        """Each level is a point; so is each state of a number, beside the interval of its amounts."""
        block = person.layout.features[i]
        x, lower, upper = (part[:, block.columns] for part in (person.x, person.lower, person.upper))
        if isinstance(block, LevelBlock):
            every = np.eye(block.width)
            levels = every[block.allowed(every, *(np.repeat(part, len(every), axis=0) for part in (x, lower, upper)))]
            return cls(levels, levels)
        number = _Number(block, x, lower, upper, person.open[i])
        states, (low, high), points = number.states(), number.amounts(), number.steps()
        if points is not None:
            low, high = points.min(initial=np.inf), points.max(initial=-np.inf)
            points = np.union1d(points, states[:, 0])
        amounts = [number.known(np.array([end] if low <= high else [])) for end in (low, high)]
        lower, upper = (np.concatenate([states, part]) for part in amounts)
        return cls(lower, upper, points)


@dataclass(frozen=True, slots=True, eq=False)
class _Number:
    """A feature of one value column: what the person has there, its bounds (1 x w each), and the ranks left open."""

    block: ValueBlock
    x: Array
    lower: Array
    upper: Array
    open: Mask | None

    def known(self, values: Array) -> Array:
        """Encoded values as settings (p x w): none is missing."""
        return np.stack([values, np.zeros_like(values)][: self.block.width], axis=1)

    def _allowed(self, settings: Array) -> Array:
        many = (np.repeat(part, len(settings), axis=0) for part in (self.x, self.lower, self.upper))
        return np.unique(settings[self.block.allowed(settings, *many)], axis=0)

    @property
    def _is_state(self) -> bool:
        value = self.block.decode(self.x)[0]
        return bool(np.isnan(value) or value in self.block.grid.codes)

    def states(self) -> Array:
        """The codes that the person may take, and to be without a value, if that is so already."""
        codes = self.known(self.block.scaling.to_unit(self.block.grid.codes))
        return self._allowed(np.concatenate([codes, self.x]) if self._is_state else codes)

    def amounts(self) -> tuple[float, float]:
        """The least and the largest amount; there is none if the first is above the second."""
        if self.block.missing and self.lower[0, 1] > 0.0:  # what is missing must stay so
            return np.inf, -np.inf
        low, high = float(self.lower[0, 0]), float(self.upper[0, 0])
        if not self.block.grid.codes:
            return low, high
        # beside codes the range reaches as far as the person does, unless the person's value is a state
        reach = self.block.scaling.to_unit([self.block.grid.minimum, self.block.grid.maximum])
        reach = reach if self._is_state else np.append(reach, self.x[0, 0])
        return max(low, float(reach.min())), min(high, float(reach.max()))

    def steps(self) -> Array | None:
        """The amounts one by one; None if they are no steps, or too many, or too close to be told apart."""
        grid, to_unit, (low, high) = self.block.grid, self.block.scaling.to_unit, self.amounts()
        if grid.step is None or low > high:
            return None
        first, last = np.floor((self.block.scaling.to_user([low, high]) - grid.minimum) / grid.step)
        if last - first > _MOST_STEPS:
            return None
        # a bound that misses a step by rounding stands for it, as it does in the block
        values = np.clip(to_unit(grid.at(np.arange(first - 1.0, last + 3.0))), low, high)
        values = values if self._is_state else np.append(values, self.x[0, 0])
        points = self._allowed(self.known(values))
        if self.open is not None:
            points = points[self.open[0, self.block.decode(points).astype(np.intp)]]
        return points[:, 0] if (np.diff(points[:, 0]) > _APART).all() else None
