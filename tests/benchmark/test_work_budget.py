"""Budgets of counted work on real people: a lost speed-up fails here, without a clock."""

from collections import Counter
from collections.abc import Callable

import pandas as pd
import pytest
import torch

from gpae import TabularExplainer, datasets
from gpae.benchmark.paper_size import PAPER_SIZE
from gpae.benchmark.speed.subject import Subject
from gpae.benchmark.speed.work import work_of_a_plan
from gpae.kernels.compiled import why_not
from gpae.kernels.cosines import CosineSums
from gpae.numerics.fourier import FourierMap, draw_map

ROWS, MANY = 500, 16


@pytest.fixture(scope="module")
def subject() -> Subject:
    """Adult at the paper's size, fitted to some of its rows for a few epochs."""
    adult = datasets.load("adult")
    train, _, _ = adult.split(seed=0)
    explainer = TabularExplainer(
        label=adult.label,
        favourable=adult.favourable,
        immutable=adult.masked,
        seed=0,
        **(PAPER_SIZE | {"max_epochs": 5, "density_features": 500, "density_draws": 10_000}),
    ).fit(train.iloc[:6000])
    people = train.iloc[:6000][list(adult.features)]
    return Subject("adult", explainer, people[explainer.predict_proba(people)[:, 1] < 0.5])


@pytest.fixture(scope="module")
def work(subject: Subject) -> pd.DataFrame:
    return work_of_a_plan(subject, ROWS).set_index("counted")


def test_a_plan_takes_few_iterations(work: pd.DataFrame) -> None:
    """All that is tried for a plan: eight in the median on the whole data set, fitted to the end, and 28.

    Without the bend the mean is 6.9 and the 99th percentile 19; where all have to meet the boundary to a thousandth of
    the margin 7.7 and 18.
    """
    assert work.loc["iterations", "median"] <= 7  # 6
    assert work.loc["iterations", "mean"] <= 6.8  # 6.4
    assert work.loc["iterations", "p99"] <= 17  # 14
    assert work.loc["iterations of the first search", "p99"] <= 7  # 5
    assert work.loc["iterations", "stalled"] <= 0.02


def test_the_polish_takes_few_looks_at_the_map(work: pd.DataFrame) -> None:
    if why_not("polish.c"):
        pytest.skip(f"nothing is compiled here: {why_not('polish.c')}")
    assert work.loc["looks", "median"] <= 36  # 27, of both ways to settle the categories
    assert work.loc["looks", "p99"] <= 80  # 56


def test_a_call_goes_over_its_rows_few_times(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the search: people and plans are encoded once each, a plan's density and survival are asked for once."""
    if CosineSums.of(*_one_sum()) is None:
        pytest.skip(f"nothing is compiled here: {why_not('cosines.c')}")
    seen: Counter[str] = Counter()

    def counted(name: str) -> Callable[..., torch.Tensor]:
        whole = getattr(CosineSums, name)

        def call(sums: CosineSums, x: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
            seen[f"{name} of {sums.outputs if sums.outputs < MANY else 'many'}"] += len(x)
            return whole(sums, x, *more)

        return call

    for name in ("__call__", "above"):
        monkeypatch.setattr(CosineSums, name, counted(name))
    assert subject.explainer.explain(subject.rows(ROWS, ROWS)).summary() == {"found": ROWS}
    latents_and_logit = PAPER_SIZE["latent_dim"] + 1
    assert seen == {
        f"__call__ of {latents_and_logit}": 2 * ROWS,
        "__call__ of 1": ROWS,
        "above of many": ROWS,
    }


def _one_sum() -> tuple[FourierMap, torch.Tensor]:
    return draw_map(64, 2, 1.0, torch.Generator().manual_seed(0)), torch.ones(64, dtype=torch.float64)
