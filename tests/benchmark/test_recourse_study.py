"""The study of recourse: its outside judge sees what is wrong, its truth is true, and finished parts are kept."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpae.benchmark.recourse import survival
from gpae.benchmark.recourse.any_model import _different
from gpae.benchmark.recourse.check import violations
from gpae.benchmark.recourse.infeasible import KINDS, figures
from gpae.benchmark.recourse.survival import calibration_error
from gpae.benchmark.studies.recourse import _all
from gpae.datasets import load

TRAIN = pd.DataFrame({"age": [20, 30, 60], "rate": [0.5, 1.5, 2.5], "job": ["a", "b", "c"], "late": [0.0, np.nan, 2.0]})
PERSON = pd.DataFrame({"age": [70], "rate": [1.0], "job": ["a"], "late": [1.0]})


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({}, False),
        ({"age": 25}, False),
        ({"age": 65}, False),
        ({"age": 25.5}, True),
        ({"age": 71}, True),
        ({"age": 19}, True),
        ({"rate": 2.25}, False),
        ({"rate": 2.75}, True),
        ({"rate": np.nan}, True),
        ({"late": np.nan}, False),
        ({"job": "b"}, False),
        ({"job": "judge"}, True),
    ],
)
def test_the_outside_judge_sees_what_is_not_allowed(change: dict[str, Any], broken: bool) -> None:
    plan = PERSON.assign(**change)
    assert violations(plan, PERSON, TRAIN, ()).tolist() == [broken]


def test_the_outside_judge_sees_a_fixed_feature_move() -> None:
    assert violations(PERSON.assign(age=30), PERSON, TRAIN, ("age",)).tolist() == [True]
    assert violations(PERSON, PERSON, TRAIN, ("age", "rate", "job", "late")).tolist() == [False]


def test_plans_are_as_different_as_their_features() -> None:
    table = pd.DataFrame({"row": [0, 0, 1], "plan": [0, 1, 0], "found": [True, True, True]})
    changes = pd.DataFrame({"row": [0, 0, 0, 1], "plan": [0, 0, 1, 0], "feature": ["a", "b", "c", "a"]})
    assert _different(table, changes) == {"with_four": 0.0, "features_apart": 3.0}


def test_a_perfect_foretelling_has_no_error() -> None:
    shares = np.linspace(0, 1, 50)
    assert calibration_error(shares, shares) == 0.0
    assert calibration_error(np.full(10, 0.9), np.full(10, 0.6)) == pytest.approx(0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_planted_people_are_told_the_truth(kind: str) -> None:
    found = figures(kind, 4)
    assert found["without_a_plan"] == found["said_infeasible"] == found["certificates_that_hold"] == 4
    assert found["wrongly_infeasible"] == 0
    assert found["with_a_plan"] == found["found"] == 4


def _count(folder: Path, name: str) -> list[dict[str, Any]]:
    with (folder / "runs.txt").open("a", encoding="utf-8") as runs:
        runs.write(name + "\n")
    return [{"case": name}]


def test_finished_cases_are_not_run_again(tmp_path: Path) -> None:
    tasks = [(name, partial(_count, tmp_path, name)) for name in ("a", "b")]
    first = _all(tmp_path / "cells", tasks[:1], 1, "cases")
    both = _all(tmp_path / "cells", tasks, 1, "cases")
    assert (first, both) == ([{"case": "a"}], [{"case": "a"}, {"case": "b"}])
    assert (tmp_path / "runs.txt").read_text(encoding="utf-8").split() == ["a", "b"]


def test_survival_of_plans_on_a_users_model_is_compared_with_retraining(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survival, "_TRAIN_ROWS", 800)
    lines = survival.figures_of_users_model(load("adult"), "logistic regression", rows=20, bootstraps=2)
    assert [line["plans"] for line in lines] == ["default", "survival >= 0.9"]
    for line in lines:
        assert line["n"] > 10
        assert 0 <= line["actual"] <= 1
        assert line["calibration_error"] >= abs(line["foretold"] - line["actual"]) - 1e-9
    assert lines[1]["foretold"] >= 0.9
