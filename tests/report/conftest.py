"""A report of everything, small."""

import numpy as np
import pytest
import torch

from gpae.models.density_weight import DensityWeight
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt
from gpae.numerics.fourier import FourierMap
from gpae.plots.plan_view import LevelChange, NumberChange, PlanView
from gpae.report.demo_view import DemoReport, LatentCloud, Person, Quality
from gpae.table.schema import Categorical, Change, Continuous, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Integer(name="age", minimum=17, maximum=90, change=Change.up),
        Continuous(name="debt", minimum=0.0, maximum=900.5, step=0.5, codes=(-9.0,), missing=True),
        Ordinal(name="school", levels=("low", "middle", "high")),
        Categorical(name="<b>job", levels=tuple(f"job {i}" for i in range(12)), change=Change.fixed),
    ),
    label="income",
    favourable=">50K",
)


def _cloud() -> LatentCloud:
    latents = np.random.default_rng(0).normal(size=(60, 3))
    fmap = FourierMap(torch.zeros(2, 3, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    zeros, eye = torch.zeros(2, 3, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
    model = AutoEncoder(fmap, zeros, fmap, zeros, eye[0], torch.tensor(0.2, dtype=torch.float64))
    nothing = torch.tensor(0.0, dtype=torch.float64)
    tilt = Tilt(fmap, fmap.phases, torch.zeros(3, dtype=torch.float64), eye, eye, nothing, nothing)
    return LatentCloud(latents, latents[:, 0] > -0.2, model, tilt)


def _choice(divergence: list[float]) -> DensityWeight:
    grid, values = np.round(np.linspace(0.1, 1, len(divergence)), 2), np.array(divergence)
    latents = np.random.default_rng(1).normal(size=(len(grid), 20, 3)) * [0.0, 1.0, 1.0]
    return DensityWeight(grid, values, np.full(len(grid), 0.3), latents, float(grid[values.argmin()]))


def _people() -> tuple[Person, ...]:
    changes = (
        NumberChange("debt", 500.0, 120.5, np.linspace(0, 900, 101), 1),
        LevelChange("<b>job", "<i>now</i>", "a & b", {"a & b": 0.6, "<i>now</i>": 0.4}),
    )
    plan = PlanView("income >50K", changes, ("age", "school"), 0.2, 0.55, 71.0)
    facts = {"age": "38", "debt": "500.0", "<b>job": "<i>now</i>", "school": "low"}
    return (
        Person('Anna "<script>alert(1)</script>"', facts, "found", plans=(plan,)),
        Person("Ben", facts, "found", plans=(plan, plan)),
        Person("Chris", facts, "not_found", "The search <stalled>."),
        Person("Dana", facts, "already_favourable", plans=(PlanView("income >50K", (), ("age",), 0.7, 0.7),)),
    )


@pytest.fixture(scope="session")
def choice_of():
    return _choice


@pytest.fixture(scope="session")
def report() -> DemoReport:
    quality = Quality(1000, 0.812, 0.893, 0.5, -4.2, -4.9)
    statuses = {"found": 2, "not_found": 1, "already_favourable": 1}
    return DemoReport(
        "a <small> table",
        "gpae",
        SCHEMA,
        _people(),
        statuses,
        quality,
        _cloud(),
        _choice([3, 2, 1, 2]),
        {"seed": "<0>"},
    )
