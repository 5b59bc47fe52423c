"""``gpae explain`` with rules and wishes: what plans must obey, what makes them good, and what is told besides."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpae.table.frames import read_table

Run = Callable[..., Any]
HOME = {"kind": "fixed", "features": ["home"]}


def answers(run: Run, model: Path, queries: Path, *options: object) -> list[dict[str, Any]]:
    """The lines of an answer that ended well."""
    ended = run("explain", model, queries, "--json", *options)
    assert ended.code == 0, ended.stderr
    lines: list[dict[str, Any]] = json.loads(ended.stdout)["answers"]
    return lines


def plans(run: Run, model: Path, queries: Path, *options: object) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each plan, with the person whose it is."""
    people = read_table(queries).to_pylist()
    return [(line, people[line["row"]]) for line in answers(run, model, queries, *options) if line["found"]]


def test_a_rule_as_text_is_obeyed(run: Run, model: Path, queries: Path) -> None:
    free = plans(run, model, queries, "--prefer", "plausible")
    assert any(plan["debt"] > 0.1 * plan["income"] for plan, _ in free)
    found = plans(run, model, queries, "--rule", "debt <= 0.1 * income")
    assert len(found) >= 3
    assert all(plan["debt"] <= 0.1 * plan["income"] + 1e-9 for plan, _ in found)


def test_a_rule_as_a_json_object_is_obeyed(run: Run, model: Path, queries: Path) -> None:
    found = plans(run, model, queries, "--rule", json.dumps({"kind": "at_most", "changes": 1}))
    assert len(found) >= 2
    assert all(plan["changes"] == 1 for plan, _ in found)


@pytest.mark.parametrize(
    ("ending", "dump"),
    [("yaml", yaml.safe_dump), ("yml", yaml.safe_dump), ("json", json.dumps)],
    ids=("yaml", "yml", "json"),
)
def test_rules_of_a_file_are_all_obeyed(
    run: Run, model: Path, queries: Path, tmp_path: Path, ending: str, dump: Callable[[Any], str]
) -> None:
    file = tmp_path / f"rules.{ending}"
    file.write_text(dump([HOME, "debt <= 0.3 * income"]))
    found = plans(run, model, queries, "--rule", file)
    assert len(found) >= 2
    for plan, person in found:
        assert plan["home"] == person["home"]
        assert plan["debt"] <= 0.3 * plan["income"] + 1e-9


def test_several_rules_hold_together(run: Run, model: Path, queries: Path) -> None:
    within = {"kind": "within", "feature": "debt", "up": 0, "down": 10}
    found = plans(run, model, queries, "--rule", json.dumps(HOME), "--rule", json.dumps(within), "--rule", "income<=95")
    assert len(found) >= 2
    for plan, person in found:
        assert plan["home"] == person["home"]
        assert person["debt"] - 10 <= plan["debt"] <= person["debt"]
        assert plan["income"] <= 95


def test_who_has_no_plan_reads_which_rule_to_relax(run: Run, model: Path, queries: Path) -> None:
    fixed = json.dumps({"kind": "fixed", "features": ["debt", "home"]})
    within = json.dumps({"kind": "within", "feature": "income", "up": 1, "down": 1})
    ended = run("explain", model, queries, "--rule", fixed, "--rule", within, "--deadline", "60")
    assert ended.code == 0
    assert "infeasible: no allowed change is enough" in ended.stdout
    assert "without the rule 'income" in ended.stdout.replace("\n", " ")


WRONG_RULES = {
    "no rule": ("debt is small", "is no rule between numbers"),
    "no feature": ("debts <= 3", "'debts', which is no feature"),
    "a level where a number is needed": ("home <= 3", "needs numbers"),
    "broken JSON": ('{"kind": "at_most"', "is no JSON object"),
    "an unknown kind": ('{"kind": "sometimes"}', "'sometimes'"),
    "a field is missing": ('{"kind": "within"}', "feature"),
    "a file that is not there": ("absent.yaml", "there is no such file"),
}


@pytest.mark.parametrize("case", WRONG_RULES)
def test_a_wrong_rule_ends_with_2(run: Run, model: Path, queries: Path, tmp_path: Path, case: str) -> None:
    rule, message = WRONG_RULES[case]
    ended = run("explain", model, queries, "--rule", rule, "-o", tmp_path / "answers.csv")
    assert ended.code == 2
    assert message in " ".join(ended.stderr.split())
    assert not list(tmp_path.iterdir())


