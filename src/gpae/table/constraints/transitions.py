"""From which level a person may go to which others."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from gpae.table.constraint import Array, Constraint, Mask, People, position, rank, refuse_numbers
from gpae.table.levels import Level, listed

if TYPE_CHECKING:
    from gpae.table.schema import Schema

__all__ = ["Transitions"]


class Transitions(Constraint):
    """From a level of ``allowed`` a person may go to those listed behind it, or stay.

    ``otherwise`` is about the levels that are not listed: ``"any"``, go anywhere; ``"none"``, stay. A level that is not
    text is written as its text.
    """

    kind: Literal["transitions"] = "transitions"
    feature: str
    allowed: dict[str, tuple[Level, ...]]
    otherwise: Literal["any", "none"] = "any"

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return (self.feature,)

    def check(self, schema: "Schema") -> None:
        """Refuse numbers, and levels that the feature does not have."""
        super().check(schema)
        refuse_numbers(schema[self.feature], self)
        self.ways(schema)

    def ways(self, schema: "Schema") -> Mask:
        """L x L: from which level to which."""
        feature = schema[self.feature]
        n = len(feature.levels)
        ways = np.full((n, n), self.otherwise == "any")
        for origin, targets in self.allowed.items():
            row = rank(feature, origin, self)
            ways[row] = False
            ways[row, [rank(feature, level, self) for level in targets]] = True
        np.fill_diagonal(ways, True)
        return ways

    def _from(self, schema: "Schema", own: Array) -> Mask:
        """B x L: where each can go; who has no level yet can go anywhere."""
        known = ~np.isnan(own)
        return np.asarray(self.ways(schema)[np.where(known, own, 0).astype(np.intp)] | ~known[:, None])

    def narrow(self, people: People) -> None:
        """Close the levels that cannot be reached."""
        at = position(people.schema, self.feature, self)
        people.only(at, self._from(people.schema, people.own[:, at]))

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans go where no way leads."""
        at = position(schema, self.feature, self)
        value = plan[:, at]
        known = ~np.isnan(value)
        reached = np.take_along_axis(
            self._from(schema, own[:, at]), np.where(known, value, 0).astype(np.intp)[:, None], axis=1
        )
        return np.asarray(known & ~reached[:, 0])

    def words(self) -> str:
        """What it says, as part of a sentence."""
        ways = "; ".join(f"from {origin} to {listed(to) or 'nothing else'}" for origin, to in self.allowed.items())
        return f"{self.feature} goes only {ways}"
