"""Ranges of plans on models that can be written down, against every value asked one by one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpae.search.ranges import Ranges, ranges_of
from gpae.search.refine import Judge
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Continuous, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Continuous(name="income", minimum=0.0, maximum=100.0),
        Continuous(name="rate", minimum=0.0, maximum=10.0, step=0.25),
        Integer(name="debt", minimum=0, maximum=50),
        Integer(name="record", minimum=0, maximum=40, codes=(-9.0,)),
        Categorical(name="job", levels=("cook", "clerk", "judge")),
        Ordinal(name="school", levels=("none", "middle", "high", "college")),
    ),
    label="loan",
    favourable="yes",
)
INCOME, RATE, DEBT, RECORD, JOB, SCHOOL = range(6)
ENDS = np.array([[0, 0, 0, 0, 0, 0], [100, 10, 50, 40, 2, 3]], dtype=float)
LAYOUT = Layout.fit(SCHEMA, list(ENDS.T))
PERSON = [50.0, 9.0, 45.0, 5.0, 0.0, 0.0]
PLAN = [50.0, 4.0, 25.0, 5.0, 0.0, 0.0]
FINEST = 1e-6
"""The share of the way to the end that is left open."""

Model = Callable[[np.ndarray], np.ndarray]


def between(feature: int, low: float, high: float) -> Model:
    """A model that favours an interval of one feature."""
    return lambda values: np.minimum(values[:, feature] - low, high - values[:, feature]) + 1e-9


def ranges(
    model: Model,
    plans: list[list[float]],
    person: list[int] | None = None,
    people: list[list[float]] | None = None,
    rules: list[Any] | None = None,
) -> Ranges:
    own = np.array(people or [PERSON])
    freedom = Freedom.of(LAYOUT, SCHEMA, read_constraints(rules), LAYOUT.encode(own), own=own)
    judge = Judge(lambda f, p, U: model(f.values(U, p)), np.ones(len(own)), np.zeros(len(own)))
    whose = np.array([0] * len(plans) if person is None else person)
    return ranges_of(freedom, judge, whose, LAYOUT.encode(np.array(plans)))


def plan(**values: float) -> list[float]:
    """The usual person with some values changed."""
    changed = PERSON.copy()
    for name, value in values.items():
        changed[SCHEMA.names.index(name)] = value
    return changed


def of(found: Ranges, feature: int) -> tuple[float, float]:
    """The range of a feature that one plan alone changes."""
    (at,) = np.flatnonzero(found.feature == feature)
    return float(found.low[at]), float(found.high[at])


def test_whole_numbers_end_exactly_where_the_decision_turns() -> None:
    values = [20, 21, 27, 32, 33]
    found = ranges(between(DEBT, 20, 33), [plan(debt=value) for value in values])
    assert found.plan.tolist() == [0, 1, 2, 3, 4]
    assert found.feature.tolist() == [DEBT] * 5
    assert found.low.tolist() == [20] * 5
    assert found.high.tolist() == [33] * 5


def test_every_step_inside_is_accepted_and_the_next_outside_is_not() -> None:
    rng = np.random.default_rng(0)
    grid = np.arange(0, 10.01, 0.25)
    for _ in range(20):
        low, high = np.sort(rng.uniform(0, 8.9, 2))
        inside = grid[(grid >= low) & (grid <= high)]
        if not len(inside):
            continue
        model = between(RATE, low, high)
        found = ranges(model, [plan(rate=value) for value in inside])
        assert set(found.low) == {inside[0]}
        assert set(found.high) == {inside[-1]}
        told = grid[(grid >= found.low[0]) & (grid <= found.high[0])]
        assert (model(np.array([plan(rate=value) for value in told])) > 0).all()


def test_a_number_without_steps_ends_next_to_the_boundary_and_never_beyond() -> None:
    low, high = of(ranges(between(INCOME, 22.2, 71.7), [plan(income=60.0)]), INCOME)
    assert 22.2 - 1e-9 <= low <= 22.2 + 60 * FINEST
    assert 71.7 - 40 * FINEST <= high <= 71.7 + 1e-9


def test_the_plan_lies_inside_its_own_ranges() -> None:
    rng = np.random.default_rng(1)
    plans = np.column_stack(
        [rng.uniform(0, 100, 40), rng.integers(0, 41, 40) / 4, rng.integers(0, 51, 40), rng.integers(0, 41, 40)]
    )
    plans = np.column_stack([plans, rng.integers(0, 3, 40), rng.integers(0, 4, 40)])

    def wavy(values: np.ndarray) -> np.ndarray:
        return 1.05 + np.sin(values[:, :4]).prod(axis=1)

    found = ranges(wavy, plans.tolist())
    number = found.feature < JOB
    value = plans[found.plan, found.feature][number]
    assert (found.low[number] <= value + 1e-9).all()
    assert (found.high[number] >= value - 1e-9).all()
    assert {RATE, DEBT, RECORD} <= set(found.feature)


def test_a_range_does_not_jump_over_a_refusal() -> None:
    def two_islands(values: np.ndarray) -> np.ndarray:
        return np.maximum(between(DEBT, 5, 15)(values), between(DEBT, 25, 40)(values))

    found = ranges(two_islands, [plan(debt=30), plan(debt=10)])
    assert found.low.tolist() == [25, 5]
    assert found.high.tolist() == [40, 15]


def test_a_refusal_far_narrower_than_what_is_allowed_is_not_jumped_over_either() -> None:
    def torn(values: np.ndarray) -> np.ndarray:
        return np.where((values[:, INCOME] > 1.20) & (values[:, INCOME] < 1.22) | (values[:, INCOME] > 2.0), -1.0, 1.0)

    low, high = of(ranges(torn, [plan(income=1.0)]), INCOME)
    assert low == 0
    assert 1.2 - 100 * FINEST <= high <= 1.2


def test_a_model_that_favours_one_value_leaves_no_range() -> None:
    assert of(ranges(between(DEBT, 25, 25), [plan(debt=25)]), DEBT) == (25, 25)


def test_a_model_that_favours_everything_leaves_the_whole_range() -> None:
    found = ranges(lambda values: np.ones(len(values)), [plan(income=60.0, rate=4.0, debt=25)])
    assert found.feature.tolist() == [INCOME, RATE, DEBT]
    np.testing.assert_allclose(found.low, [0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(found.high, [100, 10, 50], atol=1e-9)


def test_only_one_number_moves_at_a_time() -> None:
    """With both as in the plan, rate + debt = 29; what one gains the other must not have to pay."""
    found = ranges(lambda values: 32.0 - values[:, RATE] - values[:, DEBT] + 1e-9, [PLAN])
    assert of(found, RATE) == (0, 7)
    assert of(found, DEBT) == (0, 28)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("debt <= 0.6 * income", (10, 30)),
        ({"kind": "range", "feature": "debt", "minimum": 22, "maximum": 26}, (22, 26)),
        ({"kind": "within", "feature": "debt", "down": 23, "up": 0}, (22, 33)),
        ({"kind": "step", "feature": "debt", "step": 5}, (10, 30)),
    ],
    ids=str,
)
def test_a_constraint_cuts_the_range(rule: Any, expected: tuple[float, float]) -> None:
    found = ranges(between(DEBT, 10, 33), [plan(debt=25)], rules=[rule])
    assert of(found, DEBT) == expected


def test_each_person_has_bounds_of_their_own() -> None:
    rule = {"kind": "range", "feature": "debt", "maximum": [30, 28]}
    people = [plan(debt=45), plan(debt=44)]
    plans = [plan(debt=25), plan(debt=26), plan(debt=27)]
    found = ranges(between(DEBT, 10, 33), plans, [1, 0, 1], people, [rule])
    assert found.high.tolist() == [28, 30, 28]


def test_what_may_only_rise_has_no_range_below_the_person() -> None:
    rule = {"kind": "direction", "feature": "record", "change": "up"}
    assert of(ranges(between(RECORD, 1, 30), [plan(record=20)], rules=[rule]), RECORD) == (5, 30)


def test_a_range_of_amounts_does_not_end_in_a_code() -> None:
    found = ranges(lambda values: 30.0 - values[:, RECORD], [plan(record=20)])
    assert of(found, RECORD) == (0, 29)


def test_a_code_is_a_state_and_has_no_range() -> None:
    found = ranges(lambda values: 30.0 - values[:, RECORD], [plan(record=-9)])
    assert of(found, RECORD) == (-9, -9)


def test_levels_that_would_do_are_those_that_the_model_accepts() -> None:
    def model(values: np.ndarray) -> np.ndarray:
        return values[:, SCHOOL] + 2.0 * (values[:, JOB] == 1) + 1.5 * (values[:, JOB] == 2) - 3.0

    found = ranges(model, [plan(job=1, school=2)])
    by_feature = dict(zip(found.feature.tolist(), found.levels, strict=True))
    for feature, n in ((JOB, 3), (SCHOOL, 4)):
        tried = np.array([plan(job=1, school=2)] * n)
        tried[:, feature] = np.arange(n)
        mask = by_feature[feature]
        assert mask is not None
        np.testing.assert_array_equal(mask, model(tried) > 0)
        assert 0 < mask.sum() < n
    assert found.low.tolist() == found.high.tolist() == [1, 2]


def test_levels_that_a_constraint_closes_would_not_do() -> None:
    rules = [{"kind": "one_of", "feature": "job", "levels": ["clerk", "cook"]}]
    (mask,) = ranges(lambda values: np.ones(len(values)), [plan(job=1)], rules=rules).levels
    assert mask is not None
    assert mask.tolist() == [True, True, False]


def test_numbers_have_no_levels_and_what_stays_is_not_listed() -> None:
    found = ranges(lambda values: np.ones(len(values)), [PLAN, PERSON])
    assert found.plan.tolist() == [0, 0]
    assert found.levels == [None, None]
