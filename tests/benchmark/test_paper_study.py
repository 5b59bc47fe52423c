"""The study itself, on a small table with quick methods."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpae.benchmark.cell_files import CellFiles
from gpae.benchmark.plan import Plan
from gpae.benchmark.ranks import SEVEN
from gpae.benchmark.studies import paper
from gpae.benchmark.workbench import Workbench
from tests.conftest import loans

METHODS = ["logistic", "wachter", "gpae"]


class Loans:
    """A table that can be split as a data set can."""

    name, paper_name, label, favourable, masked = "loans", "Loans", "granted", "yes", ("age",)

    def split(self, seed: int) -> tuple[pd.DataFrame, ...]:
        table = loans(700, seed=seed)
        return table[:400], table[400:550], table[550:]


@pytest.fixture(scope="module", autouse=True)
def _loans_is_a_data_set() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpae.benchmark.workbench.datasets.load", lambda name: Loans())
        yield


def plan_of(settings: str) -> Plan:
    return Plan.of(
        [Loans()],  # type: ignore[list-item]
        1,
        free=METHODS,
        masked=["wachter", "gpae"],
        classifiers=["LogReg"],
        rows=150,
        presets=paper._presets(settings, paper.TRIALS),  # type: ignore[arg-type]
        small=True,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def records(folder: Path) -> pd.DataFrame:
    return pd.DataFrame(paper.run_paper(folder, plan_of("chosen"), n_workers=1))


def test_every_cell_has_the_seven_metrics_on_its_own_and_on_the_common_rows(records: pd.DataFrame) -> None:
    for masked, methods in ((False, {"LogReg", "Wachter", "GPAE"}), (True, {"Wachter", "GPAE"})):
        part = records[records.masked == masked]
        for metric in SEVEN:
            assert set(part[part.metric == metric].method) == methods
            assert set(part[part.metric == f"{metric}Common"].method) == methods


def test_classifiers_are_in_it_and_so_is_that_of_gpae(records: pd.DataFrame) -> None:
    assert set(records[records.metric == "auc"].method) == {"LogReg", "GPAE"}


def test_all_methods_are_asked_about_the_rows_that_the_shared_classifier_refuses(
    records: pd.DataFrame, folder: Path
) -> None:
    bench = Workbench("loans", 0, 150, folder / "shared", small=True)
    refused = (bench.classifier.predict_proba(bench.parts.test[0])[:, 1] < 0.5).sum()
    asked = records[(records.metric == "Validity") & ~records.masked]
    assert asked.n_rows.tolist() == [refused] * 3


def test_whom_the_methods_own_classifier_favours_counts_as_invalid_but_not_against_its_own_validity(
    records: pd.DataFrame, folder: Path
) -> None:
    favoured = CellFiles(folder / "cells").answers("loans-0-free-logistic-chosen-rows150").favoured
    figures = records[(records.method == "LogReg") & ~records.masked].set_index("metric")
    assert 0 < favoured.sum() < len(favoured)
    assert figures.value["ValiditySelf"] == 1.0
    assert figures.n_rows["ValiditySelf"] == (~favoured).sum()
    assert figures.value["Found"] == pytest.approx((~favoured).mean())
    assert figures.value["Validity"] <= figures.value["Found"]


def test_the_settings_are_those_with_the_best_rank_on_validation_rows(records: pd.DataFrame, folder: Path) -> None:
    files = CellFiles(folder / "cells")
    trials = {name: files.trials(f"loans-0-free-{name}-chosen-rows150") for name in METHODS}
    assert all(trials.values())
    for name in METHODS:
        number = paper.best_trial(name, trials)  # type: ignore[arg-type]
        same = (files.folder / f"loans-0-free-{name}-rows150.safetensors").read_bytes() == (
            files.folder / f"loans-0-free-{name}-chosen-rows150.safetensors"
        ).read_bytes()
        assert same is (number == 0)


def test_what_the_cells_have_taken_is_noted(records: pd.DataFrame, folder: Path) -> None:
    taken = CellFiles(folder / "cells").seconds(
        ["loans-0-free-gpae-chosen-rows150", "loans-0-classifier-logreg-rows150", "none"]
    )
    assert taken["loans-0-free-gpae-chosen-rows150"] > taken["loans-0-classifier-logreg-rows150"] > 0
    assert taken["none"] == 0
    minutes = paper.core_minutes(folder, plan_of("chosen"))
    assert minutes["all"] >= sum(taken.values()) / 60 - 0.05
    assert minutes["GPAE-ind"] == 0


def test_a_finished_study_is_only_collected(
    records: pd.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise AssertionError("something was run again")

    monkeypatch.setattr(Workbench, "fitted", fails)
    again = pd.DataFrame(paper.run_paper(folder, plan_of("chosen"), n_workers=1))
    pd.testing.assert_frame_equal(again, records)
    default = pd.DataFrame(paper.run_paper(folder, plan_of("default"), n_workers=1))
    assert len(default) == len(records)


def test_a_lost_cell_is_run_again_with_the_same_figures(records: pd.DataFrame, folder: Path) -> None:
    for name in ("loans-0-free-wachter-rows150.json", "loans-0-free-wachter-chosen-rows150.json"):
        (folder / "cells" / name).unlink()
    again = pd.DataFrame(paper.run_paper(folder, plan_of("chosen"), n_workers=1))
    timed = ("RowsPerSecond", "FitSeconds")
    before, after = (frame[~frame.metric.isin(timed)].drop(columns="seconds") for frame in (records, again))
    pd.testing.assert_frame_equal(after.reset_index(drop=True), before.reset_index(drop=True))


def test_the_common_rows_are_those_that_every_method_answered(records: pd.DataFrame, folder: Path) -> None:
    files = CellFiles(folder / "cells")
    found = [files.answers(f"loans-0-free-{name}-chosen-rows150").found for name in METHODS]
    common = records[(records.metric == "L2Common") & ~records.masked]
    assert set(common.n_rows) == {int(np.logical_and.reduce(found).sum())}


def test_what_two_methods_learn_alike_is_learnt_once_and_its_seconds_count_for_both(folder: Path) -> None:
    bench = Workbench("loans", 0, 150, folder / "shared", small=True)
    revise, seconds = bench.fitted("revise", None, masked=True)
    cchvae, later = bench.fitted("cchvae", None, masked=True)
    assert cchvae.autoencoder_ is revise.autoencoder_  # type: ignore[attr-defined]
    assert later >= seconds
    alone = Workbench("loans", 0, 150, folder / "shared", small=True).fitted("cchvae", None, masked=True)[0]
    assert alone.autoencoder_.losses_ == revise.autoencoder_.losses_  # type: ignore[attr-defined]
    np.testing.assert_array_equal(
        cchvae.explain(bench.refused[:20]).counterfactual, alone.explain(bench.refused[:20]).counterfactual
    )
    free, _ = bench.fitted("revise", None, masked=False)
    assert free.autoencoder_ is not revise.autoencoder_  # type: ignore[attr-defined]
