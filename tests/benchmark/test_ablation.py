"""The ablation: long form, every setting with every seed, and nothing run twice."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gpae.benchmark.studies import ablation
from gpae.benchmark.studies.ablation import COLUMNS, Setting, run_ablation
from gpae.benchmark.workbench import Workbench
from gpae.metrics import METRICS
from gpae.models.class_autoencoders import Schedule
from gpae.models.gp_autoencoder import GPAEClassifier
from tests.conftest import loans


class Loans:
    name, paper_name, label, favourable, masked = "loans", "Loans", "granted", "yes", ("age",)

    def split(self, seed: int) -> tuple[pd.DataFrame, ...]:
        table = loans(500, seed=seed)
        return table[:300], table[300:400], table[400:]


BRIEF = {"max_epochs": 3, "density_features": 20, "density_draws": 300}
SMALL_SIZE = {"latent_dims": (2, 4), "n_features": (60, 100)}


@pytest.fixture(scope="module", autouse=True)
def _small_world() -> Any:
    """What is tested does not depend on how well anything is trained."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpae.benchmark.workbench.datasets.load", lambda name: Loans())
        patch.setattr("gpae.benchmark.workbench.Schedule", lambda max_steps: Schedule(max_steps=30))
        patch.setattr("gpae.benchmark.workbench._SMALL_CLASSIFIER", BRIEF | {"n_features": 100})
        patch.setattr(ablation, "_BRIEF", BRIEF)
        patch.setattr(ablation, "PAPER", Setting(4, 100))
        yield


def run(folder: Path, **more: Any) -> pd.DataFrame:
    options = {"seeds": 2, "rows": 100, "n_workers": 1, "dataset": "loans", "small": True, **SMALL_SIZE}
    return run_ablation(folder, **(options | more))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ablation") / "new"


@pytest.fixture(scope="module")
def frame(folder: Path) -> pd.DataFrame:
    return run(folder)


def values(frame: pd.DataFrame, parameter: str, setting: int) -> list[float]:
    mine = frame[(frame.parameter == parameter) & (frame.setting == setting) & (frame.metric == "L2")]
    return mine.value.tolist()


def test_every_setting_has_every_metric_with_every_seed(frame: pd.DataFrame) -> None:
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == 4 * 2 * len(METRICS)
    assert not frame.duplicated(["parameter", "setting", "seed", "metric"]).any()
    assert set(zip(frame.parameter, frame.setting, strict=True)) == {
        ("latent_dim", 2), ("latent_dim", 4), ("n_features", 60), ("n_features", 100),
    }  # fmt: skip
    assert set(frame.seed) == {0, 1}


def test_the_papers_setting_is_run_once_and_shown_twice(frame: pd.DataFrame, folder: Path) -> None:
    assert len(list((folder / "cells").glob("*.json"))) == 3 * 2
    assert values(frame, "latent_dim", 4) == values(frame, "n_features", 100)
    assert values(frame, "latent_dim", 2) != values(frame, "latent_dim", 4)


def test_each_setting_judges_its_own_answers(frame: pd.DataFrame) -> None:
    valid = frame[frame.metric == "Validity"].value
    found = frame[frame.metric == "Found"].value
    assert (found > 0.9).all()
    assert valid.tolist() == found.tolist(), "what a setting's own classifier accepts is valid in its eyes"


def test_the_table_is_written_beside_the_cells(frame: pd.DataFrame, folder: Path) -> None:
    pd.testing.assert_frame_equal(pd.read_csv(folder / "ablation.csv"), frame)


def test_only_what_is_missing_is_run_again(frame: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    fit = GPAEClassifier.fit

    def counted(self: GPAEClassifier, *args: Any, **more: Any) -> GPAEClassifier:
        fitted.append((self.latent_dim, self.n_features, self.random_state))
        return fit(self, *args, **more)

    monkeypatch.setattr(GPAEClassifier, "fit", counted)
    (folder / "cells" / "loans-1-free-gpae-d2-s100-rows100.json").unlink()
    pd.testing.assert_frame_equal(run(folder), frame)
    assert fitted == [(2, 100, 1)]


def test_cells_of_fewer_rows_are_not_taken_for_those_of_the_study(frame: pd.DataFrame, folder: Path) -> None:
    fewer = run(folder, rows=60, seeds=1, latent_dims=(4,), n_features=())
    assert values(fewer, "latent_dim", 4) != values(frame, "latent_dim", 4)[:1]


def test_a_model_of_the_workbenchs_size_is_the_workbenchs(folder: Path, frame: pd.DataFrame) -> None:
    bench = Workbench("loans", 0, 100, folder / "shared", small=True)
    size = Setting(bench.classifier.latent_dim, bench.classifier.n_features)
    assert ablation._classifier(bench, size) is bench.classifier
    other = ablation._classifier(bench, Setting(2, 60))
    assert (other.latent_dim, other.n_features, other.random_state) == (2, 60, 0)
