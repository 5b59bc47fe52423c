"""A number that moves only so far from where a person is."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from gpae.errors import InputError
from gpae.table.constraint import Array, Constraint, Mask, People, is_number, judged, position

if TYPE_CHECKING:
    from gpae.table.schema import Schema

__all__ = ["Within"]

_SLACK = 1e-9


class Within(Constraint):
    """A number changes by at most ``up`` upwards and at most ``down`` downwards, in its own units.

    With ``relative`` the two are shares of the person's own value: 0.1 is a tenth of it. None: no bound that way.
    """

    kind: Literal["within"] = "within"
    feature: str
    up: FiniteFloat | None = Field(default=None, ge=0)
    down: FiniteFloat | None = Field(default=None, ge=0)
    relative: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> "Within":
        if self.up is None and self.down is None:
            raise ValueError("say how far up, how far down, or both")
        return self

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return (self.feature,)

    def check(self, schema: "Schema") -> None:
        """Refuse levels."""
        super().check(schema)
        if not is_number(schema[self.feature]):
            kind = schema[self.feature].kind
            raise InputError(f"the constraint {self.words()!r} needs a number; {self.feature!r} is {kind}")

    def _bounds(self, own: Array) -> tuple[Array, Array]:
        """The least and the largest value of each person; NaN where there is none."""
        unit = np.abs(own) if self.relative else np.ones_like(own)
        low = np.full_like(own, np.nan) if self.down is None else own - self.down * unit
        high = np.full_like(own, np.nan) if self.up is None else own + self.up * unit
        return low, high

    def narrow(self, people: People) -> None:
        """Bound the feature of everybody who has an amount."""
        at = position(people.schema, self.feature, self)
        feature, own = people.schema.features[at], people.own[:, at]
        low, high = self._bounds(np.where(judged(feature, own, own), own, np.nan))
        people.at_least(at, low)
        people.at_most(at, high)

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans go too far; who has no amount yet may be given any."""
        at = position(schema, self.feature, self)
        before, after = own[:, at], plan[:, at]
        low, high = self._bounds(np.where(judged(schema.features[at], before, before), before, np.nan))
        slack = _SLACK * np.maximum(1.0, np.abs(before))
        return np.asarray((after < low - slack) | (after > high + slack))

    def words(self) -> str:
        """What it says, as part of a sentence."""
        ways = [
            f"{amount * 100:g} % {way}" if self.relative else f"{amount:g} {way}"
            for way, amount in (("up", self.up), ("down", self.down))
            if amount is not None
        ]
        return f"{self.feature} changes by at most {' and '.join(ways)}"
