"""A feature that takes one of a few levels."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from gpae.table.constraint import Array, Constraint, Mask, People, position, rank, refuse_numbers
from gpae.table.levels import Level, listed

if TYPE_CHECKING:
    from gpae.table.schema import Schema

__all__ = ["OneOf"]


class OneOf(Constraint):
    """A plan has one of these levels; who has another one has to change it."""

    kind: Literal["one_of"] = "one_of"
    feature: str
    levels: tuple[Level, ...] = Field(min_length=1)

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return (self.feature,)

    def check(self, schema: "Schema") -> None:
        """Refuse numbers, and levels that the feature does not have."""
        super().check(schema)
        refuse_numbers(schema[self.feature], self)
        self._allowed(schema)

    def _allowed(self, schema: "Schema") -> Mask:
        """Which of the feature's levels (L) are among these."""
        feature = schema[self.feature]
        mask = np.zeros(len(feature.levels), dtype=np.bool_)
        mask[[rank(feature, level, self) for level in self.levels]] = True
        return mask

    def narrow(self, people: People) -> None:
        """Close the other levels."""
        allowed = self._allowed(people.schema)
        people.only(
            position(people.schema, self.feature, self), np.broadcast_to(allowed, (len(people.own), len(allowed)))
        )

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans have another level; a person without any may stay so."""
        value = plan[:, position(schema, self.feature, self)]
        known = ~np.isnan(value)
        return np.asarray(known & ~self._allowed(schema)[np.where(known, value, 0).astype(np.intp)])

    def words(self) -> str:
        """What it says, as part of a sentence."""
        return f"{self.feature} is one of {listed(self.levels)}"
