"""A limit on how many features change."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from gpae.table.constraint import Array, Constraint, Mask, changed

if TYPE_CHECKING:
    from gpae.table.schema import Schema

__all__ = ["AtMost"]


class AtMost(Constraint):
    """At most ``changes`` features change, of all or of those in ``features``."""

    kind: Literal["at_most"] = "at_most"
    changes: int = Field(ge=0)
    features: tuple[str, ...] | None = Field(default=None, min_length=1)

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return self.features or ()

    def counted(self, schema: "Schema") -> Mask:
        """Which features (F) count."""
        return np.array([self.features is None or name in self.features for name in schema.names])

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans change more."""
        return np.asarray(changed(own, plan)[:, self.counted(schema)].sum(axis=1) > self.changes)

    def words(self) -> str:
        """What it says, as part of a sentence."""
        what = "features" if self.features is None else f"of {', '.join(self.features)}"
        return f"at most {self.changes} {what} change"
