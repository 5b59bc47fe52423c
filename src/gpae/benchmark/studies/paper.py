"""The paper's evaluation: every method on every data set, free and masked, and the classifiers' table."""

import copy
import hashlib
import inspect
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from gpae.benchmark.cell_files import CellFiles
from gpae.benchmark.classifiers import CLASSIFIERS, classification_scores, fitted
from gpae.benchmark.contenders import GUISES, contender
from gpae.benchmark.plan import Bench, Cell, Plan
from gpae.benchmark.record import Record, read_records, read_run
from gpae.benchmark.runner import run_cells
from gpae.benchmark.tuning import TRIALS, Trial, best_trial, trial_name
from gpae.benchmark.workbench import Workbench, scored
from gpae.dataset import Dataset
from gpae.datasets import load
from gpae.errors import InputError
from gpae.explainer import Explainer
from gpae.explainers import EXPLAINERS
from gpae.numerics.tiles import TILE

__all__ = [
    "FREE",
    "MASKED",
    "Settings",
    "core_minutes",
    "refuse_to_lose",
    "run_paper",
    "small_plan",
    "tried_settings",
    "whole_plan",
]

FREE = (
    "logistic", "wachter", "cchvae", "revise", "cruds", "clue", "face", "sae", "counternet", "gpae-inducing", "gpae",
)  # fmt: skip
"""The methods of the paper's table without a mask, in its order."""

MASKED = ("wachter", "cchvae", "revise", "cruds", "clue", "face", "counternet", "gpae")
"""Those of its masked table."""

MASKED_GUISES = ("face-paths-only",)

_WITH_CLASSIFIER = ("sae", "gpae-inducing", "gpae")
"""Methods whose own classifier is a line of the classifiers' table."""

CHOSEN = "chosen"
"""Marks cells whose settings were chosen among all methods of the study."""

_POSITIVE = {"fico": 0}
"""The class that precision and recall are of, where that is not the favourable one: the paper takes ``Bad``."""


Settings: TypeAlias = Literal["chosen", "default", "carla"]


def whole_plan(
    datasets: Sequence[Dataset],
    seeds: int,
    rows: int,
    *,
    methods: Sequence[str] | None = None,
    free: bool = True,
    masked: bool = True,
    settings: Settings = "chosen",
) -> Plan:
    """The cells of the study, or of a part of it.

    ``settings``: ``"chosen"`` on validation rows, each method's ``"default"``, or ``"carla"``, the preset of those
    methods that have one; the others are then as chosen, among all methods if that study was run before.
    """
    beside = methods is None and settings != "carla"
    chosen = set((*FREE, *GUISES) if beside else FREE if methods is None else methods)
    return Plan.of(
        datasets,
        seeds,
        free=[name for name in (*FREE, *GUISES) if free and name in chosen],
        masked=[name for name in (*MASKED, *MASKED_GUISES) if masked and name in chosen],
        classifiers=list(CLASSIFIERS) if beside and free else [],
        rows=rows,
        presets=_presets(settings, chosen),
    )


def _presets(settings: Settings, methods: Collection[str]) -> dict[str, str]:
    """What cells of each method are marked with; those that are the same under other settings are not run twice."""
    if settings == "default":
        return {}
    chosen = dict.fromkeys(TRIALS, CHOSEN if settings == "carla" else _chosen_among(methods))
    if settings == "chosen":
        return chosen
    return chosen | {name: "carla" for name in FREE if "preset" in inspect.signature(EXPLAINERS[name]).parameters}


def _chosen_among(methods: Collection[str]) -> str:
    """The mark of settings chosen among these methods: what is chosen among a few is not what is chosen among all."""
    field = sorted(set(methods) & set(TRIALS))
    if field == sorted(TRIALS):
        return CHOSEN
    return f"{CHOSEN}{hashlib.sha256(','.join(field).encode()).hexdigest()[:6]}"


def small_plan(dataset: Dataset, rows: int) -> Plan:
    """One data set, one seed, every method that trains quickly: does everything still run?"""
    quick = [name for name in FREE if name != "gpae-inducing"]
    classifiers = ["LogReg", "Decision Tree"]
    return Plan.of([dataset], 1, free=quick, masked=MASKED, classifiers=classifiers, rows=rows, small=True)


def run_paper(folder: Path, plan: Plan, n_workers: int | None = None) -> list[Record]:
    """Run what is not finished and return all records of the plan.

    ``folder`` holds the cells, of plans with different settings side by side, and what they share.
    """
    files = CellFiles(folder / "cells")
    _check_chosen(files, plan)
    run_cells(folder, plan, _run_bench, n_workers)
    records = [record for cell in plan.cells for record in files.records(cell.name) or ()]
    for bench in plan.by_bench(plan.cells):
        records += _on_common_rows(folder, plan, bench)
    return records


