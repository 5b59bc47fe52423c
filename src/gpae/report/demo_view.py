"""What the demo's page shows, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpae.models.density_weight import DensityWeight
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt
from gpae.plots.plan_view import PlanView
from gpae.table.schema import Schema

__all__ = ["DemoReport", "LatentCloud", "Person", "Quality"]


@dataclass(frozen=True, slots=True, eq=False)
class Person:
    """One refused person and the plans found for them."""

    name: str
    facts: Mapping[str, str]
    """Every feature and its value now, as text in the user's units."""
    status: str
    """One of the contract's statuses."""
    reason: str = ""
    """Why there is no plan; empty where there is one."""
    plans: tuple[PlanView, ...] = ()
    refused_for: str = ""
    """The main reasons of the refusal, in words; no advice."""


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """How the model does on rows it was not fitted to; None where it was not measured."""

    rows: int
    accuracy: float | None = None
    auc: float | None = None
    majority: float | None = None
    """Share of the more common class: the accuracy of always answering it."""
    log_density: float | None = None
    """Mean log density of the held-out latents, in nats a row."""
    log_envelope: float | None = None
    """The same under the Gaussian envelope alone."""


@dataclass(frozen=True, slots=True, eq=False)
class LatentCloud:
    """Latents of some training rows with the model and the density that belong to them."""

    latents: NDArray[np.float64]
    favourable: NDArray[np.bool_]
    model: AutoEncoder
    density: Tilt


@dataclass(frozen=True, slots=True, eq=False)
class DemoReport:
    """All that the page shows."""

    dataset: str
    method: str
    schema: Schema
    people: tuple[Person, ...]
    statuses: Mapping[str, int]
    """How many query rows ended in each status."""
    quality: Quality
    cloud: LatentCloud | None = None
    choice: DensityWeight | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    """Small print at the end: version, seed, time taken."""
