"""The soak of the constraints: a small one finds nothing, and its judge does catch what is planted."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.soak import drawing
from benchmarks.soak.__main__ import main
from benchmarks.soak.judge import Judge, unfavourable
from benchmarks.soak.worlds import CHEAP, World

from gpae import TabularExplainer

SCHEMA: dict[str, Any] = {
    "label": "loan",
    "favourable": "yes",
    "features": [
        {"name": "age", "kind": "integer", "change": "up", "minimum": 18, "maximum": 90},
        {"name": "income", "kind": "continuous", "change": "any", "minimum": 0.0, "maximum": 100.0, "step": 0.5},
        {"name": "debt", "kind": "integer", "change": "any", "minimum": 0, "maximum": 50, "codes": [-9.0]},
        {"name": "born", "kind": "integer", "change": "fixed", "minimum": 0, "maximum": 9},
        {"name": "degree", "kind": "ordinal", "change": "any", "levels": ["school", "bachelor", "master"]},
        {"name": "job", "kind": "categorical", "change": "any", "levels": ["clerk", "baker"], "missing": True},
        {"name": "rate", "kind": "continuous", "change": "any", "minimum": 0.0, "maximum": 1.0, "missing": True},
    ],
}
PERSON = {
    "age": 30, "income": 40.0, "debt": 10, "born": 3, "degree": "bachelor", "job": "clerk", "rate": 0.5,
}  # fmt: skip
CODED = PERSON | {"debt": -9, "rate": np.nan}
FREE: dict[str, Any] = {"immutable": [], "constraints": [], "k": 4}


def kinds(
    *plans: dict[str, Any],
    asked: dict[str, Any] | None = None,
    own: dict[str, Any] = PERSON,
    train: pd.DataFrame | None = None,
) -> list[set[str]]:
    """What the judge finds wrong with each plan of one person; the first costs 1, the second 2, and so on."""
    people = pd.DataFrame([own])
    written = pd.DataFrame([own | plan for plan in plans]).assign(row=0)
    if "cost" not in written:
        written["cost"] = np.arange(1.0, len(plans) + 1.0)
    judge = Judge.of(SCHEMA, people, written)
    findings = list(judge.findings(SCHEMA, FREE | (asked or {}), written, train))
    return [{f.kind for f in findings if f.broken[i]} for i in range(len(plans))]


RULES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "fixed": ({"kind": "fixed", "features": ["debt", "job"]}, {"income": 50.0}, {"debt": 11}),
    "direction": ({"kind": "direction", "feature": "income", "change": "down"}, {"income": 39.5}, {"income": 40.5}),
    "direction of levels": (
        {"kind": "direction", "feature": "degree", "change": "up"},
        {"degree": "master"},
        {"degree": "school"},
    ),
    "range": ({"kind": "range", "feature": "income", "minimum": 35, "maximum": 45}, {"income": 45.0}, {"income": 45.5}),
    "range of a person": (
        {"kind": "range", "feature": "debt", "minimum": [8], "maximum": [None]},
        {"debt": 8},
        {"debt": 7},
    ),
    "range and a code": ({"kind": "range", "feature": "debt", "minimum": 5}, {"debt": 5}, {"debt": -9}),
    "range of levels": ({"kind": "range", "feature": "degree", "minimum": "bachelor"}, {}, {"degree": "school"}),
    "within": ({"kind": "within", "feature": "income", "up": 5}, {"income": 45.0}, {"income": 45.5}),
    "within a share": (
        {"kind": "within", "feature": "income", "down": 0.1, "relative": True},
        {"income": 36.0},
        {"income": 35.5},
    ),
    "step": ({"kind": "step", "feature": "income", "step": 2.5}, {"income": 42.5}, {"income": 41.0}),
    "step from": ({"kind": "step", "feature": "income", "step": 10, "start": 3}, {"income": 43.0}, {"income": 50.0}),
    "one_of": ({"kind": "one_of", "feature": "job", "levels": ["clerk"]}, {"age": 31}, {"job": "baker"}),
    "transitions": (
        {"kind": "transitions", "feature": "degree", "allowed": {"bachelor": ["master"]}},
        {"degree": "master"},
        {"degree": "school"},
    ),
    "transitions otherwise": (
        {"kind": "transitions", "feature": "job", "allowed": {}, "otherwise": "none"},
        {"age": 31},
        {"job": "baker"},
    ),
    "linear at most": (
        {"kind": "linear", "terms": {"debt": 1.0, "income": -0.25}, "at_most": 0.0},
        {"debt": 0},
        {"debt": 11},
    ),
    "linear at least": ({"kind": "linear", "terms": {"debt": 2.0}, "at_least": 18.0}, {"debt": 9}, {"debt": 8}),
    "linear equal": (
        {"kind": "linear", "terms": {"income": 1.0, "debt": -1.0, "age": -1.0}, "equal": 0.0},
        {"income": 41.0, "debt": 11},
        {"income": 41.0},
    ),
    "linear text": ("1.0 * `debt` <= 0.25 * `income` + 1.0", {"debt": 11}, {"debt": 12}),
    "linear text equal": ("`income` = `debt` + `age`", {"income": 41.0, "debt": 11}, {"debt": 11}),
    "linear ratio": ("`debt` / `income` <= 0.25", {"debt": 9}, {"debt": 11}),
    "implies": (
        {"kind": "implies", "when": "degree", "when_change": "up", "then": "age", "then_change": "up", "by": 2},
        {"degree": "master", "age": 32},
        {"degree": "master", "age": 31},
    ),
    "implies any": ({"kind": "implies", "when": "job", "then": "debt"}, {"job": "baker", "debt": 9}, {"job": "baker"}),
    "at_most": ({"kind": "at_most", "changes": 1}, {"debt": 9}, {"debt": 9, "age": 31}),
    "at_most of some": (
        {"kind": "at_most", "changes": 1, "features": ["age", "job"]},
        {"debt": 9, "age": 31},
        {"job": "baker", "age": 31},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RULES)
def test_the_judge_catches_what_breaks_a_rule_and_nothing_else(case: str) -> None:
    rule, good, bad = RULES[case]
    asked = {"constraints": [rule]}
    assert kinds(good, asked=asked) == [set()]
    assert kinds(bad, asked=asked) == [{"linear" if isinstance(rule, str) else rule["kind"]}]


PLANTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "schema fixed": ({"born": 4}, {}),
    "schema direction": ({"age": 29}, {}),
    "immutable": ({"debt": 11}, {"immutable": ["debt"]}),
    "observed range": ({"income": 100.5}, {}),
    "steps": ({"income": 40.25}, {}),
    "levels": ({"degree": "doctor"}, {}),
    "missing": ({"job": None}, {}),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_the_judge_catches_what_no_rule_has_to_say(kind: str) -> None:
    plan, asked = PLANTED[kind]
    assert kinds(plan, asked=asked) == [{kind}]


def test_the_judge_knows_what_training_has_seen() -> None:
    """The schema says 0 to 100, the table that it was read off has less."""
    train = pd.DataFrame([PERSON, PERSON | {"age": 40, "income": 60.0, "debt": 20, "rate": 0.6}])
    assert kinds({"income": 60.0, "debt": 0}, {"income": 60.5}, train=train) == [set(), {"observed range"}]


def test_the_judge_wants_whole_numbers_whole() -> None:
    assert kinds({"debt": 10.5}) == [{"whole numbers", "steps"}]


def test_the_judge_wants_a_persons_plans_different_in_order_and_no_more_than_asked() -> None:
    assert kinds({"debt": 9}, {"debt": 8}) == [set(), {"different plans"}]
    assert kinds({"debt": 9, "cost": 2.0}, {"age": 31, "cost": 1.0}) == [set(), {"order of plans"}]
    assert kinds({"debt": 9}, {"age": 31}, asked={"k": 1}) == [set(), {"number of plans"}]


def test_the_judge_lets_states_and_strange_people_stay() -> None:
    """A code or a missing value that stays obeys every rule about amounts; a person beside the steps may stay there."""
    asked = {"constraints": [{"kind": "range", "feature": "debt", "minimum": 5}, "`debt` >= 5"]}
    assert kinds({"age": 31}, asked=asked, own=CODED) == [set()]
    assert kinds({"debt": 3}, asked=asked, own=CODED) == [{"range", "linear"}]
    strange = PERSON | {"income": 120.25}
    assert kinds({"age": 31}, own=strange) == [set()]
    assert kinds({"income": 110.0}, own=strange) == [set()]
    assert kinds({"debt": -3}, own=CODED) == [{"observed range"}]


def test_the_judge_asks_for_the_margin() -> None:
    p = np.array([0.4, 0.5, 0.52, 0.6, 1.0])
    assert unfavourable(p, None).tolist() == [True, True, False, False, False]
    assert unfavourable(p, 0.3).tolist() == [True, True, True, False, False]


def test_every_kind_of_constraint_is_planted() -> None:
    from gpae.table.constraints import AnyConstraint

    known = {one.model_fields["kind"].default for one in AnyConstraint.__origin__.__args__}  # type: ignore[attr-defined]
    planted = {"linear" if isinstance(rule, str) else rule["kind"] for rule, _, _ in RULES.values()}
    assert known - planted == {"cost"}  # which forbids nothing


def _without_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the data files are not, the synthetic tables and the one that comes with the package will do."""
    from gpae.datasets import load

    there = tuple(name for name in drawing.DATASETS if all(file.find() for file in load(name).files))
    monkeypatch.setattr(drawing, "DATASETS", there)