def refuse_to_lose(folder: Path, plan: Plan) -> None:
    """Raise where the records in a folder are of more than the plan: its own would take their place."""
    if not (folder / "records.parquet").is_file():
        return
    records = read_records(folder)
    there = set(zip(records.dataset, records.method, records.masked, records.seed, strict=True))
    asked = {(load(c.dataset).paper_name, _label(c), c.kind == "masked", c.seed) for c in plan.cells}
    rows = read_run(folder).get("rows", 0)
    more = f"of {rows} test rows" if rows > plan.rows else ""
    if lost := sorted(there - asked):
        dataset, method, _, seed = lost[0]
        more = f"of {len(lost)} more cells, such as {method} on {dataset} with seed {seed}"
    if more:
        raise InputError(
            f"{folder / 'records.parquet'} holds figures {more}, which those of this part of the study would replace; "
            "name another folder with -o, or run the whole: finished cells are kept"
        )


def _label(cell: Cell) -> str:
    return cell.method if cell.kind == "classifier" else contender(cell.method).label


def _check_chosen(files: CellFiles, plan: Plan) -> None:
    """Beside presets, other methods are as they were chosen among all: that has to have been done."""
    if any(cell.preset == "carla" for cell in plan.cells):
        lacking = [cell for cell in files.unfinished(plan.cells) if cell.preset == CHOSEN]
        if lacking:
            raise InputError(
                f"the settings of {lacking[0].method} on {lacking[0].dataset} are not chosen yet; run the study with "
                "--settings chosen first, or leave out the methods without a preset"
            )


def core_minutes(folder: Path, plan: Plan) -> dict[str, float]:
    """Minutes of one core that the plan has taken, defaults and trials included, and how many are GPAE-ind's."""
    taken = CellFiles(folder / "cells").seconds({name for cell in plan.cells for name in _pieces(cell)})
    inducing = {name for cell in plan.cells if cell.method == "gpae-inducing" for name in _pieces(cell)}
    of_inducing = sum(taken[name] for name in inducing)
    return {"all": round(sum(taken.values()) / 60, 1), "GPAE-ind": round(of_inducing / 60, 1)}


def _pieces(cell: Cell) -> tuple[str, str]:
    """A cell and, where its settings are chosen, the default that is tried first."""
    return cell.name, replace(cell, preset="").name if cell.preset.startswith(CHOSEN) else cell.name


def tried_settings(folder: Path, plan: Plan) -> pd.DataFrame:
    """Every trial on validation rows: dataset, seed, masked, method, trial, settings, chosen, the seven metrics."""
    files = CellFiles(folder / "cells")
    lines: list[dict[str, Any]] = []
    if any(cell.preset == "carla" for cell in plan.cells):
        return pd.DataFrame(lines)  # those beside the presets were chosen, and written down, by another study
    for cell in plan.cells:
        if cell.preset.startswith(CHOSEN):
            field = _field(files, plan, cell)
            kept = files.choice(cell.name)
            best = best_trial(cell.method, field) if kept is None else kept
            for number, trial in enumerate(field[cell.method]):
                where = {"dataset": cell.dataset, "seed": cell.seed, "masked": cell.kind == "masked"}
                what = {"method": contender(cell.method).label, "trial": trial_name(cell.method, number)}
                what |= {"settings": json.dumps(dict(trial.settings))}
                figures = {name: round(value, 5) for name, value in trial.figures.items()}
                lines.append(where | what | {"chosen": number == best} | figures)
    return pd.DataFrame(lines)


def _workbench(folder: Path, plan: Plan, bench: Bench) -> Workbench:
    return Workbench(bench.dataset, bench.seed, plan.rows, folder / "shared", plan.small)


def _run_bench(folder: Path, plan: Plan, bench: Bench, cells: Sequence[Cell]) -> None:
    """Run and keep each cell; those with chosen settings last, when every method has made its trials."""
    files, here = CellFiles(folder / "cells"), _workbench(folder, plan, bench)
    for cell in cells:
        if cell.preset.startswith(CHOSEN):
            _make_trials(files, here, cell)
            continue
        with files.timed(cell.name):
            if cell.kind == "classifier":
                files.keep(cell.name, _classifier_cell(here, cell))
            else:
                _method_cell(files, here, cell)
    for cell in cells:
        if cell.preset.startswith(CHOSEN):
            with files.timed(cell.name):
                _chosen_cell(files, here, cell, _field(files, plan, cell))


