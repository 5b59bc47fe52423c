"""A feature that goes up only, or down only."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from gpae.errors import InputError
from gpae.table.change import Change
from gpae.table.constraint import Array, Constraint, Mask, position

if TYPE_CHECKING:
    from gpae.table.schema import Feature, Schema

__all__ = ["Direction"]


class Direction(Constraint):
    """A feature changes one way only, seen from the person; levels follow their order."""

    kind: Literal["direction"] = "direction"
    feature: str
    change: Literal["up", "down"]

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return (self.feature,)

    def check(self, schema: "Schema") -> None:
        """Refuse a feature without an order."""
        super().check(schema)
        if schema[self.feature].kind == "categorical":
            raise InputError(
                f"the constraint {self.words()!r} needs an order, which the categorical column {self.feature!r} lacks; "
                "make the column ordinal in the schema, or say which transitions are allowed"
            )

    def tightened(self, feature: "Feature") -> "Feature":
        """The feature with one way only; fixed, if the other way was all that it had."""
        if feature.name != self.feature:
            return feature
        free = feature.change in (Change.any, Change(self.change))
        return feature.model_copy(update={"change": Change(self.change) if free else Change.fixed})

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans go the other way; who has no value yet may be given any."""
        at = position(schema, self.feature, self)
        before, after = own[:, at], plan[:, at]
        return np.asarray(after < before if self.change == "up" else after > before)

    def words(self) -> str:
        """What it says, as part of a sentence."""
        return f"{self.feature} may only go {self.change}"