def test_a_small_soak_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_data_sets(monkeypatch)
    assert main(["-o", str(tmp_path), "--plans", "2000"]) == 0
    counts = pd.read_csv(tmp_path / "constraints.csv")
    assert list(counts.columns) == ["table", "kind", "plans", "violations", "unfavourable"]
    assert counts[counts.kind == "favourable"].plans.sum() >= 2000
    assert not counts[["violations", "unfavourable"]].to_numpy().any()
    assert json.loads((tmp_path / "run.json").read_text())["violations"] == 0
    assert not (tmp_path / "violations.jsonl").exists()


def test_a_violation_is_written_down_ends_with_1_and_can_be_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted where the plans are read: every first number goes beyond its range."""
    _without_data_sets(monkeypatch)
    honest = World.answer

    def spoilt(world: Any, question: dict[str, Any], people: pd.DataFrame) -> pd.DataFrame:
        plans = honest(world, question, people)
        number = next(f for f in world.case["schema"]["features"] if f["kind"] in ("continuous", "integer"))
        return plans.assign(**{number["name"]: number["maximum"] * 10 + 1000})

    with monkeypatch.context() as planted:
        planted.setattr(World, "answer", spoilt)
        assert main(["-o", str(tmp_path), "--plans", "10"]) == 1
    wrong = tmp_path / "violations.jsonl"
    noted = [json.loads(line) for line in wrong.read_text().splitlines()]
    assert {"kind", "rule", "row", "before", "after", "case"} <= set(noted[0])
    assert "observed range" in {one["kind"] for one in noted}
    wrong.write_text(json.dumps(noted[0]) + "\n")
    assert main(["-o", str(tmp_path / "again"), "--replay", str(wrong)]) == 0


def test_two_steps_of_one_feature_both_hold() -> None:
    """Found by the soak: the second one's start was the first value of the other's steps, not of the schema."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"a": rng.integers(18, 80, 300), "b": rng.random(300)})
    train["y"] = np.where(train.a > 50, "yes", "no")
    explainer = TabularExplainer.explaining(
        lambda table: 1.0 / (1.0 + np.exp(50.0 - table.a.to_numpy(np.float64))),
        train, label="y", favourable="yes", **CHEAP,
    )  # fmt: skip
    rules = [{"kind": "step", "feature": "a", "step": 2, "start": 17}, {"kind": "step", "feature": "a", "step": 3}]
    people = pd.DataFrame({"a": np.arange(20, 40), "b": 0.5})
    plans = explainer.explain(people, constraints=rules).table
    assert plans.found.all()
    assert (plans.a % 2 == 1).all()
    assert ((plans.a - train.a.min()) % 3 == 0).all()


def test_a_half_where_training_had_whole_numbers_is_what_the_model_is_asked_about() -> None:
    """Found while the soak was written: the model was asked about 4 where the plan, and the person, had 3.5."""
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"a": rng.integers(0, 10, 300), "b": rng.random(300)})
    train["y"] = np.where(train.a + 3 * train.b > 6, "yes", "no")

    def model(table: pd.DataFrame) -> np.ndarray:
        return 1.0 / (1.0 + np.exp(6.0 - table.a.to_numpy(np.float64) - 3.0 * table.b.to_numpy()))

    explainer = TabularExplainer.explaining(model, train, label="y", favourable="yes", **CHEAP)
    people = pd.DataFrame({"a": np.repeat([3.5, 4.5], 5), "b": np.linspace(0.0, 0.4, 10)})
    plans = explainer.explain(people, immutable=["a"], prefer="near").table
    plans = plans[plans.found]
    assert len(plans) == 10
    assert not unfavourable(model(plans), None).any()
    np.testing.assert_allclose(plans.probability, model(plans))
