"""How hard a feature is to change."""

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from gpae.table.constraint import Array, Constraint, Mask

if TYPE_CHECKING:
    from gpae.table.schema import Schema

__all__ = ["Cost"]


class Cost(Constraint):
    """Weights of the features in the cost of a plan; 1 for those that are not named.

    It forbids nothing: plans are searched and ordered by it.
    """

    kind: Literal["cost"] = "cost"
    weights: dict[str, Annotated[FiniteFloat, Field(gt=0)]] = Field(min_length=1)

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return tuple(self.weights)

    def of(self, schema: "Schema") -> Array:
        """The weight of each feature (F)."""
        return np.array([self.weights.get(name, 1.0) for name in schema.names])

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """None is."""
        return np.zeros(len(plan), dtype=np.bool_)

    def words(self) -> str:
        """What it says, as part of a sentence."""
        return "changes cost " + ", ".join(f"{name} x {weight:g}" for name, weight in self.weights.items())
