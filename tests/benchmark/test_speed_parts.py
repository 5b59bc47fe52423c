"""What the speed study measures beside peers: figures that follow from the work done, on a small table."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from gpae.benchmark.speed import subject as subjects
from gpae.benchmark.speed.growth import exponent, seconds_of
from gpae.benchmark.speed.latency import one_row
from gpae.benchmark.speed.limit import angles_of_a_point, beside_the_peak, products_of_a_point
from gpae.benchmark.speed.own import OWN_PARTS
from gpae.benchmark.speed.rows import _forget_peak, _peak, by_rows
from gpae.benchmark.speed.sizes import by_sizes
from gpae.benchmark.speed.stages import STAGES, by_stage
from gpae.benchmark.speed.subject import Subject
from gpae.kernels.peak import peak_of_a_core
from tests.benchmark.jobs import Jobs

SMALL = {"n_features": 40, "latent_dim": 2, "max_epochs": 2, "density_features": 20, "density_draws": 500}


@pytest.fixture(scope="module")
def small() -> "pytest.MonkeyPatch":
    patch = pytest.MonkeyPatch()
    patch.setattr(subjects, "PAPER_SIZE", SMALL)
    patch.setattr("gpae.benchmark.speed.sizes.PAPER_SIZE", SMALL)
    patch.setattr("gpae.benchmark.speed.sizes._QUICK", {})
    patch.setattr("gpae.benchmark.speed.rows._LEAST_SECONDS", 0.0)
    yield patch
    patch.undo()


@pytest.fixture(scope="module")
def subject(small: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return Subject.of(tmp_path_factory.mktemp("speed"), Jobs())


def test_the_exponent_is_that_of_the_power() -> None:
    sizes = np.array([10.0, 100.0, 1000.0])
    assert exponent(sizes, 3 * sizes**1.5) == pytest.approx(1.5)


def test_repeats_are_told_by_their_median_and_ends() -> None:
    times = seconds_of(lambda: None, 5)
    assert times["least"] <= times["seconds"] <= times["most"]


def test_a_subject_is_refused_and_fitted_only_once(subject: Subject, tmp_path: Path, small: pytest.MonkeyPatch) -> None:
    assert (subject.explainer.predict_proba(subject.people)[:, 1] < 0.5).all()
    assert len(subject.rows(1000, 5)) == 1000
    assert subject.rows(1, len(subject.people)).equals(subject.rows(1))
    Subject.of(tmp_path, Jobs())
    with pytest.MonkeyPatch.context() as once:
        once.setattr(subjects, "fitted", lambda *_: pytest.fail("fitted again"))
        again = Subject.of(tmp_path, Jobs())
    assert again.people.equals(subject.people)


def test_rows_are_all_explained_in_portions(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    explain = subject.explainer.explain

    def counted(table: pd.DataFrame) -> object:
        asked.append(len(table))
        return explain(table)

    monkeypatch.setattr(subject.explainer, "explain", counted)
    monkeypatch.setattr("gpae.benchmark.speed.rows._PORTION", 150)
    table = by_rows(subject, (50, 1000, 1200))
    assert asked[1:] == [50, *[150] * 6, 100, *[150] * 8, 1000, 1200]  # the last two in one call each
    assert table["at_once_mib"].isna().tolist() == [True, False, False]
    assert (table["found"] == 1.0).all()
    # each peak is counted from what the process holds by then, so they need not rise
    assert table["peak_mib"].between(50, 50_000).all()
    assert table["exponent"].nunique() == 1


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="peaks are forgotten on Linux alone")
def test_a_peak_is_that_since_the_last_was_forgotten() -> None:
    _forget_peak()
    before = _peak()
    block = np.ones(25 << 20)  # 200 MiB
    high = _peak()
    del block
    assert high > before + 150
    assert _peak() > high - 50  # Linux counts pages by handfuls
    _forget_peak()
    assert _peak() < high - 150


def test_sizes_are_those_asked_for(small: pytest.MonkeyPatch) -> None:
    table = by_sizes(Jobs(), n_rows=20, sizes={"S": (16, 32), "D": (0.5, 1.0), "k": (1, 2)})
    assert table.groupby("varied")["size"].apply(list).to_dict()["S"] == [16, 32]
    columns = table[table.varied == "D"]["size"].tolist()
    assert columns[0] < columns[1]
    assert np.isfinite(table[["us_per_row", "exponent"]].to_numpy()).all()


def test_one_person_waits_for_so_many_plans(subject: Subject) -> None:
    table = one_row(subject, plans=(1, 3), people=4)
    assert table["k"].tolist() == [1, 3]
    assert (table["p50_ms"] <= table["p95_ms"]).all()


def test_stages_are_functions_that_there_are() -> None:
    for module, name in STAGES.values():
        owners = [module, *(part for part in vars(module).values() if isinstance(part, type))]
        assert any(name in vars(owner) for owner in owners), f"{module.__name__} has no {name}"


def test_the_stages_of_a_call_add_up(subject: Subject) -> None:
    table = by_stage(subject, 60)
    assert table["share"].sum() == pytest.approx(1.0)
    assert (table["seconds"] > 0).all()
    assert table["stage"].tolist()[-1] == "everything else"


def test_the_solver_stands_beside_the_peak(subject: Subject) -> None:
    if peak_of_a_core() is None:
        pytest.skip("nothing is compiled here")
    table = beside_the_peak(subject, 640, 3).set_index("search")
    assert list(table.index) == ["relaxed", "categories settled", "both"]
    assert (table["share_least"] <= table["share"]).all()
    assert (table["share"] <= table["share_most"]).all()
    # nothing is faster than the peak, and only the clock's noise makes a part longer than the whole
    assert table["at_peak"].between(0.02, 1.1).all()
    assert table["linearising"].between(0.02, 1.3).all()
    assert table.loc["both", "points"] == table["points"].iloc[:2].sum()
    assert (table["points"].iloc[:2] >= 640).all()


def test_products_and_angles_of_a_point_are_those_of_the_formulas_written_out() -> None:
    S, D, d, T = 7, 5, 3, 4
    u, Z, W, z = torch.rand(1, D), torch.rand(S, D), torch.rand(S, d), torch.rand(T, d)
    with FlopCounterMode(display=False) as counted:
        phase = u @ Z.T
        latent = phase.cos() @ W
        torch.mm(W.T * -phase.sin(), Z)
        bent = (latent @ z.T).sin() @ z
    by_entry = S * d + T * d * (d + 1) // 2  # the slopes' weights, and the curvature's triangle
    assert bent.shape == (1, d)
    assert counted.get_total_flops() / 2 + by_entry == products_of_a_point(S, D, d, T)
    assert angles_of_a_point(S, T) == phase.numel() + T


def gpu_figures(dataset: str, **other: float) -> pd.DataFrame:
    """A table as the GPU's part writes it."""
    figures = {
        "60 alternating updates": 8.0,
        "  times torch.compile": 6.0,
        "Newton search, many rows": 6.0,
        "  on the device": 4.0,
        "valid as on the processor": 1.0,
        "mean L2 on the GPU": 0.3004,
        "mean L2 on the processor": 0.3,
    } | other
    rates = ("60 alternating updates", "Newton search, many rows", "  on the device")
    units = ["M rows/s" if what in rates else "" for what in figures]
    return pd.DataFrame({"what": list(figures), "figure": list(figures.values()), "unit": units, "dataset": dataset})


@pytest.mark.parametrize(
    ("other", "broken"),
    [
        ({}, []),
        ({"60 alternating updates": 4.9}, ["60 alternating updates"]),
        ({"Newton search, many rows": 4.9}, ["Newton search"]),
        ({"  times torch.compile": 4.9}, ["torch.compile"]),
        ({"valid as on the processor": 0.9999}, ["the same rows valid"]),
        ({"mean L2 on the GPU": 0.2989}, ["mean L2"]),
    ],
)
def test_what_is_to_hold_on_a_gpu(other: dict[str, float], broken: list[str]) -> None:
    conditions = list(OWN_PARTS["gpu"].judge(gpu_figures("fico", **other)))
    assert len(conditions) == 5
    failed = [one.condition for one in conditions if not one.holds]
    assert len(failed) == len(broken)
    assert all(words in condition for words, condition in zip(broken, failed, strict=True))


def test_more_columns_than_asked_for_have_to_be_right_but_not_as_fast() -> None:
    slow = {"60 alternating updates": 1.0, "Newton search, many rows": 1.0}
    conditions = list(OWN_PARTS["gpu"].judge(gpu_figures("adult", **slow)))
    assert [one.holds for one in conditions] == [True, True]
