"""How the latent dimension and the number of Fourier features change the quality of GPAE's counterfactuals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from gpae.benchmark.cell_files import CellFiles
from gpae.benchmark.plan import Bench, Cell, Plan
from gpae.benchmark.record import Record
from gpae.benchmark.runner import run_cells
from gpae.benchmark.workbench import Workbench, scored
from gpae.explainers import EXPLAINERS
from gpae.files import written_whole
from gpae.models.gp_autoencoder import GPAEClassifier

__all__ = ["BETA", "COLUMNS", "PAPER", "Setting", "run_ablation"]

COLUMNS = ("parameter", "setting", "seed", "metric", "value")

BETA = 0.02
"""Fixed, so that only the model changes: where the divergence is least on LCD under the paper's setting."""

_BRIEF: dict[str, Any] = {"max_epochs": 5, "density_features": 100, "density_draws": 3000}


@dataclass(frozen=True, slots=True)
class Setting:
    """The size of a model: d latent dimensions and S Fourier features."""

    latent_dim: int
    n_features: int

    @property
    def name(self) -> str:
        """Part of a file name."""
        return f"d{self.latent_dim}-s{self.n_features}"


PAPER = Setting(4, 1000)
"""While one of the two changes, the other has the paper's value."""


def run_ablation(
    folder: Path,
    *,
    seeds: int = 5,
    rows: int = 1000,
    latent_dims: Sequence[int] = (2, 3, 4, 5, 6, 8),
    n_features: Sequence[int] = (50, 100, 250, 500, 1000, 2000),
    n_workers: int | None = None,
    dataset: str = "lcd",
    small: bool = False,
) -> pd.DataFrame:
    """Measure every setting with every seed, keep each as soon as it is done, and write ``ablation.csv``.

    A setting is a method of its own: a classifier of that size is fitted, the test rows that *it* refuses are answered,
    and it judges the answers. The rows and the auto-encoders of IM1 and IM2 are the same for all settings of a seed.

    Parameters
    ----------
    folder
        Holds the finished cells; a run that was interrupted goes on from there.
    rows
        At most so many test rows are looked at.
    small
        Whether everything is trained briefly, to see that it runs.

    Returns
    -------
    pandas.DataFrame
        One line a parameter (``latent_dim`` or ``n_features``), setting, seed and metric. The paper's setting belongs
        to both parameters; it is run once.
    """
    sweeps = {
        "latent_dim": {d: replace(PAPER, latent_dim=d) for d in latent_dims},
        "n_features": {S: replace(PAPER, n_features=S) for S in n_features},
    }
    settings = {
        _cell(dataset, seed, setting, rows): setting
        for sweep in sweeps.values()
        for setting in sweep.values()
        for seed in range(seeds)
    }
    folder.mkdir(parents=True, exist_ok=True)
    run_cells(folder, Plan(tuple(sorted(settings)), rows, small), partial(_run_bench, settings), n_workers)
    files = CellFiles(folder / "cells")
    lines = [
        (parameter, number, seed, record.metric, record.value)
        for parameter, sweep in sweeps.items()
        for number, setting in sorted(sweep.items())
        for seed in range(seeds)
        for record in files.records(_cell(dataset, seed, setting, rows).name) or ()
    ]
    frame = pd.DataFrame(lines, columns=list(COLUMNS))
    with written_whole(folder / "ablation.csv") as temporary:
        frame.to_csv(temporary, index=False)
    return frame


def _cell(dataset: str, seed: int, setting: Setting, rows: int) -> Cell:
    return Cell(dataset, seed, "free", "gpae", setting.name, rows)


def _run_bench(settings: Mapping[Cell, Setting], folder: Path, plan: Plan, bench: Bench, cells: Sequence[Cell]) -> None:
    files = CellFiles(folder / "cells")
    here = Workbench(bench.dataset, bench.seed, plan.rows, folder / "shared", plan.small)
    for cell in cells:
        files.keep(cell.name, _measured(here, settings[cell]))


def _measured(bench: Workbench, setting: Setting) -> list[Record]:
    model = _classifier(bench, setting)
    method = EXPLAINERS["gpae"](classifier=model, beta=BETA)
    method.fit(*bench.parts.train, layout=bench.layout(False), validation=bench.parts.valid)
    rows = bench.parts.test[0]
    refused = rows[model.predict_proba(rows)[:, 1] < 0.5]
    answers, seconds = bench.answers(method, refused)
    reference = replace(bench.reference(False), classifier=model)
    return [
        Record(bench.dataset.paper_name, f"GPAE {setting.name}", False, bench.seed, metric, value, n_rows, seconds)
        for metric, (value, n_rows) in scored(answers, refused, reference).items()
    ]


def _classifier(bench: Workbench, setting: Setting) -> GPAEClassifier:
    """The workbench's own where it has that size: it is fitted the same way."""
    shared = bench.classifier
    if Setting(shared.latent_dim, shared.n_features) == setting:
        return shared
    brief = _BRIEF if bench.small else {}
    model = GPAEClassifier(
        latent_dim=setting.latent_dim, n_features=setting.n_features, random_state=bench.seed, **brief
    )
    return model.fit(*bench.parts.train, validation=bench.parts.valid)
