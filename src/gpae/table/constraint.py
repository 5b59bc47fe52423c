"""The contract of a constraint: what every plan must obey, said in the user's units.

A constraint is written by people, in a schema file or at a call, and is one small model with three duties: to refuse
what makes no sense for a table, to narrow what each feature may become on its own, and to judge finished plans. What
ties features together says so in a form that the search can use: as weighted sums (:class:`Sums`), for one.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpae.errors import InputError
from gpae.table.frozen import Frozen
from gpae.table.levels import closest, find_level, listed

if TYPE_CHECKING:
    from gpae.table.schema import Feature, Schema

__all__ = [
    "Array",
    "Constraint",
    "Mask",
    "People",
    "Sums",
    "changed",
    "is_number",
    "judged",
    "position",
    "rank",
    "refuse_numbers",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class People:
    """Who asks, and what each feature of theirs may become on its own; constraints narrow it one after the other.

    Everything is in the user's units: numbers as they are, levels by rank, NaN where missing.
    """

    schema: "Schema"
    own: Array
    """B x F: what they are."""
    low: Array
    high: Array
    """B x F each; infinite where nothing is said."""
    open: list[Mask | None]
    """For each feature with levels B x L: which of them a plan may have."""

    @classmethod
    def free(cls, schema: "Schema", own: Array) -> "People":
        """Nobody is bound yet by more than the schema's own words about each feature."""
        levels = [feature.levels for feature in schema.features]
        open_ = [np.ones((len(own), len(each)), dtype=np.bool_) if each else None for each in levels]
        return cls(schema, own, np.full_like(own, -np.inf), np.full_like(own, np.inf), open_)

    def at_least(self, feature: int, bound: Array) -> None:
        """Raise the least value; a NaN in ``bound`` (B) says nothing."""
        self.low[:, feature] = np.fmax(self.low[:, feature], bound)

    def at_most(self, feature: int, bound: Array) -> None:
        """Lower the largest value; a NaN in ``bound`` (B) says nothing."""
        self.high[:, feature] = np.fmin(self.high[:, feature], bound)

    def only(self, feature: int, levels: Mask) -> None:
        """Close the levels that are not among these (B x L)."""
        mask = self.open[feature]
        assert mask is not None
        mask &= levels


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Weighted sums of features that must lie between two values: low <= V weights' <= high."""

    weights: Array
    """R x F."""
    low: Array
    high: Array

    @classmethod
    def none(cls, n_features: int) -> "Sums":
        """No sum at all."""
        return cls(np.zeros((0, n_features)), np.zeros(0), np.zeros(0))

    def __len__(self) -> int:
        return len(self.low)


class Constraint(Frozen):
    """What every plan must obey; sub-classes say what."""

    kind: str

    def to_dict(self) -> dict[str, Any]:
        """The constraint as plain JSON values, without what is left at its default."""
        return {"kind": self.kind, **self.model_dump(mode="json", exclude_defaults=True)}

    @abstractmethod
    def about(self) -> tuple[str, ...]:
        """Names of the features that it speaks of."""

    def check(self, schema: "Schema") -> None:
        """Refuse names that are no features, and what makes no sense for their kinds."""
        for name in self.about():
            position(schema, name, self)

    def settled(self, schema: "Schema") -> "Constraint":
        """The constraint with what it leaves to the schema filled in, before others tighten the schema."""
        return self

    def tightened(self, feature: "Feature") -> "Feature":
        """What it leaves of a feature for everybody: which way it may change, and in which steps."""
        return feature

    def narrow(self, people: People) -> None:
        """Narrow what a feature of these people may become on its own."""

    def sums(self, schema: "Schema") -> Sums:
        """The part that ties numbers together in weighted sums."""
        return Sums.none(len(schema.features))

    def check_people(self, n: int) -> None:
        """Refuse what is said of each person for another number of them."""

    def of_rows(self, rows: NDArray[np.intp]) -> "Constraint":
        """The constraint for some of the people, who may come more than once."""
        return self

    @abstractmethod
    def broken(self, own: Array, plan: Array, schema: "Schema") -> Mask:
        """Which plans (B x F, user's values) of these people do not obey it."""

    @abstractmethod
    def words(self) -> str:
        """What it says, as part of a sentence."""


def position(schema: "Schema", name: str, constraint: Constraint) -> int:
    """Where a feature stands in the schema; an unknown name is an error."""
    if name not in schema.names:
        raise InputError(
            f"the constraint {constraint.words()!r} names {name!r}, which is no feature; "
            f"{closest(name, schema.names)}the features are {listed(schema.names, 50)}"
        )
    return schema.names.index(name)


def is_number(feature: "Feature") -> bool:
    """Whether a feature is an amount, not a level."""
    return feature.kind in ("continuous", "integer")


def refuse_numbers(feature: "Feature", constraint: Constraint) -> None:
    """A number where levels are meant is an error."""
    if is_number(feature):
        raise InputError(
            f"the constraint {constraint.words()!r} needs levels; {feature.name!r} is {feature.kind}: use a range"
        )


def rank(feature: "Feature", level: Any, constraint: Constraint) -> int:
    """Which of a feature's levels a value is; an unknown one is an error."""
    levels = feature.levels
    found = find_level(levels, level)
    if found is None:
        raise InputError(
            f"the constraint {constraint.words()!r} names {level!r}, which is no level of {feature.name!r}; "
            f"{closest(str(level), [str(one) for one in levels])}the levels are {listed(levels)}"
        )
    return found


def changed(own: Array, plan: Array) -> Mask:
    """Which values differ; missing equals missing."""
    return np.asarray((own != plan) & ~(np.isnan(own) & np.isnan(plan)))


def judged(feature: "Feature", own: Array, plan: Array) -> Mask:
    """Which values of a plan a rule about amounts applies to.

    A state that a person is in already, such as "no record" or no value at all, may stay; to turn into one is no way
    around a rule.
    """
    amounts = ~np.isin(plan, feature.codes)
    return np.asarray(~np.isnan(plan) & (amounts | changed(own, plan)))
