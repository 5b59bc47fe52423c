"""What each person may become: bounds for every encoded column, and the rules that tie features together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import in_a_row, is_everyone
from gpae.table.change import Change, forbidden
from gpae.table.constraint import Array, Constraint, Mask, People, Sums, judged
from gpae.table.constraints.cost import Cost
from gpae.table.layout import Block, Layout
from gpae.table.level_block import LevelBlock
from gpae.table.schema import Feature, Schema
from gpae.table.value_block import SAME, ValueBlock

__all__ = ["Freedom"]

_LAST_BITS = 1e-12
"""Relative to the largest values of a feature: what a number may lose by being encoded and decoded."""
_FAR = 1e-6
"""Relative to what sums can be: by how much a bound must be out of reach to be called so."""


@dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """B people and where they may go.

    Parameters
    ----------
    layout
        As fitted, with the steps and directions that hold for this question.
    schema
        The features with the same.
    constraints
        Everything that plans must obey.
    x, own
        The people: encoded (B x D), and in the user's units (B x F; ranks for levels, NaN where missing).
    lower, upper
        B x D: the bounds of each encoded column.
    least, most
        B x F: what the constraints say of each number, in the user's units; infinite where they say nothing. Numbers at
        a bound are written as it is, and not as its encoding comes back.
    open
        For a feature with levels that is encoded by rank: which ranks are open (B x L); None for all others, whose
        bounds say everything.
    weights
        F: what a change of each feature costs, 1 by default.
    hopeless
        B: who can become nothing, because some feature is left without any value, or a rule between numbers is out of
        reach; ``reasons`` says which.
    """

    layout: Layout
    schema: Schema
    constraints: tuple[Constraint, ...]
    x: Array
    own: Array
    lower: Array
    upper: Array
    least: Array
    most: Array
    open: tuple[Mask | None, ...]
    weights: Array
    hopeless: Mask
    reasons: NDArray[np.object_]

    @classmethod
    def of(
        cls,
        layout: Layout,
        schema: Schema,
        constraints: Sequence[Constraint],
        x: Array,
        *,
        own: Array | None = None,
        fixed: Mask | None = None,
    ) -> "Freedom":
        """Apply a schema's constraints and those of a call to people.

        ``x`` are their encoded rows; ``own`` their values as they were read, None: as the rows decode. Features that
        are ``fixed`` (F or B x F) are kept, beside those that the schema fixes.
        """
        constraints = (*schema.constraints, *constraints)
        for constraint in constraints:
            constraint.check(schema)
        constraints = tuple(constraint.settled(schema) for constraint in constraints)
        tight = schema.model_copy(update={"features": tuple(_tightened(f, constraints) for f in schema.features)})
        layout = layout.tightened(tight)
        people = People.free(tight, layout.to_user(x) if own is None else own)
        for constraint in constraints:
            constraint.narrow(people)
        lower, upper = layout.box(x, fixed)
        for i in _said_of(people):
            _narrow_box(layout.features[i], people, i, x, lower, upper)
        costs = [constraint.of(tight) for constraint in constraints if isinstance(constraint, Cost)]
        hopeless, reasons = _hopeless(layout, constraints, fixed, x, lower, upper)
        _out_of_reach(layout, people, constraints, lower, upper, hopeless, reasons)
        return cls(
            layout,
            tight,
            constraints,
            x,
            people.own,
            lower,
            upper,
            people.low,
            people.high,
            tuple(m if _needs_mask(b, m) else None for b, m in zip(layout.features, people.open, strict=True)),
            reduce(np.multiply, costs, np.ones(len(tight.features))),
            hopeless,
            reasons,
        )

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, index: NDArray[np.intp]) -> "Freedom":
        """Some of the people, who may come more than once."""
        if is_everyone(index, len(self)):
            return self
        at = in_a_row(index)
        return replace(
            self,
            constraints=tuple(constraint.of_rows(index) for constraint in self.constraints),
            x=self.x[at],
            own=self.own[at],
            lower=self.lower[at],
            upper=self.upper[at],
            least=self.least[at],
            most=self.most[at],
            open=tuple(None if mask is None else mask[at] for mask in self.open),
            hopeless=self.hopeless[at],
            reasons=self.reasons[at],
        )

    def locked(self, features: Mask) -> "Freedom":
        """The same people with some of their features (B x F) kept; who has no allowed value there stays free."""
        parts = (self.x, self.x, self.lower, self.upper)
        fits = np.stack([b.allowed(*(part[:, b.columns] for part in parts)) for b in self.layout.features], axis=1)
        columns = np.repeat(features & fits, [block.width for block in self.layout.features], axis=1)
        lower, upper = (np.where(columns, self.x, bound) for bound in (self.lower, self.upper))
        return replace(self, lower=lower, upper=upper)

    def held(self, features: Mask, reach: Array) -> "Freedom":
        """The same people with the numbers among some of their features (B x F) kept between their own and ``reach``.

        ``reach`` is B x D. What is no number, or has no allowed value there, is kept as by :meth:`locked`.
        """
        number = [isinstance(block, ValueBlock) for block in self.layout.features]
        locked = self.locked(features)
        columns = np.repeat(features & number, [block.width for block in self.layout.features], axis=1)
        shut = columns & (locked.lower == locked.upper) & (self.lower < self.upper)
        lower = np.where(shut, np.clip(np.minimum(self.x, reach), self.lower, self.upper), locked.lower)
        upper = np.where(shut, np.clip(np.maximum(self.x, reach), self.lower, self.upper), locked.upper)
        return replace(self, lower=lower, upper=upper)

    @property
    def sums(self) -> Sums:
        """All weighted sums of the constraints."""
        parts = [constraint.sums(self.schema) for constraint in self.constraints]
        parts = [Sums.none(len(self.schema.features)), *parts]
        return Sums(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("weights", "low", "high")))

    def values(self, U: Array, person: NDArray[np.intp] | None = None) -> Array:
        """n x F: plans (n x D) in the user's units; what does not change is as it was read, bit for bit.

        ``person`` says whose plan each is; None: one of each, in order.
        """
        at = slice(None) if person is None else in_a_row(person)
        values = self.layout.to_user(U)
        for bounds in (self.least, self.most):
            for i in np.flatnonzero(np.isfinite(bounds).any(axis=0)).tolist():
                feature = self.schema.features[i]
                if feature.kind == "continuous" and feature.step is None:  # all others have exact values of their own
                    bound, ends = bounds[at, i], max(abs(feature.minimum), abs(feature.maximum))
                    size = np.maximum(np.where(np.isfinite(bound), np.abs(bound), 0.0), ends)
                    near = np.abs(values[:, i] - bound) <= _LAST_BITS * size
                    values[:, i] = np.where(near, bound, values[:, i])
        return np.where(self.layout.changed(U, self.x[at]), values, self.own[at])

    def broken(self, U: Array) -> Mask:
        """B x C: which constraints the people's plans (B x D) do not obey."""
        if not self.constraints:
            return np.zeros((len(U), 0), dtype=np.bool_)
        plan = self.values(U)
        each = [constraint.broken(self.own, plan, self.schema) for constraint in self.constraints]
        return np.stack(each, axis=1)

    def permits(self, U: Array) -> Mask:
        """Which plans (B x D) these people may become, as they stand."""
        allowed = self.layout.is_allowed(U, self.x, self.lower, self.upper)
        return np.asarray(allowed & ~self.broken(U).any(axis=1))


