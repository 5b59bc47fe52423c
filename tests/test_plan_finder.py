"""The plan finder on a model that can be written down: plans are valid, near and different, or proved not to be."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpae.clock import Deadline
from gpae.plan_finder import Asked, PlanFinder, Plans
from gpae.proofs.enumeration import by_every_row
from gpae.results import Status
from gpae.search.neighbourhood import Surroundings
from gpae.search.worth import TASTES
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Continuous, Integer, Schema

SCHEMA = Schema(
    features=(
        Continuous(name="income", minimum=0.0, maximum=100.0),
        Integer(name="debt", minimum=0, maximum=50),
        Integer(name="years", minimum=0, maximum=20),
        Categorical(name="job", levels=("cook", "clerk", "judge")),
    ),
    label="loan",
    favourable="yes",
)


def score(values: np.ndarray) -> np.ndarray:
    """Favourable above 0."""
    return (values[:, 0] - values[:, 1] + 2 * values[:, 2] + 15 * (values[:, 3] == 2) - 60) / 10


def table(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = rng.uniform(0, 100, n), rng.integers(0, 51, n), rng.integers(0, 21, n), rng.integers(0, 3, n)
    return np.stack(columns, axis=1).astype(float)


TRAIN = table(1500)
LAYOUT = Layout.fit(SCHEMA, list(TRAIN.T))
ROWS = LAYOUT.encode(TRAIN)
PEOPLE = table(400, 1)
PEOPLE = PEOPLE[score(PEOPLE) < 0][:120]


def logits(freedom: Freedom, person: Any, U: np.ndarray) -> np.ndarray:
    return score(freedom.values(U, person))


def prove(person: Freedom, seconds: float, margin: float) -> Any:
    return by_every_row(person, lambda people, U: score(people.values(U)), seconds, margin)


FINDER = PlanFinder(
    logits=logits,
    around=Surroundings.of(ROWS[score(TRAIN) > 0], np.where(LAYOUT.continuous, 1 / ROWS.std(axis=0), 1.0)),
    provers=(prove,),
)


def find(people: np.ndarray = PEOPLE, rules: list[Any] | None = None, **asked: Any) -> tuple[Plans, Freedom]:
    freedom = Freedom.of(LAYOUT, SCHEMA, read_constraints(rules), LAYOUT.encode(people), own=people)
    return FINDER.find(freedom, Asked(**asked)), freedom


def plans_of(plans: Plans, freedom: Freedom) -> tuple[np.ndarray, np.ndarray]:
    """Whose, and the values."""
    answer = plans.counterfactuals(freedom)
    good = answer.found
    return answer.row[good], freedom.values(answer.counterfactual[good], answer.row[good])


RULES: list[Any] = [
    [],
    ["debt <= 0.4 * income"],
    [{"kind": "at_most", "changes": 1}],
    [{"kind": "fixed", "features": ["income"]}, {"kind": "direction", "feature": "debt", "change": "down"}],
    [{"kind": "implies", "when": "job", "then": "years", "then_change": "up", "by": 3}],
    [{"kind": "step", "feature": "income", "step": 5}, {"kind": "within", "feature": "years", "up": 2, "down": 0}],
    [{"kind": "transitions", "feature": "job", "allowed": {"cook": ["clerk"], "clerk": ["judge"]}}],
]


@pytest.mark.parametrize("taste", TASTES)
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_every_plan_is_favourable_and_allowed(rules: list[Any], taste: str) -> None:
    plans, freedom = find(rules=rules, k=3, taste=TASTES[taste])
    answer = plans.counterfactuals(freedom)
    row, values = plans_of(plans, freedom)
    assert len(set(row)) > 0.8 * len(PEOPLE)
    assert (score(values) > 0).all()
    good = answer.found
    assert freedom.rows(answer.row[good]).permits(answer.counterfactual[good]).all()


def test_a_margin_that_is_asked_is_had() -> None:
    plans, freedom = find(margin=1.0)
    assert (score(plans_of(plans, freedom)[1]) > 1.0).all()


def test_near_plans_are_next_to_the_shortest_way() -> None:
    """Numbers only: the distance to the plane, in standard deviations, is known."""
    people = PEOPLE[PEOPLE[:, 3] == 2]
    plans, freedom = find(people, [{"kind": "fixed", "features": ["job"]}], taste=TASTES["near"])
    row, values = plans_of(plans, freedom)
    assert len(row) == len(people)
    std = TRAIN[:, :3].std(axis=0)
    slope = np.array([1.0, -1.0, 2.0]) / 10 * std
    shortest = -score(people)[row] / np.linalg.norm(slope)
    way = np.linalg.norm((values - people[row])[:, :3] / std, axis=1)
    assert np.median(way / shortest) < 1.25
    assert (way / shortest > 0.999).all()


def test_sparse_plans_change_less_than_plausible_ones() -> None:
    def changes(taste: str) -> float:
        plans, freedom = find(taste=TASTES[taste])
        answer = plans.counterfactuals(freedom)
        return float(LAYOUT.n_changes(answer.counterfactual, answer.factual).mean())

    assert changes("sparse") <= 1.3
    assert changes("sparse") < changes("plausible")


def test_several_plans_change_different_features_and_the_cheapest_comes_first() -> None:
    plans, freedom = find(k=4)
    answer = plans.counterfactuals(freedom)
    changed = LAYOUT.changed(answer.counterfactual, answer.factual)
    assert answer.cost is not None
    counts = np.bincount(answer.row)
    assert (counts >= 3).mean() > 0.9
    for person in range(len(PEOPLE)):
        mine = answer.row == person
        assert len({tuple(one) for one in changed[mine]}) == mine.sum()
        assert (np.diff(answer.cost[mine]) >= 0).all()


def test_a_dear_feature_is_left_alone() -> None:
    def moved(rules: list[Any]) -> float:
        plans, freedom = find(rules=rules, taste=TASTES["near"])
        row, values = plans_of(plans, freedom)
        return float((values[:, 0] != PEOPLE[row, 0]).mean())

    assert moved([{"kind": "cost", "weights": {"income": 50.0}}]) < 0.5 * moved([])


def test_who_has_no_way_gets_a_proof_and_who_has_one_does_not() -> None:
    rules = [{"kind": "fixed", "features": ["income"]}, {"kind": "within", "feature": "debt", "up": 0, "down": 5}]
    plans, _ = find(rules=rules)
    best = PEOPLE.copy()
    best[:, 1] = np.maximum(best[:, 1] - 5, 0)
    best[:, 2], best[:, 3] = 20, 2
    possible = score(best) > 0
    assert 0 < possible.sum() < len(PEOPLE)
    np.testing.assert_array_equal(plans.status == Status.INFEASIBLE, ~possible)
    np.testing.assert_array_equal(plans.status == Status.FOUND, possible)
    assert set(plans.certificates) == set(np.flatnonzero(~possible))
    for row, certificate in plans.certificates.items():
        assert certificate.best == pytest.approx(score(best)[row])


def test_who_is_favoured_already_is_told_so() -> None:
    plans, _ = find(np.array([[90.0, 5, 10, 2], [10.0, 50, 0, 0]]))
    assert plans.status.tolist() == [Status.ALREADY_FAVOURABLE, Status.FOUND]


def test_without_time_nobody_waits() -> None:
    plans, freedom = find(deadline=Deadline.after(1e-9))
    assert set(plans.status) == {Status.TIMEOUT}
    assert not plans.counterfactuals(freedom).found.any()


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("deadline", [0.05, 0.4, 2.0])
@pytest.mark.parametrize(("call", "pace"), [(1e-4, 1e-4), (1e-4, 2e-3), (0.04, 0.0), (0.15, 0.0)])
def test_a_slow_model_is_not_asked_more_than_there_is_time_for(
    monkeypatch: pytest.MonkeyPatch, call: float, pace: float, deadline: float, k: int
) -> None:
    """On a clock that only the model moves: so long for each row that it is asked about, and so long for each call."""
    now = [0.0]

    def slow(freedom: Freedom, person: Any, U: np.ndarray) -> np.ndarray:
        now[0] += call + pace * len(U)
        return logits(freedom, person, U)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for rules in ([], ["income <= 10", "debt >= 40"]):
        now[0] = 0.0
        freedom = Freedom.of(LAYOUT, SCHEMA, read_constraints(rules), LAYOUT.encode(PEOPLE), own=PEOPLE)
        plans = replace(FINDER, logits=slow).find(freedom, Asked(k=k, deadline=Deadline.after(deadline)))
        # one call is what it takes to know anything, and another is left for judging plans as they are written
        assert now[0] + call * bool(plans.found) <= max(1.2 * deadline + 0.05, call)
        assert Status.NOT_FOUND not in set(plans.status) or now[0] + 2 * call < deadline
        if not rules and deadline > 1000 * pace + 20 * call:
            assert Status.FOUND in set(plans.status)


def test_an_answer_does_not_depend_on_who_else_asks() -> None:
    together, freedom = find(k=2, rules=["debt <= 0.4 * income"])
    whole = together.counterfactuals(freedom)
    for person in range(0, len(PEOPLE), 13):
        alone, mine = find(PEOPLE[[person]], k=2, rules=["debt <= 0.4 * income"])
        np.testing.assert_array_equal(
            alone.counterfactuals(mine).counterfactual, whole.counterfactual[whole.row == person]
        )


def test_the_model_is_asked_in_few_calls() -> None:
    """Work is counted: a lost batch would multiply the calls."""
    plans, _ = find()
    assert plans.count.calls <= 12
    assert plans.count.rows <= 120 * len(PEOPLE)


def test_a_proof_is_about_the_margin_that_is_asked() -> None:
    """Of people who have plans, but none by as much as is asked."""
    rules = [{"kind": "fixed", "features": ["income", "debt", "job"]}]
    best = score(np.column_stack([PEOPLE[:, :2], np.full(len(PEOPLE), 20), PEOPLE[:, 3]]))
    near = (best > 0) & (best < 1)
    assert near.sum() > 5
    assert set(find(PEOPLE[near], rules)[0].status) == {Status.FOUND}
    plans, _ = find(PEOPLE[near], rules, margin=1.0)
    assert set(plans.status) == {Status.INFEASIBLE}
    assert {certificate.needed for certificate in plans.certificates.values()} == {1.0}


def test_what_a_method_found_is_kept_and_the_others_are_searched_for() -> None:
    freedom = Freedom.of(LAYOUT, SCHEMA, (), LAYOUT.encode(PEOPLE), own=PEOPLE)
    whole = FINDER.find(freedom, Asked()).counterfactuals(freedom)
    half = replace(whole, found=whole.found & (whole.row % 2 == 0))
    known = FINDER.first_look(freedom).with_found(FINDER.priced(freedom, half, Asked().taste))
    both = FINDER.find(freedom, Asked(), known).counterfactuals(freedom)
    np.testing.assert_array_equal(both.counterfactual, whole.counterfactual)
    assert both.cost is not None
    assert whole.cost is not None
    np.testing.assert_allclose(both.cost, whole.cost, rtol=1e-5)


def test_plans_may_be_asked_to_do_more_than_the_model_asks() -> None:
    """Who is favoured is favoured; plans reach what is asked of them as well."""

    def stricter(freedom: Freedom, person: Any, U: np.ndarray) -> np.ndarray:
        return score(freedom.values(U, person)) - 0.7

    people = np.concatenate([PEOPLE[:20], [[64.0, 0, 0, 0]]])
    freedom = Freedom.of(LAYOUT, SCHEMA, (), LAYOUT.encode(people), own=people)
    plans = replace(FINDER, lasting=stricter).find(freedom, Asked())
    assert plans.status[-1] == Status.ALREADY_FAVOURABLE
    assert (score(plans_of(plans, freedom)[1]) > 0.7).all()


def test_where_two_features_count_both_together_are_a_plan_as_well() -> None:
    """One alone, the other alone, and some of each."""
    people = PEOPLE[(score(PEOPLE) > -3) & (score(PEOPLE) < -0.5) & (PEOPLE[:, 1] > 30) & (PEOPLE[:, 3] == 2)]
    people = people[people[:, 0] < 70]
    rules = [{"kind": "fixed", "features": ["years", "job"]}]
    plans, freedom = find(people, rules, k=3)
    answer = plans.counterfactuals(freedom)
    changed = LAYOUT.changed(answer.counterfactual, answer.factual)[:, :2]
    for person in range(len(people)):
        assert sorted(changed[answer.row == person].tolist()) == [[False, True], [True, False], [True, True]]


def test_who_is_held_back_goes_part_of_the_way_and_no_further() -> None:
    people = PEOPLE[:5]
    freedom = Freedom.of(LAYOUT, SCHEMA, (), LAYOUT.encode(people), own=people)
    reach = freedom.x + 0.1
    held = np.zeros((5, 4), dtype=bool)
    held[:, [0, 3]] = True
    after = freedom.held(held, reach)
    np.testing.assert_allclose(after.lower[:, 0], freedom.x[:, 0])
    np.testing.assert_allclose(after.upper[:, 0], np.minimum(reach[:, 0], freedom.upper[:, 0]))
    np.testing.assert_array_equal(after.lower[:, 1:3], freedom.lower[:, 1:3])
    job = LAYOUT.features[3].columns
    np.testing.assert_array_equal(after.lower[:, job], freedom.x[:, job])  # a level cannot go part of a way
    np.testing.assert_array_equal(after.upper[:, job], freedom.x[:, job])


@pytest.mark.parametrize("taste", TASTES)
def test_every_change_of_a_plan_is_needed(taste: str) -> None:
    """Taken back alone, each would cost the yes."""
    plans, freedom = find(k=3, taste=TASTES[taste])
    row, values = plans_of(plans, freedom)
    several = 0
    for i in range(values.shape[1]):
        changed = (values != PEOPLE[row]).sum(axis=1)
        mine = (values[:, i] != PEOPLE[row, i]) & (changed > 1)
        without = values[mine].copy()
        without[:, i] = PEOPLE[row[mine], i]
        assert (score(without) <= 0).all()
        several += mine.sum()
    assert several > 100


def test_who_has_to_go_to_the_one_value_that_is_left_is_not_stuck() -> None:
    """Bounds without any room, but elsewhere than the person."""
    people = np.array([[30.0, 10, 5, 0], [30.0, 10, 5, 0]])
    kept = {"kind": "fixed", "features": ["income", "years", "job"]}
    assert score(np.array([[75.0, 0, 5, 0]]))[0] > 0
    others = [{"kind": "fixed", "features": ["debt", "years", "job"]}]
    for rules, expected in (
        ([*others, {"kind": "range", "feature": "income", "minimum": 75, "maximum": 75}], Status.FOUND),
        ([kept, {"kind": "range", "feature": "debt", "minimum": 0, "maximum": 0}], Status.INFEASIBLE),
    ):
        assert set(find(people, rules)[0].status) == {expected}
