"""Reasons on a linear model, where what each feature costs can be written down."""

import numpy as np
import pytest

from gpae.refusal import Reason, reasons_for
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Continuous, Integer, Schema

SCHEMA = Schema(
    features=(
        Continuous(name="income", minimum=0.0, maximum=100.0),
        Integer(name="debt", minimum=0, maximum=50),
        Integer(name="years", minimum=0, maximum=20, change="fixed"),
        Integer(name="shoes", minimum=30, maximum=50),
        Categorical(name="job", levels=("cook", "clerk", "judge")),
    ),
    label="loan",
    favourable="yes",
)
SLOPES = np.array([0.1013, -0.1987, 0.3071, 0.0])
OF_JOB = np.array([0.0, 0.5, 2.0])


def score(values: np.ndarray) -> np.ndarray:
    return values[:, :4] @ SLOPES + OF_JOB[values[:, 4].astype(int)] - 8.0


def table(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ends = ((0, 101), (0, 51), (0, 21), (30, 51), (0, 3))
    return np.stack([rng.integers(*each, n) for each in ends], axis=1).astype(float)


PEOPLE = table(200)
PEOPLE = PEOPLE[score(PEOPLE) < 0][:40]
FAVOURED = table(400, 1)
FAVOURED = FAVOURED[score(FAVOURED) > 0][:25]
LAYOUT = Layout.fit(SCHEMA, list(np.concatenate([PEOPLE, FAVOURED]).T))
COSTS = np.column_stack(
    [
        SLOPES * (FAVOURED[:, :4].mean(axis=0) - PEOPLE[:, :4]),
        OF_JOB[FAVOURED[:, 4].astype(int)].mean() - OF_JOB[PEOPLE[:, 4].astype(int)],
    ]
)
"""What the values of the favoured would add to each person's score, feature by feature."""
USUAL = np.array(
    [*np.quantile(FAVOURED[:, :4], 0.5, axis=0, method="nearest"), np.bincount(FAVOURED[:, 4].astype(int)).argmax()]
)


def logits(freedom: Freedom, person: np.ndarray, U: np.ndarray) -> np.ndarray:
    return score(freedom.values(U, person))


def reasons(people: np.ndarray | None = None, favoured: np.ndarray = FAVOURED) -> list[Reason]:
    freedom = Freedom.of(LAYOUT, SCHEMA, (), LAYOUT.encode(PEOPLE), own=PEOPLE)
    who = np.arange(len(PEOPLE)) if people is None else people
    return reasons_for(logits, freedom, who, LAYOUT.encode(favoured))


def test_weights_are_the_mean_differences_of_the_score() -> None:
    found = reasons()
    assert len(found) > len(PEOPLE)
    for one in found:
        assert one.weight == pytest.approx(COSTS[one.person, one.feature], abs=1e-9)
        assert one.value == PEOPLE[one.person, one.feature]


def test_what_costs_most_comes_first_and_only_what_is_usual_is_left_out() -> None:
    found = reasons()
    usual = PEOPLE == USUAL
    assert (usual & (COSTS > 0)).any()
    for person, costs in enumerate(np.where(usual, 0.0, COSTS)):
        expected = [i for i in np.argsort(-costs) if costs[i] > 1e-9][:3]
        assert [one.feature for one in found if one.person == person] == expected


def test_nobody_is_told_more_than_three_and_nothing_that_does_not_count() -> None:
    found = reasons()
    assert np.bincount([one.person for one in found]).max() == 3
    assert all(one.weight > 0 for one in found)
    assert 3 not in {one.feature for one in found}
    assert (COSTS > 0).sum(axis=1).max() > 3


def test_what_cannot_change_may_be_a_reason() -> None:
    assert 2 in {one.feature for one in reasons()}


def test_usual_is_the_median_or_the_most_common_level() -> None:
    usual = {one.feature: one.usual for one in reasons()}
    assert usual[0] == np.quantile(FAVOURED[:, 0], 0.5, method="nearest")
    assert usual[1] in FAVOURED[:, 1]
    assert usual[4] == np.bincount(FAVOURED[:, 4].astype(int)).argmax()


def test_reasons_are_of_those_who_were_asked_about() -> None:
    some = reasons(np.array([7, 3]))
    assert [one.person for one in some if one.person != 3] == [7] * sum(one.person == 7 for one in some)
    assert [one for one in reasons() if one.person == 3] == [one for one in some if one.person == 3]


def test_of_many_favoured_people_some_spread_evenly_are_looked_at() -> None:
    many = np.repeat(FAVOURED, 40, axis=0)
    for one in reasons(favoured=many):
        assert one.weight == pytest.approx(_cost_against(many[np.linspace(0, len(many) - 1, 30).astype(int)], one))


def _cost_against(favoured: np.ndarray, one: Reason) -> float:
    tried = np.repeat(PEOPLE[[one.person]], len(favoured), axis=0)
    tried[:, one.feature] = favoured[:, one.feature]
    return float(score(tried).mean() - score(PEOPLE[[one.person]])[0])


def test_without_people_or_without_anybody_favoured_there_are_none() -> None:
    assert reasons(np.zeros(0, dtype=np.intp)) == []
    assert reasons(favoured=FAVOURED[:0]) == []
