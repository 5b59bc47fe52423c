"""What many tests share: run-time shape checks, and one small fitted explainer."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: tests share their cores

from jaxtyping import install_import_hook

# The mathematics is checked against its annotated shapes in every test. Set GPAE_NO_SHAPE_CHECKS=1 to time tests.
if not os.environ.get("GPAE_NO_SHAPE_CHECKS"):
    hook = install_import_hook(("gpae.numerics", "gpae.search"), "beartype.beartype")
    hook.__enter__()

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

from gpae import TabularExplainer

settings.register_profile("gpae", deadline=None)  # a busy machine is no failure
settings.load_profile("gpae")

SMALL = {"n_features": 150, "max_epochs": 8, "density_features": 60, "density_draws": 3000, "latent_dim": 3}


def loans(n: int = 500, seed: int = 0) -> pd.DataFrame:
    """A lending table with every kind of column; the decision depends on most of them."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.integers(15, 120, n),
            "debt": np.round(rng.gamma(2.0, 8.0, n), 2),
            "loan": rng.integers(1, 80, n) * 25,
            "job": rng.choice(["clerk", "nurse", "cook", "owner"], n),
            "married": rng.choice(["no", "yes"], n),
            "age": rng.integers(18, 80, n),
            "score": np.where(rng.random(n) < 0.1, np.nan, rng.integers(300, 850, n)),
        }
    )
    worth = (
        0.05 * (frame.income - 60) - 0.06 * frame.debt - 0.001 * (frame.loan - 1000)
        + frame.job.map({"clerk": 0.0, "nurse": 0.5, "cook": -0.5, "owner": 1.0})
        + 0.004 * (frame.score.fillna(500) - 550)
    )  # fmt: skip
    frame["granted"] = np.where(worth + rng.normal(0, 0.4, n) > 0, "yes", "no")
    return frame


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    return loans()


@pytest.fixture(scope="session")
def explainer(table: pd.DataFrame) -> TabularExplainer:
    return TabularExplainer(label="granted", favourable="yes", immutable=("age",), **SMALL).fit(table)
