"""The compiled polish beside the plain one: the same allowed values, and plans that are as good."""

import numpy as np
import pytest
import torch
from hypothesis import given, reject, settings

from gpae.kernels.compiled import library, why_not
from gpae.kernels.finisher import Finisher
from gpae.kernels.snapping import allowed, snap
from gpae.numerics.autoencoder import encode, logit
from gpae.search import newton, polish
from gpae.search.problem import Problem, objective
from gpae.table.layout import Layout
from gpae.table.scaling import MinMax
from gpae.table.schema import Categorical, Continuous, Integer, Ordinal, Schema
from gpae.table.value_block import ValueBlock
from tests.kernels.test_lanes import drawn
from tests.table.test_layout import cases


def packed(layout: Layout, latents: int = 2) -> Finisher:
    surface = drawn(40, layout.width, latents)
    finisher = Finisher.of(surface.model, surface.density, layout)
    if library("polish.c", REAL="double", LATENT=str(latents)) is None:
        pytest.skip(f"nothing is compiled here: {why_not('polish.c')}")
    if finisher is None:  # a grid that is too fine
        reject()
    return finisher


def problem_of(
    x: np.ndarray, lower: np.ndarray, upper: np.ndarray, beta: float = 0.02, margin: float = 0.05
) -> Problem:
    one = torch.ones(len(x), dtype=torch.float64)
    return Problem(*(torch.as_tensor(part) for part in (x, lower, upper)), beta * one, one, margin * one)


@settings(max_examples=150)
@given(cases())
def test_snapping_is_that_of_the_layout(case) -> None:
    layout, X, _, lower, upper, U = case
    if library("snap.c") is None:
        pytest.skip(f"nothing is compiled here: {why_not('snap.c')}")
    snapped = snap(layout, U, X, lower, upper)
    expected = layout.snap(U, X, lower, upper)
    within = _within_tables(layout, X)
    np.testing.assert_allclose(snapped[within], expected[within], rtol=0, atol=1e-12)
    assert layout.is_allowed(snapped, X, lower, upper)[layout.is_allowed(expected, X, lower, upper)].all()
    own = np.isclose(expected, X, rtol=0, atol=0)
    assert (snapped[own] == X[own]).all()  # what is the person's own is so bit for bit
    for rows in (snapped, expected, U, X, np.where(own, X, U), snapped[::-1].copy(), np.abs(np.rint(U))):
        np.testing.assert_array_equal(allowed(layout, rows, X, lower, upper), layout.is_allowed(rows, X, lower, upper))


def _within_tables(layout: Layout, X: np.ndarray) -> np.ndarray:
    """B x D: not so where a person beyond the range widens the bounds of a grid that is tabled."""
    within = np.ones(X.shape, dtype=bool)
    for block in layout.features:
        if isinstance(block, ValueBlock) and block.grid.step is not None and not isinstance(block.scaling, MinMax):
            low, high = block.span_of_numbers()
            out = (X[:, block.start] < low - 1e-9) | (X[:, block.start] > high + 1e-9)
            within[out, block.columns] = False
    return within


@settings(max_examples=60)
@given(cases())
def test_whatever_it_ends_with_is_allowed(case) -> None:
    layout, X, _, lower, upper, U = case
    done = packed(layout).finish(problem_of(X, lower, upper).tensors(), torch.as_tensor(U))
    before = layout.is_allowed(layout.snap(U, X, lower, upper), X, lower, upper)
    assert layout.is_allowed(done.u.numpy(), X, lower, upper)[before].all()


@pytest.fixture(scope="module")
def layout() -> Layout:
    schema = Schema(
        features=(
            Integer(name="months", minimum=0, maximum=80, codes=(-9,)),
            Continuous(name="debt", minimum=0.0, maximum=50.0, step=0.01),
            Continuous(name="ratio", minimum=0.0, maximum=1.0, missing=True),
            Categorical(name="job", levels=("a", "b", "c", "d")),
            Ordinal(name="grade", levels=("low", "middle", "high"), change="up"),
            Continuous(name="wealth", minimum=0.0, maximum=1e5, step=10.0, scaling="robust"),
        ),
        label="y",
        favourable=1,
    )
    return Layout.fit(schema, people(400, 0))