def _tightened(feature: Feature, constraints: Sequence[Constraint]) -> Feature:
    return reduce(lambda left, constraint: constraint.tightened(left), constraints, feature)


def _said_of(people: People) -> list[int]:
    """The features of which the constraints leave somebody less than there is."""
    bound = np.flatnonzero((np.isfinite(people.low) | np.isfinite(people.high)).any(axis=0))
    narrowed = [i for i, mask in enumerate(people.open) if mask is not None and not mask.all()]
    return sorted({*bound.tolist(), *narrowed})


def _narrow_box(block: Block, people: People, i: int, x: Array, lower: Array, upper: Array) -> None:
    """Put what the constraints leave of one feature into the bounds of its columns."""
    mask = people.open[i]
    if isinstance(block, LevelBlock):
        assert mask is not None
        closed = np.zeros((len(x), block.width), dtype=np.bool_)
        closed[:, : mask.shape[1]] = ~mask
        upper[:, block.columns] = np.where(closed, 0.0, upper[:, block.columns])
        return
    low, high = people.low[:, i], people.high[:, i]
    if mask is not None:
        ranks = np.arange(mask.shape[1], dtype=np.float64)
        low = np.fmax(low, np.where(mask, ranks, np.inf).min(axis=1))
        high = np.fmin(high, np.where(mask, ranks, -np.inf).max(axis=1))
    # who has no amount may stay without: what is said of amounts binds only those who have, or get, one
    state = ~judged(people.schema.features[i], people.own[:, i], people.own[:, i])
    at, own = block.start, x[:, block.start]
    for bounds, limit, tighter, wider in ((lower, low, np.maximum, np.minimum), (upper, high, np.minimum, np.maximum)):
        said = np.isfinite(limit)
        unit = block.scaling.to_unit(np.where(said, limit, 0.0))
        narrowed = np.where(said, tighter(bounds[:, at], unit), bounds[:, at])
        bounds[:, at] = np.where(state, wider(narrowed, own), narrowed)


