"""What recourse promises, measured: plans on users' models, proofs, deadlines, survival; finished parts are kept."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from gpae.benchmark.processes import side_by_side
from gpae.benchmark.recourse import any_model, deadlines, infeasible, survival
from gpae.benchmark.recourse.users_models import MODELS, fitted
from gpae.datasets import load
from gpae.files import written_whole
from gpae.progress import report
from gpae.tabular import TabularExplainer

__all__ = ["PARTS", "run_recourse"]

Lines = list[dict[str, Any]]
PARTS = ("models", "infeasible", "survival", "deadlines")

_DATASETS = ("adult", "fico", "gmc", "law")
_SURVIVAL_SETS = ("adult", "gmc", "fico", "lcd", "law")
_USERS_SURVIVAL_SETS = ("law", "gmc")
_USERS_SURVIVAL_MODELS = ("logistic regression", "random forest", "LightGBM", "MLP")
_PLANTED = 334
"""People without a plan of each of the three kinds."""
_RULES = (
    {"kind": "at_most", "changes": 2},
    {"kind": "within", "feature": "hours-per-week", "up": 20, "down": 10},
    "age >= 20",
)


def run_recourse(folder: Path, parts: Sequence[str] = PARTS, *, rows: int = 500, workers: int | None = None) -> None:
    """Run the parts, each into ``PART.csv``; a case that is finished is not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        tasks = _TASKS[part](rows)
        # deadlines are about this machine's clock: nothing else may run beside them
        lines = _all(folder / "cells", tasks, 1 if part == "deadlines" else workers, part)
        with written_whole(folder / f"{part}.csv") as temporary:
            pd.DataFrame(lines).to_csv(temporary, index=False)


Task = tuple[str, Callable[[], Lines]]
"""Its name, and what it does; the work must be picklable by name, as it goes to another process."""


def _all(cells: Path, tasks: Sequence[Task], workers: int | None, stage: str) -> Lines:
    cells.mkdir(parents=True, exist_ok=True)
    files = {name: cells / f"{name}.json" for name, _ in tasks}

    def tell() -> None:
        report(stage, sum(file.is_file() for file in files.values()) / len(files))

    tell()
    todo = [partial(_one, files[name], work) for name, work in tasks if not files[name].is_file()]
    side_by_side(todo, workers, tell)
    return [line for file in files.values() for line in json.loads(file.read_text(encoding="utf-8"))]


def _one(file: Path, work: Callable[[], Lines]) -> None:
    lines = work()
    with written_whole(file) as temporary:
        temporary.write_text(json.dumps(lines), encoding="utf-8")


def _models(rows: int) -> list[Task]:
    return [
        (f"models-{dataset}-{model.replace(' ', '_')}-{rows}", partial(_model_case, dataset, model, rows))
        for dataset in _DATASETS
        for model in MODELS
    ]


def _model_case(dataset: str, model: str, rows: int) -> Lines:
    return [any_model.figures(any_model.Case(load(dataset), model, rows=rows))]


def _infeasible(rows: int) -> list[Task]:
    return [(f"infeasible-{kind}", partial(_infeasible_case, kind)) for kind in infeasible.KINDS]


def _infeasible_case(kind: str) -> Lines:
    return [infeasible.figures(kind, _PLANTED)]


def _survival(rows: int) -> list[Task]:
    own: list[Task] = [
        (f"survival-{name}-{rows}", partial(_survival_case, name, None, rows)) for name in _SURVIVAL_SETS
    ]
    given: list[Task] = [
        (f"survival-{name}-{model.replace(' ', '_')}-{rows}", partial(_survival_case, name, model, rows))
        for name in _USERS_SURVIVAL_SETS
        for model in _USERS_SURVIVAL_MODELS
    ]
    return own + given


def _survival_case(dataset: str, model: str | None, rows: int) -> Lines:
    """By gpae's own classifier, or by a user's model."""
    if model is None:
        return survival.figures(load(dataset), rows=rows)
    return survival.figures_of_users_model(load(dataset), model, rows=rows)


def _deadlines(rows: int) -> list[Task]:
    return [("deadlines", _deadlines_case)]


def _deadlines_case() -> Lines:
    """Adult, by its own classifier and by users' models, quick and slow."""
    dataset = load("adult")
    train, _, test = dataset.split(seed=0)
    train = train.sample(5000, random_state=0).reset_index(drop=True)
    features = list(dataset.features)
    options: dict[str, Any] = {"label": dataset.label, "favourable": dataset.favourable, "immutable": dataset.masked}
    explainers = {"own": TabularExplainer(**options).fit(train)}
    for name in ("MLP", "random forest", "SVM"):
        model = fitted(name, train[features], (train[dataset.label] == dataset.favourable).astype(int), 0)
        explainers[name] = TabularExplainer.explaining(model, train, **options)
    return deadlines.figures(explainers, test[features], _RULES)


_TASKS: dict[str, Callable[[int], list[Task]]] = {
    "models": _models,
    "infeasible": _infeasible,
    "survival": _survival,
    "deadlines": _deadlines,
}
