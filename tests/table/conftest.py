"""Small tables with the traits of the real ones."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

JOBS = ["Private", "State-gov", "Self-emp"]


@pytest.fixture(scope="session")
def adult_like() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 60
    return pd.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "workclass": [JOBS[i % 3] for i in range(n)],
            "gender": ["Male" if i % 2 else "Female" for i in range(n)],
            "hours": rng.integers(1, 99, n).astype(float),
            "member": rng.random(n) < 0.5,
            "size": pd.Categorical([["S", "M", "L"][i % 3] for i in range(n)], ["S", "M", "L"], ordered=True),
            "debt": [None if i % 7 == 0 else round(i**1.5, 2) for i in range(n)],
            "visa": [None if i % 5 == 0 else "yn"[i % 2] for i in range(n)],
            "income": [">50K" if i % 4 == 0 else "<=50K" for i in range(n)],
        }
    )


@pytest.fixture(scope="session")
def heloc_like() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    n = 60
    months = rng.integers(3, 80, n)
    months[:9] = [-9, -8, -7] * 3
    return pd.DataFrame(
        {
            "months": months,
            "amount": 500 + 25 * np.arange(n),
            "rate": np.round(5.0 + 0.25 * np.arange(n), 2),
            "free": rng.random(n),
            "risk": np.where(np.arange(n) % 2, "Good", "Bad"),
        }
    )


@pytest.fixture(scope="session")
def data_home() -> Path:
    home = os.environ.get("GPAE_DATA_HOME")
    if not home:
        pytest.skip("GPAE_DATA_HOME is not set: it must name the folder of the real data sets")
    return Path(home)
