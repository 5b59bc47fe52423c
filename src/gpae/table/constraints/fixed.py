"""Features that keep their value."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from gpae.table.change import Change
from gpae.table.constraint import Array, Constraint, Mask, changed, position

if TYPE_CHECKING:
    from gpae.table.schema import Feature, Schema

__all__ = ["Fixed"]


class Fixed(Constraint):
    """These features do not change."""

    kind: Literal["fixed"] = "fixed"
    features: tuple[str, ...] = Field(min_length=1)

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return self.features

    def tightened(self, feature: "Feature") -> "Feature":
        """The feature, fixed."""
        return feature.model_copy(update={"change": Change.fixed}) if feature.name in self.features else feature

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans change one of them."""
        at = [position(schema, name, self) for name in self.features]
        return np.asarray(changed(own[:, at], plan[:, at]).any(axis=1))

    def words(self) -> str:
        """What it says, as part of a sentence."""
        return f"{' and '.join(self.features)} must not change"
