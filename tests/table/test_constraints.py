"""Constraints: what they refuse, what they leave open, and which plans they find broken."""

from typing import Any

import numpy as np
import pytest

from gpae.errors import InputError
from gpae.table.constraint import Constraint, People
from gpae.table.constraints import (
    AtMost,
    Cost,
    Direction,
    Fixed,
    Implies,
    Linear,
    OneOf,
    Range,
    Step,
    Transitions,
    Within,
    read_constraints,
)
from gpae.table.schema import Categorical, Change, Continuous, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Integer(name="age", minimum=18, maximum=90),
        Continuous(name="income", minimum=0.0, maximum=100.0),
        Continuous(name="debt", minimum=0.0, maximum=50.0, codes=(-9.0,)),
        Ordinal(name="degree", levels=("school", "bachelor", "master", "doctor")),
        Categorical(name="job", levels=("clerk", "baker", "judge"), missing=True),
    ),
    label="loan",
    favourable="yes",
)
PERSON = [30.0, 40.0, 10.0, 1.0, 0.0]
NAN = float("nan")


def values(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def broken(constraint: Constraint, *plans: list[float], own: list[float] = PERSON) -> list[bool]:
    constraint.check(SCHEMA)
    plan = values(*plans)
    return list(constraint.broken(np.repeat(values(own), len(plan), axis=0), plan, SCHEMA))


def with_(**changes: float) -> list[float]:
    plan = list(PERSON)
    for name, value in changes.items():
        plan[SCHEMA.names.index(name)] = value
    return plan


CASES: dict[str, tuple[Constraint, list[list[float]], list[list[float]]]] = {
    "fixed": (Fixed(features=("age", "job")), [with_(income=50)], [with_(age=31), with_(job=1), with_(job=NAN)]),
    "up": (Direction(feature="age", change="up"), [with_(age=31), PERSON], [with_(age=29)]),
    "down by rank": (Direction(feature="degree", change="down"), [with_(degree=0)], [with_(degree=2)]),
    "step": (Step(feature="income", step=2.5), [with_(income=42.5), PERSON], [with_(income=41)]),
    "step from": (Step(feature="income", step=10, start=3), [with_(income=43), PERSON], [with_(income=50)]),
    "range": (Range(feature="income", minimum=35, maximum=45), [PERSON, with_(income=45)], [with_(income=45.1)]),
    "range of levels": (Range(feature="degree", maximum="master"), [with_(degree=2)], [with_(degree=3)]),
    "within": (Within(feature="income", up=5), [with_(income=45), with_(income=0)], [with_(income=45.01)]),
    "within a share": (Within(feature="income", down=0.1, relative=True), [with_(income=36)], [with_(income=35)]),
    "one of": (OneOf(feature="job", levels=("clerk", "judge")), [with_(job=2), with_(job=NAN)], [with_(job=1)]),
    "transitions": (
        Transitions(feature="degree", allowed={"bachelor": ("doctor",)}),
        [PERSON, with_(degree=3)],
        [with_(degree=2), with_(degree=0)],
    ),
    "no transitions": (Transitions(feature="job", allowed={}, otherwise="none"), [PERSON], [with_(job=1)]),
    "rule": (Linear.parse("debt <= 0.25 * income"), [PERSON, with_(debt=0)], [with_(debt=10.1), with_(income=39)]),
    "equation": (
        Linear.parse("income = debt + age"),
        [PERSON, with_(income=41, debt=11), with_(income=30.3, debt=0.3)],
        [with_(income=41)],
    ),
    "implies": (
        Implies(when="degree", when_change="up", then="age", then_change="up", by=2),
        [with_(degree=2, age=32), with_(degree=0), with_(age=31)],
        [with_(degree=2), with_(degree=2, age=31), with_(degree=2, age=25)],
    ),
    "at most": (AtMost(changes=1), [PERSON, with_(age=31)], [with_(age=31, job=1)]),
    "at most of some": (
        AtMost(changes=1, features=("age", "job")),
        [with_(age=31, income=1, debt=2)],
        [with_(age=31, job=1)],
    ),
    "cost": (Cost(weights={"age": 2.0}), [with_(age=80)], []),
}


@pytest.mark.parametrize("case", CASES)
def test_plans_that_obey_and_plans_that_do_not(case: str) -> None:
    constraint, good, bad = CASES[case]
    assert broken(constraint, *good) == [False] * len(good)
    if bad:
        assert broken(constraint, *bad) == [True] * len(bad)


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_read_back(case: str) -> None:
    constraint = CASES[case][0]
    assert read_constraints([constraint.to_dict()]) == (constraint,)
    assert constraint.words()


def test_a_state_that_stays_breaks_no_rule_about_amounts_and_is_no_way_around_one() -> None:
    low, rule = Range(feature="debt", minimum=0), Linear.parse("debt >= 5")
    own = with_(debt=-9)
    for constraint in (low, rule):
        assert broken(constraint, own, own=own) == [False]
        assert broken(constraint, own) == [True]
    missing = with_(job=NAN)
    assert broken(OneOf(feature="job", levels=("judge",)), missing, own=missing) == [False]


def test_bounds_may_be_each_persons_own() -> None:
    constraint = Range(feature="age", minimum=(25, None, 31))
    own = np.repeat(values(PERSON), 3, axis=0)
    assert list(constraint.broken(own, own, SCHEMA)) == [False, False, True]
    again = constraint.of_rows(np.array([2, 0, 0]))
    assert list(again.broken(own, own, SCHEMA)) == [True, False, False]
    with pytest.raises(InputError, match="3 bounds for 2 rows"):
        constraint.broken(own[:2], own[:2], SCHEMA)


def test_constraints_narrow_what_a_feature_may_become() -> None:
    people = People.free(SCHEMA, values(PERSON, with_(degree=2, debt=-9)))
    for constraint in (
        Range(feature="income", minimum=20, maximum=60),
        Within(feature="income", up=5),
        Within(feature="debt", up=5, down=1),
        Transitions(feature="degree", allowed={"master": ("doctor",)}),
        OneOf(feature="job", levels=("clerk", "baker")),
    ):
        constraint.narrow(people)
    assert people.low[:, 1].tolist() == [20.0, 20.0]
    assert people.high[:, 1].tolist() == [45.0, 45.0]
    np.testing.assert_array_equal(people.low[:, 2], [9.0, -np.inf])
    degree, job = people.open[3], people.open[4]
    assert degree is not None
    assert job is not None
    assert degree.tolist() == [[True] * 4, [False, False, True, True]]
    assert job.tolist() == [[True, True, False]] * 2


def test_directions_and_steps_tighten_the_feature_for_everybody() -> None:
    age, income = SCHEMA["age"], SCHEMA["income"]
    up, down = Direction(feature="age", change="up"), Direction(feature="age", change="down")
    assert up.tightened(age).change is Change.up
    assert down.tightened(up.tightened(age)).change is Change.fixed
    assert up.tightened(income) is income
    stepped = Step(feature="age", step=5, start=20).tightened(age)
    assert (stepped.minimum, stepped.step) == (20, 5)  # type: ignore[union-attr]
    assert Step(feature="income", step=0.5, start=-0.25).tightened(income).minimum == 0.25  # type: ignore[union-attr]


REFUSED: dict[str, tuple[Any, str]] = {
    "a name that is no feature": (Range(feature="incme", minimum=3), "did you mean 'income'"),
    "an order of categories": (Direction(feature="job", change="up"), "ordinal"),
    "a range of categories": (Range(feature="job", minimum="clerk"), "list the levels"),
    "an empty range": (Range(feature="age", minimum=40, maximum=30), "above its maximum"),
    "an empty range of one person": (Range(feature="age", minimum=(20, 40), maximum=30), "row 1"),
    "a text as a number": (Range(feature="age", minimum="old"), "'old' is text"),
    "an unknown level": (OneOf(feature="job", levels=("bakr",)), "did you mean 'baker'"),
    "levels of a number": (OneOf(feature="age", levels=(30,)), "use a range"),
    "ways of a number": (Transitions(feature="age", allowed={}), "use a range"),
    "an unknown origin": (Transitions(feature="job", allowed={"king": ()}), "'king'"),
    "steps of levels": (Step(feature="job", step=1), "needs a number"),
    "steps between whole numbers": (Step(feature="age", step=1.5), "multiple"),
    "a distance of levels": (Within(feature="degree", up=1), "needs a number"),
    "a rule with levels": (Linear.parse("age <= degree"), "needs numbers"),
    "a feature that implies itself": (Implies(when="age", then="age"), "twice"),
    "a way of categories": (Implies(when="age", then="job", then_change="up"), "lacks"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_with_its_reason(case: str) -> None:
    constraint, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        constraint.check(SCHEMA)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("age <= 3", "must be a list"),
        ([{"kind": "rang"}], "'at_most'"),
        ([{"kind": "range", "feature": "age"}], r"constraints\[0\].*a minimum"),
        ([{"kind": "linear", "terms": {"a": 1}}], "at_most"),
        ([{"kind": "within", "feature": "age"}], "how far"),
        (["a < b"], "no rule"),
        (["a * b <= 1"], "no rule"),
        (["1 <= 2"], "no rule"),
        (["a - a <= 2"], "no rule"),
        ([{"kind": "cost", "weights": {"a": 0}}], "greater than 0"),
        ([3], "constraints"),
    ],
)
def test_what_is_no_constraint_is_refused_by_its_place(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_constraints(given)


@pytest.mark.parametrize(
    ("text", "terms", "bound"),
    [
        ("a <= b", {"a": 1, "b": -1}, {"at_most": 0}),
        ("2 * (a - b) >= 3 - c / 4", {"a": 2, "b": -2, "c": 0.25}, {"at_least": 3}),
        ("`a b` == c-d + 1", {"a b": 1, "c": -1, "d": 1}, {"equal": 1}),
        ("a / (b + c) <= 0.4", {"a": 1, "b": -0.4, "c": -0.4}, {"at_most": 0}),
        ("2 <= a / b", {"a": 1, "b": -2}, {"at_least": 0}),
    ],
)
def test_rules_are_read_as_people_write_them(text: str, terms: dict[str, float], bound: dict[str, float]) -> None:
    rule = Linear.parse(text)
    assert rule.terms == pytest.approx(terms)
    assert rule.model_dump(include=set(bound)) == pytest.approx(bound)


def test_a_schema_holds_constraints_and_checks_them() -> None:
    plain = SCHEMA.to_dict() | {"constraints": ["debt <= 0.5 * income", {"kind": "at_most", "changes": 2}]}
    schema = Schema.from_dict(plain)
    assert schema.constraints == (Linear.parse("debt <= 0.5 * income"), AtMost(changes=2))
    assert Schema.from_dict(schema.to_dict()) == schema
    with pytest.raises(InputError, match="'incme'"):
        Schema.from_dict(SCHEMA.to_dict() | {"constraints": ["debt <= incme"]})


@pytest.mark.parametrize(
    "rule", ["debt / (income - 50) <= 2", "debt / (income - 50) >= 0.5", "2 >= debt / (income - 50)"]
)
def test_a_ratio_holds_as_it_is_written_or_is_broken(rule: str) -> None:
    rng = np.random.default_rng(0)
    plans = np.column_stack(
        [np.full(500, 30), rng.integers(0, 101, 500), rng.integers(0, 51, 500), *np.zeros((2, 500))]
    )
    own = np.tile(PERSON, (500, 1))
    broken = Linear.parse(rule).broken(own, plans, SCHEMA)
    below = plans[:, 1] - 50
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = plans[:, 2] / below
    holds = (ratio >= 0.5 if "0.5" in rule else ratio <= 2) & (below > 0)
    np.testing.assert_array_equal(broken, ~holds)
    assert 20 < holds.sum() < 480


def test_what_a_ratio_is_divided_by_is_told() -> None:
    assert Linear.parse("debt / (income - 50) <= 2").words() == "debt - 2 income <= -100 with income > 50"
