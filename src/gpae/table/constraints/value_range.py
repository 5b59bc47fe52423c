"""A feature between two values, the same for all or each person's own."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from gpae.errors import InputError
from gpae.table.constraint import Array, Constraint, Mask, People, is_number, judged, position, rank
from gpae.table.levels import Level

if TYPE_CHECKING:
    from gpae.table.schema import Feature, Schema

__all__ = ["Range"]

Bound: TypeAlias = Level | tuple[Level | None, ...] | None
"""One value for everybody, one a person (None: no bound), or nothing."""


_LAST_BITS = 1e-14
"""Relative to the largest value of a feature: what computing a number may lose."""


class Range(Constraint):
    """A plan's value lies between ``minimum`` and ``maximum``: one value for everybody, or one for each query row.

    Bounds of an ordinal feature are levels of it. Who lies outside has to come inside.
    """

    kind: Literal["range"] = "range"
    feature: str
    minimum: Bound = None
    maximum: Bound = None

    @model_validator(mode="after")
    def _says_something(self) -> "Range":
        if self.minimum is None and self.maximum is None:
            raise ValueError("give a minimum, a maximum, or both")
        return self

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return (self.feature,)

    def check(self, schema: "Schema") -> None:
        """Refuse features without an order, bounds that are no values of them, and ranges that are empty."""
        super().check(schema)
        feature = schema[self.feature]
        if feature.kind == "categorical":
            raise InputError(
                f"the constraint {self.words()!r} needs an order, which the categorical column {self.feature!r} lacks; "
                "list the levels that are allowed instead"
            )
        low, high = (np.atleast_1d(self._numbers(feature, bound)) for bound in (self.minimum, self.maximum))
        if len(low) > 1 and len(high) > 1 and len(low) != len(high):
            raise InputError(f"the constraint {self.words()!r} has {len(low)} minima and {len(high)} maxima")
        empty = np.flatnonzero(low > high)
        if len(empty):
            row = f" for row {empty[0]}" if max(len(low), len(high)) > 1 else ""
            raise InputError(f"the constraint {self.words()!r} allows no value{row}: its minimum is above its maximum")

    def _numbers(self, feature: "Feature", bound: Bound) -> Array:
        """The bound as one number or one a person, NaN where there is none."""
        if isinstance(bound, tuple):
            return np.array([float(self._numbers(feature, each)) for each in bound])
        if bound is None:
            return np.array(np.nan)
        if not is_number(feature):
            return np.array(float(rank(feature, bound, self)))
        if isinstance(bound, str):
            raise InputError(f"the constraint {self.words()!r} needs numbers; {bound!r} is text")
        return np.array(float(bound))

    def check_people(self, n: int) -> None:
        """Refuse more or fewer bounds than people."""
        for bound in (self.minimum, self.maximum):
            if isinstance(bound, tuple) and len(bound) != n:
                raise InputError(
                    f"the constraint on {self.feature!r} has {len(bound)} bounds for {n} rows; "
                    "give one a row, or one for all"
                )

    def _bounds(self, feature: "Feature", n: int) -> tuple[Array, Array]:
        self.check_people(n)
        bounds = [self._numbers(feature, bound) for bound in (self.minimum, self.maximum)]
        low, high = (np.broadcast_to(each, n) for each in bounds)
        return low, high

    def narrow(self, people: People) -> None:
        """Bound the feature."""
        at = position(people.schema, self.feature, self)
        low, high = self._bounds(people.schema.features[at], len(people.own))
        people.at_least(at, low)
        people.at_most(at, high)

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans lie outside."""
        at = position(schema, self.feature, self)
        feature, value = schema.features[at], plan[:, at]
        low, high = self._bounds(feature, len(plan))
        # a step and a bound may be the same number, and differ in how they were computed
        stepped = getattr(feature, "step", None) is not None
        near = _LAST_BITS * max(abs(feature.minimum), abs(feature.maximum)) if stepped else 0.0
        return np.asarray(((value < low - near) | (value > high + near)) & judged(feature, own[:, at], value))

    def of_rows(self, rows: NDArray[np.intp]) -> "Range":
        """The constraint for some of the people, who may come more than once."""
        picked = {
            name: tuple(bound[row] for row in rows)
            for name in ("minimum", "maximum")
            if isinstance(bound := getattr(self, name), tuple)
        }
        return self.model_copy(update=picked) if picked else self

    def words(self) -> str:
        """What it says, as part of a sentence."""
        ends = [
            f"at {word} {'the own bound' if isinstance(bound, tuple) else bound}"
            for word, bound in (("least", self.minimum), ("most", self.maximum))
            if bound is not None
        ]
        return f"{self.feature} is {' and '.join(ends)}"
