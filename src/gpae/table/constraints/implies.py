"""If one feature changes, another must change with it."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, FiniteFloat

from gpae.errors import InputError
from gpae.table.constraint import Array, Constraint, Mask, changed, position

if TYPE_CHECKING:
    from gpae.table.schema import Schema

__all__ = ["Implies"]

Way = Literal["any", "up", "down"]
_SLACK = 1e-9


class Implies(Constraint):
    """If ``when`` changes, ``then`` must change as well.

    Parameters
    ----------
    when, when_change
        The feature that draws the other along, and which of its changes do so.
    then, then_change
        The feature that must change, and which way.
    by
        By how much at least, in its units; for levels, by how many ranks.
    """

    kind: Literal["implies"] = "implies"
    when: str
    then: str
    when_change: Way = "any"
    then_change: Way = "any"
    by: FiniteFloat = Field(default=0.0, ge=0)

    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""
        return (self.when, self.then)

    def check(self, schema: "Schema") -> None:
        """Refuse ways and amounts of features without an order."""
        super().check(schema)
        if self.when == self.then:
            raise InputError(f"the constraint {self.words()!r} names the same feature twice")
        ordered = {name: schema[name].kind != "categorical" for name in self.about()}
        asked = {self.when: self.when_change != "any", self.then: self.then_change != "any" or self.by > 0}
        for name, wanted in asked.items():
            if wanted and not ordered[name]:
                raise InputError(f"the constraint {self.words()!r} needs an order, which {name!r} lacks")

    def drawn(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Whose change of ``when`` asks for one of ``then``."""
        at = position(schema, self.when, self)
        return _goes(own[:, at], plan[:, at], self.when_change)

    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans change the one without the other."""
        at = position(schema, self.then, self)
        before, after = own[:, at], plan[:, at]
        enough = np.abs(after - before) >= self.by * (1 - _SLACK)
        followed = _goes(before, after, self.then_change) & (enough | np.isnan(before))
        return self.drawn(own, plan, schema) & ~followed

    def words(self) -> str:
        """What it says, as part of a sentence."""
        when = "changes" if self.when_change == "any" else f"goes {self.when_change}"
        then = "change" if self.then_change == "any" else f"go {self.then_change}"
        by = f" by at least {self.by:g}" if self.by else ""
        return f"if {self.when} {when}, {self.then} must {then}{by}"


def _goes(before: Array, after: Array, way: Way) -> Mask:
    if way == "any":
        return changed(before, after)
    # what was missing and is given now has changed, whichever way was asked
    given = np.isnan(before) & ~np.isnan(after)
    return np.asarray((after > before if way == "up" else after < before) | given)
