"""``gpae bench`` and ``gpae report``, with the work itself left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpae.artefact import State
from gpae.benchmark.plan import Plan
from gpae.benchmark.record import Record
from gpae.benchmark.studies import correlations, digits, latents, paper

Run = Callable[..., Any]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans that would have been run."""
    seen: list[Plan] = []

    def run(folder: Path, plan: Plan, n_workers: int | None = None) -> list[Record]:
        seen.append(plan)
        return [Record("LCD", "GPAE", False, 0, metric, 0.5, 10, 1.0) for metric in ("L2", "Validity")]

    monkeypatch.setattr(paper, "run_paper", run)
    monkeypatch.setattr(paper, "tried_settings", lambda folder, plan: pd.DataFrame())
    return seen


def test_a_part_of_the_study_can_be_asked_for(run: Run, plans: list[Plan], tmp_path: Path) -> None:
    line = ["bench", "paper", "--datasets", "lcd,GMC", "--methods", "GPAE", "--methods", "face,logistic-one-step"]
    done = run(*line, "--seeds", "2", "--rows", "50", "--free", "-o", str(tmp_path), "--json")
    assert done.code == 0, done.stderr
    cells = plans[0].cells
    assert {cell.dataset for cell in cells} == {"lcd", "gmc"}
    assert {cell.method for cell in cells} == {"gpae", "face", "logistic-one-step"}
    assert {cell.seed for cell in cells} == {0, 1}
    assert {cell.kind for cell in cells} == {"free"}
    assert plans[0].rows == 50
    assert json.loads(done.stdout)["lines"] == 2
    written = pd.read_parquet(tmp_path / "paper" / "records.parquet")
    assert written.columns.tolist() == ["dataset", "method", "masked", "seed", "metric", "value", "n_rows", "seconds"]
    made = json.loads((tmp_path / "paper" / "run.json").read_text())
    assert made["rows"] == 50
    assert made["command"].split()[0] == "gpae"


@pytest.mark.parametrize(("settings", "folder"), [("default", "paper-default"), ("carla", "paper-carla")])
def test_other_settings_have_a_folder_of_their_own(
    run: Run, plans: list[Plan], tmp_path: Path, settings: str, folder: str
) -> None:
    done = run("bench", "paper", "--settings", settings, "--datasets", "lcd", "-o", str(tmp_path))
    assert done.code == 0, done.stderr
    assert (tmp_path / folder / "records.parquet").is_file()
    assert "mean rank" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--datasets", "iris"], "unknown data set 'iris'"),
        (["--methods", "dice"], "unknown method 'dice'"),
        (["--methods", "sae", "--masked"], "nothing to run"),
        (["--datasets", ","], "was given none"),
        (["--settings", "best"], "best"),
    ],
)
def test_what_cannot_be_run_is_refused(
    run: Run, plans: list[Plan], tmp_path: Path, options: list[str], words: str
) -> None:
    done = run("bench", "paper", *options, "-o", str(tmp_path))
    assert done.code == 2
    assert words in done.stderr
    assert not plans


def test_a_name_given_twice_counts_once(run: Run, plans: list[Plan], tmp_path: Path) -> None:
    run(
        "bench",
        "paper",
        "--datasets",
        "lcd,LCD",
        "--methods",
        "gpae,GPAE",
        "--free",
        "--seeds",
        "1",
        "-o",
        str(tmp_path),
    )
    assert len(plans[0].cells) == 1


def test_a_file_is_no_folder(run: Run, plans: list[Plan], tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    done = run("bench", "paper", "-o", str(tmp_path / "results"))
    assert done.code == 2
    assert "is a file" in done.stderr


def test_a_report_needs_a_study(run: Run, tmp_path: Path) -> None:
    done = run("report", str(tmp_path), "-o", str(tmp_path / "report.html"))
    assert done.code == 2
    assert "gpae bench paper" in done.stderr
    assert not (tmp_path / "report.html").exists()


def test_a_report_is_written_and_says_what_was_not_run(run: Run, plans: list[Plan], tmp_path: Path) -> None:
    run("bench", "paper", "-o", str(tmp_path))
    done = run("report", str(tmp_path), "-o", str(tmp_path / "report.html"), "--figures", str(tmp_path / "pictures"))
    assert done.code == 0, done.stderr
    assert "1 runs of the evaluation, 0 figures" in done.stdout
    assert "gpae bench figures" in done.stderr
    assert "evaluation" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_figures_are_drawn_as_png_and_svg(run: Run, plans: list[Plan], tmp_path: Path, ablated: Any) -> None:
    run("bench", "paper", "-o", str(tmp_path))
    (tmp_path / "ablation").mkdir()
    ablated.to_csv(tmp_path / "ablation" / "ablation.csv", index=False)
    done = run("report", str(tmp_path), "-o", str(tmp_path / "report.html"), "--figures", str(tmp_path / "pictures"))
    assert done.code == 0, done.stderr
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert {"ablation-latents.png", "ablation-latents.svg", "ablation-features.png"} <= names


@pytest.fixture
def ablated() -> pd.DataFrame:
    settings = {"latent_dim": (2, 4, 8), "n_features": (100, 1000)}
    lines = [
        (parameter, setting, seed, metric, 0.1 * seed + setting / 1000)
        for parameter, values in settings.items()
        for setting in values
        for seed in range(3)
        for metric in ("L2", "Diversity", "Instability", "DiscriminativePower", "IM1", "IM2")
    ]
    return pd.DataFrame(lines, columns=["parameter", "setting", "seed", "metric", "value"])


def test_figures_that_cannot_be_read_any_more_are_made_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    class Drawn:
        def state(self) -> State:
            return State({"a": np.zeros(1)}, {})

    def making(name: str) -> Callable[..., Drawn]:
        return lambda *_: made.append(name) or Drawn()  # type: ignore[func-returns-value]

    for module, name in ((latents, "latents"), (correlations, "correlations"), (digits, "digits")):
        monkeypatch.setattr(module, f"make_{name}", making(name))
    assert run("bench", "figures", "-o", str(tmp_path)).code == 0
    assert made == ["latents", "latents", "correlations", "digits"]
    (tmp_path / "figures" / "correlations.figure").write_bytes(b"of another version")
    assert run("bench", "figures", "-o", str(tmp_path)).code == 0
    assert made[4:] == ["correlations"]