def people(n: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        np.where(rng.random(n) < 0.2, -9.0, rng.integers(0, 81, n)),
        np.round(rng.uniform(0, 50, n), 2),
        np.where(rng.random(n) < 0.2, np.nan, rng.random(n)),
        rng.integers(0, 4, n).astype(float),
        rng.integers(0, 3, n).astype(float),
        10.0 * np.rint(np.minimum(rng.exponential(300.0, n), 9999)),
    ]


@pytest.fixture(scope="module")
def case(layout: Layout) -> tuple[polish.Surface, Problem]:
    surface = drawn(80, layout.width, 3)
    X = layout.encode(np.stack(people(1500, 1), axis=1))
    rows = torch.as_tensor(X)
    X = X[(logit(surface.model, encode(surface.model, rows)) < -0.1).numpy()][:200]
    return surface, problem_of(X, *layout.box(X))


def test_plans_are_as_good_as_those_of_the_plain_polish(
    case: tuple[polish.Surface, Problem], layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    surface, problem = case
    packed(layout, 3)
    u = problem.x + 0.3 * torch.randn(problem.x.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    fast = polish._finish(surface, problem, layout, u)
    monkeypatch.setattr(polish, "finisher", lambda surface, layout: None)
    plain = polish._finish(surface, problem, layout, polish._snap(problem, layout, u))
    assert fast.valid.double().mean() >= plain.valid.double().mean() - 0.01
    both = fast.valid & plain.valid
    assert both.double().mean() > 0.8
    assert float(fast.objective[both].mean()) <= 1.01 * float(plain.objective[both].mean())
    same = (fast.objective - plain.objective).abs()[both] <= 1e-6
    assert same.double().mean() > 0.5


def test_what_is_said_of_a_plan_is_so(case: tuple[polish.Surface, Problem], layout: Layout) -> None:
    surface, problem = case
    packed(layout, 3)
    finisher = Finisher.of(surface.model, surface.density, layout)
    assert finisher is not None
    done = finisher.finish(problem.tensors(), problem.x)
    value, h = objective(surface, problem, done.u)
    torch.testing.assert_close(done.objective, value, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(done.h, h, rtol=0, atol=1e-11)
    assert (done.h >= -1e-7).double().mean() > 0.8
    alone = finisher.finish(problem.rows(torch.tensor([7])).tensors(), problem.x[7:8])
    assert torch.equal(alone.u[0], done.u[7])


def test_a_grid_too_fine_for_a_table_is_left_to_the_plain_polish() -> None:
    schema = Schema(
        features=(Continuous(name="wealth", minimum=0.0, maximum=1e9, step=0.01, scaling="robust"),),
        label="y",
        favourable=1,
    )
    layout = Layout.fit(schema, [np.array([0.0, 1.0, 1e9])])
    surface = drawn(40, 1, 2)
    assert Finisher.of(surface.model, surface.density, layout) is None


def test_a_plan_takes_few_looks_at_the_map(case: tuple[polish.Surface, Problem], layout: Layout) -> None:
    """A budget of counted work: a lost speed-up fails here without a clock."""
    surface, problem = case
    packed(layout, 3)
    finisher = Finisher.of(surface.model, surface.density, layout)
    assert finisher is not None
    relaxed = newton.solve(surface, problem).u
    looks = finisher.finish(problem.tensors(), relaxed).looks.double()
    assert looks.min() >= 1
    assert looks.median() <= 110  # of this rough surface; 14 to 28 on the data sets
    assert looks.quantile(0.99) <= 350
