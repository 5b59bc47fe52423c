"""Rows that no plain search brings across the boundary."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt
from gpae.numerics.fourier import FourierMap
from gpae.search import newton, polish
from gpae.search.problem import Problem, Surface
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema

FREQUENCY = 3.0
PERSON = torch.tensor([[0.2, 0.2]], dtype=torch.float64)
BEYOND = torch.tensor([[0.9, 0.9]], dtype=torch.float64)
"""A favourable row, far away."""


def doubles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.fixture
def valley() -> Surface:
    """A logit with a valley in which the person stands, flat in every direction; the density rises with column b.

    Latent 1 is cos(3 (a + b) + c), least at the person; latent 2 falls with b. The classifier sees latent 1 only.
    """
    frequencies = torch.tensor([[FREQUENCY, FREQUENCY], [0.0, 1.0]], dtype=torch.float64)
    phases = doubles(math.pi - FREQUENCY * 0.4, math.pi / 2)
    encoder, nothing = FourierMap(frequencies, phases), torch.zeros(2, 2, dtype=torch.float64)
    model = AutoEncoder(
        encoder, torch.eye(2, dtype=torch.float64), encoder, nothing, doubles(1.0, 0.0), doubles(0.0)[0]
    )
    eye = torch.eye(2, dtype=torch.float64)
    flat = FourierMap(torch.zeros(1, 2, dtype=torch.float64), doubles(0.0))
    return Surface(model, Tilt(flat, doubles(0.0), doubles(0.0, -3.0), eye, eye, doubles(0.0)[0], doubles(0.0)[0]))


@pytest.fixture
def layout() -> Layout:
    frame = pd.DataFrame({"a": np.linspace(0, 1, 50), "b": np.linspace(1, 0, 50), "y": np.arange(50) % 2})
    return Codec.fit(frame, Schema.infer(frame, label="y", favourable=1)).layout


def problem() -> Problem:
    zero, one = torch.zeros_like(PERSON), torch.ones_like(PERSON)
    return Problem(PERSON, zero, one, doubles(0.0), doubles(1.0), doubles(0.01))


def test_a_person_in_a_valley_is_led_out_by_the_density(
    valley: Surface, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nearest favourable rows lie 0.37 away, on the line a + b = 0.4 + pi / 6."""
    relaxed = newton.solve(valley, problem()).u
    led = polish.polish(valley, problem(), layout, relaxed, {1: BEYOND})
    monkeypatch.setattr(polish, "_DENSITY_LEADS", ())
    alone = polish.polish(valley, problem(), layout, relaxed, {1: BEYOND})
    distance, without = (float((one.u - PERSON).norm()) for one in (led, alone))
    assert led.valid.all()
    assert alone.valid.all()
    assert distance == pytest.approx(math.pi / 6 / math.sqrt(2), abs=0.02)
    assert without > 1.2 * distance


def test_a_person_who_asks_for_the_other_class_changes_nobodys_rescue(valley: Surface, layout: Layout) -> None:
    alone = polish.polish(valley, problem(), layout, newton.solve(valley, problem()).u, {1: BEYOND, -1: PERSON})
    one = problem()
    both = Problem(
        torch.cat([PERSON, BEYOND]),
        *(torch.cat([part, part]) for part in (one.lower, one.upper, one.beta)),
        doubles(1.0, -1.0),
        torch.cat([one.margin, one.margin]),
    )
    together = polish.polish(valley, both, layout, newton.solve(valley, both).u, {1: BEYOND, -1: PERSON})
    assert together.valid.all()
    torch.testing.assert_close(together.u[:1], alone.u, rtol=0, atol=0)


def test_a_way_is_as_long_alone_as_among_others() -> None:
    """Where two moves lead as far as each other, the last bit decides."""
    ways = torch.rand(40, 6, 43, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    metric = torch.ones(43, dtype=torch.float64)
    together = polish._squares(ways, metric)
    for row in range(len(ways)):
        assert torch.equal(polish._squares(ways[row : row + 1], metric)[0], together[row])