def _needs_mask(block: Block, mask: Mask | None) -> bool:
    """Whether the open ranks of a feature have gaps, which bounds cannot say."""
    if mask is None or isinstance(block, LevelBlock):
        return False
    first, last = mask.argmax(axis=1), mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
    return bool((mask.sum(axis=1) != np.where(mask.any(axis=1), last - first + 1, 0)).any())


def _hopeless(
    layout: Layout, constraints: Sequence[Constraint], fixed: Mask | None, x: Array, lower: Array, upper: Array
) -> tuple[Mask, NDArray[np.object_]]:
    """Who has a feature that nothing is left of, and in words why."""
    hopeless, reasons = np.zeros(len(x), dtype=np.bool_), np.full(len(x), "", dtype=object)
    kept = np.broadcast_to(False if fixed is None else fixed, (len(x), len(layout.features)))
    outside = (x < lower - SAME) | (x > upper + SAME)
    for i, block in enumerate(layout.features):
        away = np.flatnonzero(outside[:, block.columns].any(axis=1) & ~hopeless)
        if not len(away):  # everybody may stay
            continue
        own, low, high = (part[away][:, block.columns] for part in (x, lower, upper))
        left = block.allowed(block.snap(own, own, low, high), own, low, high)
        said = [constraint.words() for constraint in constraints if block.name in constraint.about()]
        for row in away[~left]:
            change = forbidden(block.name, Change.fixed if kept[row, i] else block.change)
            hopeless[row] = True
            why = dict.fromkeys([*said, *([change] if change else [])])  # a constraint may say the same
            reasons[row] = f"no value of {block.name!r} is left: {' and '.join(why)}"
    return hopeless, reasons


def _out_of_reach(
    layout: Layout,
    people: People,
    constraints: Sequence[Constraint],
    lower: Array,
    upper: Array,
    hopeless: Mask,
    reasons: NDArray[np.object_],
) -> None:
    """Add who cannot meet a rule between numbers with any of the values that are left, each taken for itself."""
    features = people.schema.features
    for constraint in constraints:
        sums = constraint.sums(people.schema)
        for weights, low, high in zip(sums.weights, sums.low, sums.high, strict=True):
            least, most, applies = np.zeros(len(lower)), np.zeros(len(lower)), ~hopeless
            for i in np.flatnonzero(weights).tolist():
                block = layout.features[i]
                assert isinstance(block, ValueBlock)
                ends = [weights[i] * block.scaling.to_user(bound[:, block.start]) for bound in (lower, upper)]
                least, most = least + np.minimum(*ends), most + np.maximum(*ends)
                applies = applies & judged(features[i], people.own[:, i], people.own[:, i])
            slack = _FAR * np.maximum(1.0, np.maximum(np.abs(least), np.abs(most)))
            for row in np.flatnonzero(applies & ((most < low - slack) | (least > high + slack))):
                hopeless[row] = True
                end = f"at most {most[row]:g}" if most[row] < low else f"at least {least[row]:g}"
                reasons[row] = f"no allowed values meet the rule {constraint.words()!r}: its left side is {end}"
