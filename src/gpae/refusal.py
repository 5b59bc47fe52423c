"""Why a model refuses: the features in which a person is unlike those whom it favours, by what that costs.

Reasons are kept apart from plans: what weighs most may be what cannot change. A feature's weight is the mean change of
the logit when that feature alone is taken from favourable people, one after the other, and all else stays.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpae.search.refine import Logits
from gpae.table.constraint import Array, is_number
from gpae.table.freedom import Freedom

__all__ = ["Reason", "reasons_for"]

_OTHERS = 30
"""Favourable people whose values are tried."""
_MOST = 3
"""Reasons that each person is told."""
_LEAST = 1e-9
"""Weights below are what a mean loses by rounding: the feature does not count."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One feature of one person that speaks against a yes."""

    person: int
    feature: int
    value: float
    usual: float
    """The median, or the most common level, of the favourable people; a rank for a level."""
    weight: float
    """By how much the logit rises, on average, with the values of favourable people."""


def reasons_for(logits: Logits, freedom: Freedom, people: NDArray[np.intp], favourable: Array) -> list[Reason]:
    """The main reasons of some people, each person's weightiest first; none of a weight below or at 0."""
    if not len(people) or not len(favourable):
        return []
    others = favourable[np.linspace(0, len(favourable) - 1, min(_OTHERS, len(favourable))).astype(int)]
    said = logits(freedom, people, freedom.x[people])
    every = range(len(freedom.layout.features))
    weight = np.stack([_weight(logits, freedom, people, others, i, said) for i in every], axis=1)
    values = freedom.layout.to_user(favourable)
    usual = [_usual(values[:, i], is_number(feature)) for i, feature in enumerate(freedom.schema.features)]
    # who has what is usual is not refused for it, even if some of the favoured have more
    weight[freedom.own[people] == np.array(usual)] = 0.0
    order = np.argsort(-weight, axis=1, kind="stable")[:, :_MOST]
    return [
        Reason(int(person), int(i), float(freedom.own[person, i]), usual[i], float(weight[at, i]))
        for at, person in enumerate(people)
        for i in order[at]
        if weight[at, i] > _LEAST
    ]


def _weight(logits: Logits, freedom: Freedom, people: NDArray[np.intp], others: Array, i: int, said: Array) -> Array:
    """What a feature costs each person."""
    columns = freedom.layout.features[i].columns
    trial = np.repeat(freedom.x[people], len(others), axis=0)
    trial[:, columns] = np.tile(others[:, columns], (len(people), 1))
    risen = logits(freedom, np.repeat(people, len(others)), trial).reshape(len(people), -1)
    return np.asarray(risen.mean(axis=1) - said)


def _usual(values: Array, number: bool) -> float:
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan")
    return (
        float(np.quantile(known, 0.5, method="nearest")) if number else float(np.bincount(known.astype(int)).argmax())
    )
