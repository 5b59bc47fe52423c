"""Who is proved to have no plan is told which rule to relax, and what would be enough without it."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpae.clock import Deadline
from gpae.plan_finder import Asked, Outcome, PlanFinder
from gpae.proofs.enumeration import by_every_row
from gpae.proofs.rules import by_rules
from gpae.relaxation import Question, explained_refusals
from gpae.results import Status
from gpae.search.neighbourhood import Surroundings
from gpae.table.change import Change
from gpae.table.constraints import read_constraints
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Integer, Schema

SCHEMA = Schema(
    features=(
        Integer(name="income", minimum=0, maximum=100),
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
    ends = ((0, 101), (0, 51), (0, 21), (0, 3))
    return np.stack([rng.integers(*each, n) for each in ends], axis=1).astype(float)


TRAIN = table(600)
LAYOUT = Layout.fit(SCHEMA, list(TRAIN.T))
ROWS = LAYOUT.encode(TRAIN)
POOR = np.array([[20.0, 30.0, 3.0, 0.0], [35.0, 25.0, 1.0, 1.0], [30.0, 20.0, 0.0, 0.0]])
NEARLY = np.array([[46.0, 20.0, 10.0, 0.0]])
"""Whom each of the features could help alone."""
STAY = {"kind": "fixed", "features": ["debt", "years", "job"]}
CAPPED = {"kind": "range", "feature": "income", "maximum": 50}


def finder(model: Any = score) -> PlanFinder:
    return PlanFinder(
        logits=lambda freedom, person, U: model(freedom.values(U, person)),
        around=Surroundings.of(ROWS[score(TRAIN) > 0], np.where(LAYOUT.continuous, 1 / ROWS.std(axis=0), 1.0)),
        provers=(
            by_rules,
            lambda person, *_: by_every_row(person, lambda people, U: model(people.values(U))),
        ),
    )


def question(rules: list[Any], fixed: tuple[str, ...] = (), schema: Schema = SCHEMA) -> Question:
    return Question(LAYOUT, schema, read_constraints(rules), LAYOUT.named(fixed))


def told(
    rules: list[Any],
    people: np.ndarray = POOR,
    fixed: tuple[str, ...] = (),
    schema: Schema = SCHEMA,
    model: Any = score,
    asked: Asked | None = None,
) -> Outcome:
    asked, asking = asked or Asked(), question(rules, fixed, schema)
    freedom, search = asking.freedom(LAYOUT.encode(people), people), finder(model)
    outcome = search.find(freedom, Asked()).outcome(freedom)
    return explained_refusals(asking, freedom, search, outcome, asked)


CHANGE = re.compile(r"(?:Raise|Lower|Change) (\w+) from (\S+) to (\w+)")


def ways(reason: str) -> list[tuple[str, str]]:
    """Each rule that could be relaxed, and the plan in words."""
    return re.findall(r"without (?:the rule '([^']*)'|any rule) this would be enough: (.*?)(?= Or without|$)", reason)


def after(person: np.ndarray, plan: str) -> np.ndarray:
    """What a person becomes who does as told."""
    values = person.copy()
    for name, before, to in CHANGE.findall(plan):
        i = SCHEMA.names.index(name)
        levels = SCHEMA.features[i].levels
        assert before == (str(levels[int(person[i])]) if levels else f"{person[i]:g}")
        values[i] = levels.index(to) if levels else float(to)
    return values


def favoured(person: np.ndarray, plan: str) -> bool:
    return bool(score(after(person, plan)[None])[0] > 0)


def test_the_told_plan_is_favourable_and_keeps_all_other_rules() -> None:
    outcome = told([STAY, CAPPED])
    assert set(outcome.found.status) == {Status.INFEASIBLE}
    for row, person in enumerate(POOR):
        assert outcome.reasons[row].startswith("no allowed change is enough; without the rule ")
        found = dict(ways(outcome.reasons[row]))
        assert "income is at most 50" in found
        for rule, plan in found.items():
            assert favoured(person, plan)
            end = after(person, plan)
            if rule == "income is at most 50":
                np.testing.assert_array_equal(end[1:], person[1:])
                assert end[0] > 50
            else:
                assert end[0] <= 50


def test_every_rule_that_would_help_alone_is_told_and_no_other() -> None:
    harmless = {"kind": "range", "feature": "debt", "maximum": 50}
    outcome = told([STAY, harmless, CAPPED])
    words = [rule.words() for rule in read_constraints([STAY, CAPPED])]
    for row in range(len(POOR)):
        assert {rule for rule, _ in ways(outcome.reasons[row])} == set(words)


def test_features_that_the_call_or_the_schema_keeps_are_offered_by_name() -> None:
    features = list(SCHEMA.features)
    features[1] = features[1].model_copy(update={"change": Change.up})
    schema = SCHEMA.model_copy(update={"features": tuple(features)})
    outcome = told([], NEARLY, ("income", "job", "years"), schema)
    names = [name for name, _ in question([CAPPED], ("income", "job", "years"), schema).without_one()]
    assert names == [
        *("income must not change", "debt may only go up", "years must not change", "job must not change"),
        "income is at most 50",
    ]
    found = dict(ways(outcome.reasons[0]))
    assert len(found) == 3
    assert set(found) <= set(names[:4])
    assert all(favoured(NEARLY[0], plan) for plan in found.values())


def test_rules_that_only_together_stand_in_the_way_are_told_as_such() -> None:
    nothing = {"kind": "at_most", "changes": 1}
    poor = np.array([[0.0, 50.0, 0.0, 0.0]])
    outcome = told([STAY, nothing, CAPPED], poor)
    ((rule, plan),) = ways(outcome.reasons[0])
    assert rule == ""
    assert "without any rule" in outcome.reasons[0]
    assert favoured(poor[0], plan)


def test_who_cannot_be_helped_is_told_so() -> None:
    outcome = told([STAY, CAPPED], model=lambda values: np.full(len(values), -1.0))
    assert set(outcome.reasons) == {0, 1, 2}
    for reason in outcome.reasons.values():
        assert reason == "no allowed change is enough, and none was found without the rules either"


def test_who_has_a_plan_is_told_nothing() -> None:
    outcome = told([CAPPED], np.vstack([POOR, [[90.0, 5.0, 10.0, 2.0]]]))
    assert outcome.reasons == {}
    assert outcome.found.status.tolist() == [Status.FOUND] * 3 + [Status.ALREADY_FAVOURABLE]


def test_among_others_only_those_without_a_plan_are_told() -> None:
    people = np.vstack([[[58.0, 0.0, 0.0, 0.0], [48.0, 5.0, 15.0, 0.0]], POOR])
    outcome = told([STAY, {"kind": "range", "feature": "income", "maximum": 62}], people)
    assert outcome.found.status.tolist()[:2] == [Status.FOUND, Status.ALREADY_FAVOURABLE]
    assert set(outcome.reasons) == {2, 3, 4}
    for row in (2, 3, 4):
        assert all(favoured(people[row], plan) for _, plan in ways(outcome.reasons[row]))


def test_bounds_of_each_person_stay_with_their_person() -> None:
    people = np.vstack([[[48.0, 5.0, 5.0, 0.0]], POOR])
    rules = [STAY, {"kind": "range", "feature": "income", "maximum": [100, 40, 50, 60]}]
    outcome = told(rules, people)
    assert outcome.found.status.tolist() == [Status.FOUND] + [Status.INFEASIBLE] * 3
    for row, most in ((1, 40), (2, 50), (3, 60)):
        plans = dict(ways(outcome.reasons[row]))
        kept = plans.pop("income is at most the own bound")
        assert after(people[row], kept)[0] > most
        (other,) = plans.values()
        assert after(people[row], other)[0] <= most


def test_the_question_of_some_people_has_the_bounds_of_those() -> None:
    rules = [{"kind": "range", "feature": "income", "maximum": [40, 50, 60]}]
    some = question(rules).of_rows(np.array([2, 0]))
    freedom = some.freedom(LAYOUT.encode(POOR[[2, 0]]), POOR[[2, 0]])
    np.testing.assert_allclose(LAYOUT.to_user(freedom.upper)[:, 0], [60, 40])


def test_bounds_in_the_schema_are_taken_along_as_well() -> None:
    own = read_constraints([{"kind": "range", "feature": "income", "maximum": [40, 50, 60]}])
    some = question([], schema=SCHEMA.model_copy(update={"constraints": own})).of_rows(np.array([1]))
    freedom = some.freedom(LAYOUT.encode(POOR[[1]]), POOR[[1]])
    np.testing.assert_allclose(LAYOUT.to_user(freedom.upper)[:, 0], [50])


def test_costs_forbid_nothing_and_are_not_offered() -> None:
    cost = {"kind": "cost", "weights": {"income": 3.0}}
    offered = [words for words, _ in question([cost, CAPPED], ("debt",)).without_one()]
    assert offered == ["debt must not change", "income is at most 50"]
    for reason in told([STAY, cost, CAPPED]).reasons.values():
        assert "cost" not in reason


def test_without_all_nothing_is_forbidden() -> None:
    schema = SCHEMA.with_fixed(("job",)).model_copy(update={"constraints": read_constraints([CAPPED])})
    free = question([STAY], ("debt",), schema).without_all()
    freedom = free.freedom(LAYOUT.encode(POOR), POOR)
    assert not freedom.constraints
    assert (freedom.lower < freedom.upper).all()


def test_the_cheapest_way_comes_first_and_there_are_at_most_three() -> None:
    fixed = ("income", "debt", "years", "job")
    found = ways(told([], NEARLY, fixed).reasons[0])
    assert found[0][0] == "income must not change"
    assert len(found) == 3
    assert all(favoured(NEARLY[0], plan) for _, plan in found)


def test_without_time_nothing_is_looked_for() -> None:
    late = told([STAY, CAPPED], asked=Asked(deadline=Deadline.after(1e-9)))
    assert set(late.reasons.values()) == {"no allowed change is enough"}


@pytest.mark.parametrize("rule", ["income <= 50", "income + debt <= 60"])
def test_rules_between_numbers_are_told_in_words(rule: str) -> None:
    outcome = told([STAY, rule])
    words = read_constraints([rule])[0].words()
    for row, person in enumerate(POOR):
        plan = dict(ways(outcome.reasons[row]))[words]
        assert favoured(person, plan)


def test_a_rule_that_is_out_of_reach_is_named() -> None:
    outcome = told(["income - debt >= 150"])
    assert {proof.ground for proof in outcome.certificates.values()} == {"no value left"}
    for row, person in enumerate(POOR):
        known, _, _ = outcome.reasons[row].partition(";")
        assert known == "no allowed values meet the rule 'income - debt >= 150': its left side is at most 100"
        assert favoured(person, dict(ways(outcome.reasons[row]))["income - debt >= 150"])


def test_a_rule_is_not_out_of_reach_of_who_need_not_meet_it() -> None:
    """A state that stays obeys every rule about amounts."""
    coded = Schema(
        features=(Integer(name="a", minimum=0, maximum=10, codes=(-9.0,)), Integer(name="b", minimum=0, maximum=10)),
        label="y",
        favourable="yes",
    )
    layout = Layout.fit(coded, [np.arange(11.0), np.arange(11.0)])
    people = np.array([[-9.0, 3.0], [4.0, 3.0]])
    freedom = Question(layout, coded, read_constraints(["a + b >= 30"]), layout.named(())).freedom(
        layout.encode(people), people
    )
    assert freedom.hopeless.tolist() == [False, True]


def test_rules_that_leave_no_row_are_told_as_such() -> None:
    outcome = told(["income <= debt - 5", "debt <= income - 5"])
    assert all(reason.startswith("no row obeys all the rules together; ") for reason in outcome.reasons.values())


def test_who_is_not_proved_to_have_no_plan_is_told_what_would_help_too() -> None:
    asking = question([STAY, CAPPED])
    freedom, search = asking.freedom(LAYOUT.encode(POOR), POOR), replace(finder(), provers=())
    outcome = search.find(freedom, Asked()).outcome(freedom)
    assert set(outcome.found.status) == {Status.NOT_FOUND}
    explained = explained_refusals(asking, freedom, search, outcome, Asked())
    for row, person in enumerate(POOR):
        assert explained.reasons[row].startswith("no allowed change that is enough was found; without the rule ")
        assert all(favoured(person, plan) for _, plan in ways(explained.reasons[row]))
