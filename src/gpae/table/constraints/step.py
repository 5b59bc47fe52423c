"""A number that moves in steps."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from gpae.errors import InputError
from gpae.table.constraint import Array, Constraint, Mask, changed, is_number, judged, position

if TYPE_CHECKING:
    from gpae.table.schema import Feature, Schema

__all__ = ["Step"]

_SLACK = 1e-6
"""Of a step: what arithmetic with decimals may lose."""


class Step(Constraint):
    """A number that changes, changes to ``start``, ``start + step``, ``start + 2 step``, ...

    ``start`` None: the least value of the schema.
    """

    kind: Literal["step"] = "step"
    feature: str
    step: FiniteFloat = Field(gt=0)
    start: FiniteFloat | None = None

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return (self.feature,)

    def check(self, schema: "Schema") -> None:
        """Refuse levels, and steps that miss the values that the feature can take."""
        super().check(schema)
        feature = schema[self.feature]
        if not is_number(feature):
            raise InputError(f"the constraint {self.words()!r} needs a number; {self.feature!r} is {feature.kind}")
        finer = getattr(feature, "step", None)
        offset = self._start(feature) - feature.minimum
        if finer is not None and not (_whole(self.step / finer) and _whole(offset / finer)):
            raise InputError(
                f"the constraint {self.words()!r} does not fit {self.feature!r}, which moves in steps of {finer:g} "
                f"from {feature.minimum:g}; use a multiple of that step"
            )

    def _start(self, feature: "Feature") -> float:
        return float(feature.minimum if self.start is None else self.start)

    def settled(self, schema: "Schema") -> "Step":
        """With the schema's least value as its start: a second step on the same feature moves that value."""
        return self.model_copy(update={"start": self._start(schema[self.feature])})

    def tightened(self, feature: "Feature") -> "Feature":
        """The feature on the coarser grid, which begins at the first value of it in the range."""
        if feature.name != self.feature:
            return feature
        start, low = self._start(feature), feature.minimum
        first = start + np.ceil((low - start) / self.step - _SLACK) * self.step
        first, step = (round(first), round(self.step)) if feature.kind == "integer" else (float(first), self.step)
        return feature.model_copy(update={"minimum": first, "step": step})

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans change to a value between two steps."""
        at = position(schema, self.feature, self)
        before, after = own[:, at], plan[:, at]
        moved = changed(before, after) & judged(schema.features[at], before, after)
        steps = (np.where(moved, after, 0.0) - self._start(schema.features[at])) / self.step
        return np.asarray(moved & (np.abs(steps - np.rint(steps)) > _SLACK))

    def words(self) -> str:
        """What it says, as part of a sentence."""
        start = "" if self.start is None else f" from {self.start:g}"
        return f"{self.feature} moves in steps of {self.step:g}{start}"


def _whole(number: float) -> bool:
    return abs(number - round(number)) <= _SLACK
