"""Repair: what comes back obeys everything, is near, and does not depend on who else asks."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpae.search.repair import repaired, snapped
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Continuous, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Integer(name="age", minimum=18, maximum=80),
        Integer(name="debt", minimum=0, maximum=50, codes=(-9.0,)),
        Integer(name="income", minimum=10, maximum=90, step=5),
        Continuous(name="rent", minimum=0.0, maximum=20.0, step=0.01),
        Continuous(name="total", minimum=0.0, maximum=70.0),
        Ordinal(name="degree", levels=("school", "bachelor", "master", "doctor")),
        Categorical(name="job", levels=("a", "b", "c")),
    ),
    label="loan",
    favourable="yes",
)
RULES: list[Any] = [
    "debt <= 0.6 * income",
    "total = debt + rent",
    {"kind": "range", "feature": "age", "minimum": 20, "maximum": 70},
    {"kind": "within", "feature": "income", "up": 30},
    {"kind": "direction", "feature": "age", "change": "up"},
    {"kind": "transitions", "feature": "degree", "allowed": {"bachelor": ["doctor"], "master": []}},
    {"kind": "one_of", "feature": "job", "levels": ["a", "c"]},
    {"kind": "implies", "when": "degree", "then": "age", "then_change": "up", "by": 3},
    {"kind": "implies", "when": "job", "then": "degree"},
    {"kind": "at_most", "changes": 4},
    {"kind": "step", "feature": "debt", "step": 5},
    {"kind": "cost", "weights": {"age": 4.0}},
]


def people(n: int, seed: int = 0) -> np.ndarray:
    """Values that obey the two sums."""
    rng = np.random.default_rng(seed)
    income = 5.0 * rng.integers(4, 17, n)
    debt = np.floor(rng.uniform(0, 0.5, n) * income)
    rent = np.round(rng.uniform(0, 20, n), 2)
    age = rng.integers(20, 66, n).astype(float)
    return np.stack(
        [age, debt, income + 0.0, rent, debt + rent, rng.integers(0, 4, n), rng.integers(0, 2, n) * 2], axis=1
    )


def freedom(rules: list[Any], n: int = 200, seed: int = 0) -> Freedom:
    values = people(n, seed)
    layout = Layout.fit(SCHEMA, list(values.T))
    return Freedom.of(layout, SCHEMA, read_constraints(rules), layout.encode(values))


def shaken(given_: Freedom, size: float = 0.2, seed: int = 1) -> np.ndarray:
    return np.clip(given_.x + np.random.default_rng(seed).normal(0, size, given_.x.shape), 0, 1)


@settings(max_examples=40, deadline=None)
@given(rules=st.lists(st.sampled_from(RULES), unique_by=str, max_size=6), seed=st.integers(0, 10_000))
def test_what_is_called_allowed_obeys_every_rule_bound_and_step(rules: list[Any], seed: int) -> None:
    free = freedom(rules, 40, seed)
    U, allowed = repaired(free, shaken(free, seed=seed))
    part = free.rows(np.flatnonzero(allowed))
    assert not part.broken(U[allowed]).any()
    assert part.layout.is_allowed(U[allowed], part.x, part.lower, part.upper).all()


@pytest.mark.parametrize(
    ("rules", "share"),
    [
        (["debt <= 0.6 * income"], 1.0),
        (["total = debt + rent"], 1.0),
        (["debt <= 0.6 * income", "total = debt + rent"], 0.99),
        ([{"kind": "at_most", "changes": 2}], 1.0),
        ([{"kind": "implies", "when": "degree", "then": "age", "then_change": "up", "by": 3}], 1.0),
        (RULES, 0.6),
    ],
)
def test_most_plans_can_be_brought_back(rules: list[Any], share: float) -> None:
    free = freedom(rules)
    before = free.permits(snapped(free, shaken(free)))
    allowed = repaired(free, shaken(free))[1]
    assert allowed.mean() >= share
    assert allowed.mean() > before.mean()


def test_a_plan_that_obeys_is_left_alone() -> None:
    free = freedom(["debt <= 0.6 * income", "total = debt + rent"])
    fine = free.permits(free.x)
    assert fine.mean() > 0.9
    U, _ = repaired(free, free.x)
    np.testing.assert_array_equal(U[fine], free.x[fine])


def test_a_sum_is_met_by_the_shortest_way() -> None:
    """Against every pair of values on the grid, where both have changed anyhow."""
    free = freedom(["debt <= 0.6 * income"], 60)
    U = snapped(free, shaken(free, 0.4))
    back, allowed = repaired(free, U)
    assert allowed.all()
    debt, income = (side.ravel() for side in np.meshgrid(np.arange(0.0, 51.0), np.arange(10.0, 91.0, 5.0)))
    good = debt <= 0.6 * income
    every = np.zeros((int(good.sum()), len(SCHEMA.features)))
    every[:, 1], every[:, 2] = debt[good], income[good]
    points = free.layout.encode(every)[:, 1:3]
    both = free.layout.changed(U, free.x)[:, [1, 2]].all(axis=1)
    assert both.sum() > 20
    for u, v in zip(U[both], back[both], strict=True):
        shortest = ((points - u[1:3]) ** 2).sum(axis=1).min()
        # rounding to whole steps may cost a step of the coarser number
        assert ((v - u)[1:3] ** 2).sum() <= (np.sqrt(shortest) + 0.09) ** 2


def test_the_feature_that_was_just_moved_stays_and_the_others_give_way() -> None:
    free = freedom(["debt <= 0.6 * income"])
    U = free.x.copy()
    U[:, 1] = 1.0
    kept = np.zeros((len(U), len(SCHEMA.features)), dtype=bool)
    kept[:, 1] = True
    back, allowed = repaired(free, U, kept)
    moved = np.flatnonzero(allowed)
    assert len(moved)
    assert (back[moved, 1] == 1.0).all()


def test_a_plan_is_mended_alike_whoever_stands_beside_it() -> None:
    free = freedom(RULES)
    U = shaken(free)
    together, allowed = repaired(free, U)
    for i in range(0, 200, 17):
        alone, fine = repaired(free.rows(np.array([i])), U[[i]])
        np.testing.assert_array_equal(alone[0], together[i])
        assert fine[0] == allowed[i]


def test_who_is_left_without_a_value_is_told_so() -> None:
    free = freedom([{"kind": "range", "feature": "age", "minimum": 60}, {"kind": "fixed", "features": ["age"]}])
    young = free.own[:, 0] < 60
    np.testing.assert_array_equal(free.hopeless, young)
    assert "age is at least 60" in free.reasons[int(np.flatnonzero(young)[0])]
    assert not repaired(free, free.x)[1][young].any()


@pytest.mark.parametrize("step", [None, 1e-9, 0.1])
def test_a_bound_is_met_exactly_and_on_the_steps(step: float | None) -> None:
    """A bound between two steps, of a number whose range is far larger than its steps."""
    schema = Schema(
        features=(
            Continuous(name="ratio", minimum=0.0, maximum=7030.0, step=step),
            Integer(name="n", minimum=0, maximum=9),
        ),
        label="loan",
        favourable="yes",
    )
    layout = Layout.fit(schema, [np.array([0.0, 7030.0]), np.array([0.0, 9.0])])
    own, bound = np.array([[0.5, 3.0]]), 0.6032894285
    free = Freedom.of(
        layout, schema, read_constraints([{"kind": "range", "feature": "ratio", "maximum": bound}]), layout.encode(own)
    )
    (U,), allowed = repaired(free, layout.encode(np.array([[5000.0, 4.0]])))
    ratio = free.values(U[None])[0, 0]
    assert allowed[0]
    assert ratio == {None: bound, 1e-9: 0.603289428, 0.1: 0.6}[step]


@pytest.mark.parametrize("bound", [0.3, 0.1 + 0.2, 0.3 - 1e-16])
def test_a_step_that_is_the_bound_but_for_its_last_bit_is_allowed(bound: float) -> None:
    schema = Schema(
        features=(Continuous(name="rate", minimum=0.0, maximum=1.0, step=0.1),), label="loan", favourable="yes"
    )
    layout = Layout.fit(schema, [np.array([0.0, 1.0])])
    only = [{"kind": "range", "feature": "rate", "minimum": bound, "maximum": bound}]
    free = Freedom.of(layout, schema, read_constraints(only), layout.encode(np.array([[0.7]])))
    U, allowed = repaired(free, free.x)
    assert allowed[0]
    assert free.values(U)[0, 0] == 0.3