def _make_trials(files: CellFiles, bench: Workbench, cell: Cell) -> None:
    """Measure the method as it is by default, and try its settings on validation rows."""
    default = replace(cell, preset="")
    if files.records(default.name) is None:
        with files.timed(default.name):
            _method_cell(files, bench, default)
    if files.trials(cell.name) is None:
        numbers = range(len(TRIALS[cell.method]) + 1)
        with files.timed(cell.name):
            files.keep_trials(cell.name, [bench.trial(cell.method, n, cell.kind == "masked") for n in numbers])


def _field(files: CellFiles, plan: Plan, cell: Cell) -> dict[str, list[Trial]]:
    """The trials of all methods on the cell's data set and seed, under the same mask."""
    where = (cell.dataset, cell.seed, cell.kind)
    mine = [c for c in plan.cells if (c.dataset, c.seed, c.kind) == where and c.preset == cell.preset]
    return {c.method: trials for c in mine if (trials := files.trials(c.name)) is not None}


def _chosen_cell(files: CellFiles, bench: Workbench, cell: Cell, field: Mapping[str, Sequence[Trial]]) -> None:
    """Measure a method under the settings that were best on validation rows; the default may be the best."""
    number = best_trial(cell.method, field)
    files.keep_choice(cell.name, number)
    default = replace(cell, preset="")
    if number == 0:
        files.keep(cell.name, files.records(default.name) or (), files.answers(default.name))
        return
    method = bench.chosen(cell.method, number, cell.kind == "masked")
    _measure(files, bench, cell, method, bench.fitted(cell.method, None, cell.kind == "masked")[1])


def _classifier_cell(bench: Workbench, cell: Cell) -> list[Record]:
    model, seconds = fitted(cell.method, bench.seed, bench.parts)
    return _classification(bench, cell.method, model, seconds)


def _classification(bench: Workbench, name: str, model: Any, seconds: float) -> list[Record]:
    X, y = bench.parts.test
    scores = classification_scores(model, X, y, positive=_POSITIVE.get(bench.dataset.name, 1))
    return [
        Record(bench.dataset.paper_name, name, False, bench.seed, metric, value, len(X), seconds)
        for metric, value in scores.items()
    ]


def _method_cell(files: CellFiles, bench: Workbench, cell: Cell) -> None:
    _measure(files, bench, cell, *bench.fitted(cell.method, cell.preset or None, cell.kind == "masked"))


def _measure(files: CellFiles, bench: Workbench, cell: Cell, method: Explainer, fit_seconds: float) -> None:
    masked = cell.kind == "masked"
    answers, seconds = bench.answers(method, bench.refused)
    figures = scored(answers, bench.refused, bench.reference(masked))
    asked = len(bench.refused)
    figures |= {"FitSeconds": (fit_seconds, asked), "RowsPerSecond": (asked / max(seconds, 1e-9), asked)}
    if cell.method == "gpae-inducing" and cell.seed == 0:  # so slow that one seed says enough
        figures["RowsPerSecondUncached"] = _uncached_rate(bench, method)
    records = _records(bench, cell, figures, seconds)
    if cell.method in _WITH_CLASSIFIER and not masked:
        records += _classification(bench, contender(cell.method).label, method.classifier_, fit_seconds)
    files.keep(cell.name, records, answers)


def _uncached_rate(bench: Workbench, method: Explainer) -> tuple[float, int]:
    """Answers a second of GPAE-ind with the whole predictive distribution in every step, as the paper timed it.

    One tile of rows: fewer would take as long.
    """
    rows = bench.refused[:TILE]
    _, seconds = bench.answers(copy.copy(method).set_params(cached=False), rows)
    return len(rows) / max(seconds, 1e-9), len(rows)


def _on_common_rows(folder: Path, plan: Plan, bench: Bench) -> Iterable[Record]:
    """The metrics again on the rows that every method answered; guises of a method do not count."""
    files, here = CellFiles(folder / "cells"), _workbench(folder, plan, bench)
    for kind in ("free", "masked"):
        where = (bench.dataset, bench.seed, kind)
        cells = [c for c in plan.cells if (c.dataset, c.seed, c.kind) == where and c.method not in GUISES]
        answers = {cell: files.answers(cell.name) for cell in cells}
        if not answers:
            continue
        common = np.logical_and.reduce([one.found for one in answers.values()])
        for cell, one in answers.items():
            scores = scored(one, here.refused, here.reference(kind == "masked"), common)
            yield from _records(here, cell, {f"{name}Common": value for name, value in scores.items()}, 0.0)


def _records(bench: Workbench, cell: Cell, figures: dict[str, tuple[float, int]], seconds: float) -> list[Record]:
    name, masked = contender(cell.method).label, cell.kind == "masked"
    return [
        Record(bench.dataset.paper_name, name, masked, bench.seed, metric, value, n_rows, seconds)
        for metric, (value, n_rows) in figures.items()
    ]