WRONG_FILES = {
    "no list": ("kind: at_most\nchanges: 1\n", "must hold a list of rules, not a dict"),
    "nothing": ("", "must hold a list of rules"),
    "no YAML": ("- [1, 2\n", "cannot be read as a list of rules"),
    "a number": ("- 3\n", "constraints[0] = 3"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_wrong_file_of_rules_ends_with_2(run: Run, model: Path, queries: Path, tmp_path: Path, case: str) -> None:
    text, message = WRONG_FILES[case]
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    ended = run("explain", model, queries, "--rule", file)
    assert ended.code == 2
    assert message in " ".join(ended.stderr.split())


def test_sparse_plans_change_no_more_than_plausible_ones(run: Run, model: Path, queries: Path) -> None:
    sparse, plausible = (
        {plan["row"]: plan["changes"] for plan, _ in plans(run, model, queries, "--prefer", taste)}
        for taste in ("sparse", "plausible")
    )
    assert sparse.keys() == plausible.keys()
    assert sum(sparse.values()) < sum(plausible.values())


def test_with_a_deadline_everybody_is_answered(run: Run, model: Path, queries: Path) -> None:
    lines = answers(run, model, queries, "--deadline", "5")
    assert {line["row"] for line in lines} == set(range(5))
    assert sum(line["found"] for line in lines) == 4


def test_a_margin_makes_plans_surer(run: Run, model: Path, queries: Path) -> None:
    found = plans(run, model, queries, "--margin", "0.5")
    assert len(found) >= 3
    assert all(plan["probability"] >= 0.6224 for plan, _ in found)
    assert any(plan["probability"] < 0.6224 for plan, _ in plans(run, model, queries, "--prefer", "near"))


def test_survival_makes_plans_last(run: Run, model: Path, queries: Path) -> None:
    found = plans(run, model, queries, "--survival", "0.9")
    assert len(found) >= 3
    assert all(plan["survival"] >= 0.9 for plan, _ in found)
    assert any(plan["survival"] < 0.9 for plan, _ in plans(run, model, queries, "--prefer", "near"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--prefer", "cheap"), "cheap"),
        (("--deadline", "0"), "deadline=0"),
        (("--margin", "-1"), "margin=-1"),
        (("--survival", "2"), "survival=2"),
        (("--words", "words.txt"), ".parquet, .csv or .json"),
        (("--reasons", "reasons.txt"), ".parquet, .csv or .json"),
    ],
)
def test_a_wrong_wish_ends_with_2(run: Run, model: Path, queries: Path, options: tuple[str, ...], message: str) -> None:
    ended = run("explain", model, queries, *options)
    assert ended.code == 2
    assert message in ended.stderr


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_words_are_written_beside_the_answers(
    run: Run, model: Path, queries: Path, tmp_path: Path, ending: str
) -> None:
    words, out = tmp_path / f"words.{ending}", tmp_path / "answers.json"
    assert run("explain", model, queries, "--words", words, "-o", out).code == 0
    told = json.loads(words.read_text()) if ending == "json" else read_table(words).to_pylist()
    assert list(told[0]) == ["row", "plan", "feature", "low", "high", "range", "sentence"]
    changes = {line["row"]: line["changes"] for line in json.loads(out.read_text()) if line["found"]}
    assert {row: sum(line["row"] == row for line in told) for row in changes} == changes
    assert all(line["feature"] in line["sentence"] for line in told)


def test_reasons_are_written_of_the_refused(run: Run, model: Path, queries: Path, tmp_path: Path) -> None:
    file = tmp_path / "reasons.csv"
    ended = run("explain", model, queries, "--reasons", file)
    assert ended.code == 0
    assert "Refused mainly for" in ended.stdout
    reasons = read_table(file).to_pylist()
    assert list(reasons[0]) == ["row", "feature", "value", "usual", "weight"]
    assert {line["row"] for line in reasons} == {0, 1, 2, 3}
    assert all(line["weight"] > 0 for line in reasons)


def test_proofs_are_written_for_who_has_no_plan(run: Run, model: Path, queries: Path, tmp_path: Path) -> None:
    fixed = json.dumps({"kind": "fixed", "features": ["debt", "home"]})
    never = "income >= 2000"
    file = tmp_path / "proofs.json"
    ended = run("explain", model, queries, "--rule", fixed, "--rule", never, "--json", "--proofs", file)
    assert ended.code == 0, ended.stderr
    said = json.loads(ended.stdout)
    refused = {str(line["row"]) for line in said["answers"] if line["status"] == "infeasible"}
    assert refused
    written = json.loads(file.read_text())
    assert written == said["proofs"]
    assert set(written) == refused
    assert {(proof["ground"], proof["best"]) for proof in written.values()} == {("no value left", None)}
    assert run("explain", model, queries, "--proofs", tmp_path / "proofs.csv").code == 2
