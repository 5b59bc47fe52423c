"""Straight ways: they end where asked, are the shortest on a plane, keep bounds, and heed what the model has said."""

import math

import numpy as np
import pytest
import torch

from gpae.kernels.slopes import Slope
from gpae.numerics.autoencoder import AutoEncoder, encode, logit
from gpae.numerics.fourier import FourierMap, draw_map
from gpae.search.guide import Kernel, Said, _Walk, straight_ways
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Continuous, Schema

D = 4
SLOPE = np.array([3.0, -2.0, 1.0, 0.5])
OFFSET = -2.0
SCALE = np.array([1.0, 4.0, 2.0, 1.0])
MARGIN = 0.3
KERNEL = Kernel(length_scale=0.5, size=2.0, noise=0.05)
SCHEMA = Schema(
    features=tuple(Continuous(name=f"x{i}", minimum=-5.0, maximum=6.0) for i in range(D)), label="y", favourable=1
)


def plane(bend: float = 0.01) -> AutoEncoder:
    """A surrogate with the logit SLOPE'x + OFFSET, nearly: sines of arguments near 0, the nearer the less it bends."""
    amplitude = math.sqrt(2.0 / D)
    encoder = FourierMap(bend * torch.eye(D, dtype=torch.float64), torch.full((D,), 1.5 * math.pi, dtype=torch.float64))
    weights = torch.as_tensor(SLOPE / (bend * amplitude)).unsqueeze(1)
    decoder = draw_map(D, 1, 1.0, torch.Generator().manual_seed(0))
    one = torch.ones(1, dtype=torch.float64)
    offset = torch.tensor(OFFSET, dtype=torch.float64)
    return AutoEncoder(encoder, weights, decoder, torch.zeros(D, D, dtype=torch.float64), one, offset)


def people(n: int = 60, rules: tuple[dict[str, object], ...] = (), seed: int = 0) -> Freedom:
    """People well inside of their ranges."""
    rng = np.random.default_rng(seed)
    layout = Layout.fit(SCHEMA, [np.array([-5.0, 6.0])] * D)
    return Freedom.of(layout, SCHEMA, read_constraints(rules), layout.encode(rng.uniform(-2.0, 3.0, (n, D))))


def on_plane(U: np.ndarray) -> np.ndarray:
    return U @ SLOPE + OFFSET


def true_logit(model: AutoEncoder, U: np.ndarray) -> np.ndarray:
    return logit(model, encode(model, torch.as_tensor(U))).numpy()


def test_a_way_ends_at_the_asked_margin_where_the_surrogate_hardly_bends() -> None:
    free, model = people(), plane(bend=0.3)
    row, ends = straight_ways(model, free, SCALE, MARGIN, KERNEL)
    np.testing.assert_array_equal(row, np.arange(len(free)))
    inside = ((ends > free.lower) & (ends < free.upper)).all(axis=1)
    assert inside.mean() > 0.5
    np.testing.assert_allclose(true_logit(model, ends)[inside], MARGIN, atol=2e-3)


def test_on_a_plane_it_is_the_weighted_projection() -> None:
    free = people()
    _, ends = straight_ways(plane(), free, SCALE, MARGIN, KERNEL)
    unit = 1.0 / SCALE**2
    short = MARGIN - on_plane(free.x)
    projection = free.x + short[:, None] * unit * SLOPE / (SLOPE**2 * unit).sum()
    inside = ((projection > free.lower) & (projection < free.upper)).all(axis=1)
    assert inside.mean() > 0.5
    np.testing.assert_allclose(ends[inside], projection[inside], atol=2e-3)


def test_bounds_are_kept_and_the_other_columns_go_the_rest_of_the_way() -> None:
    """x0 weighs most; what it may not do, the others make up for, as in the projection without it."""
    free = people(rules=({"kind": "fixed", "features": ["x0"]}, {"kind": "direction", "feature": "x1", "change": "up"}))
    _, ends = straight_ways(plane(), free, SCALE, MARGIN, KERNEL)
    single = np.float32(1e-6)
    assert (ends >= free.lower - single).all()
    assert (ends <= free.upper + single).all()
    np.testing.assert_allclose(ends[:, 0], free.x[:, 0], atol=1e-6)
    assert (ends[:, 1] >= free.x[:, 1] - single).all()
    loose = ((ends[:, 2:] > free.lower[:, 2:]) & (ends[:, 2:] < free.upper[:, 2:])).all(axis=1)
    np.testing.assert_allclose(on_plane(ends)[loose], MARGIN, atol=2e-3)


def test_who_may_change_nothing_stays() -> None:
    free = people(rules=({"kind": "fixed", "features": [f"x{i}" for i in range(D)]},))
    _, ends = straight_ways(plane(), free, SCALE, MARGIN, KERNEL)
    np.testing.assert_allclose(ends, free.x, atol=1e-6)


def walk(model: AutoEncoder, noise: float) -> _Walk:
    kernel = Kernel(KERNEL.length_scale, KERNEL.size, noise)
    return _Walk(Slope.of(model), kernel, torch.as_tensor(1.0 / SCALE**2, dtype=torch.float32), MARGIN)


@pytest.mark.parametrize("m", [1, 3])
def test_the_mended_logit_says_at_the_rows_what_the_model_has_said(m: int) -> None:
    """Up to the noise: of one row the share noise^2 / (size^2 + noise^2) of the difference is left."""
    rng, model = np.random.default_rng(1), plane()
    rows = torch.as_tensor(rng.random((5, m, D)), dtype=torch.float32)
    said = torch.as_tensor(rng.normal(0, 2, (5, m)), dtype=torch.float32)
    known = torch.as_tensor(true_logit(model, rows.flatten(0, 1).double().numpy()), dtype=torch.float32).reshape(5, m)
    for noise, left in ((0.01, 0.01), (2.0, None)):
        mending = walk(model, noise)
        weights = mending._weights(rows, said)
        for j in range(m):
            mended = known[:, j] + mending._mended(rows[:, j], rows, weights)[0]
            if left is not None:
                torch.testing.assert_close(mended, said[:, j], atol=left, rtol=0.0)
            elif m == 1:
                torch.testing.assert_close(mended, (known + said)[:, j] / 2, atol=1e-3, rtol=0.0)


def test_far_away_from_what_was_said_nothing_changes() -> None:
    rows = torch.zeros(1, 1, D)
    mending = walk(plane(), 0.1)
    weights = mending._weights(rows, torch.tensor([[3.0]]))
    far = torch.full((1, D), 10 * KERNEL.length_scale)
    more, steeper = mending._mended(far, rows, weights)
    assert float(more.abs()) < 1e-6
    assert float(steeper.abs().max()) < 1e-6


def test_the_slope_of_what_is_mended_is_its_derivative() -> None:
    rng = np.random.default_rng(2)
    rows = torch.as_tensor(rng.random((1, 2, D)), dtype=torch.float32)
    mending = walk(plane(), 0.1)
    weights = mending._weights(rows, torch.tensor([[1.0, -1.0]]))
    u = torch.as_tensor(rng.random((1, D)), dtype=torch.float32)
    _, steeper = mending._mended(u, rows, weights)
    for i, h in enumerate(torch.eye(D) * 1e-2):
        up, down = (mending._mended(u + side * h, rows, weights)[0] for side in (1, -1))
        assert float(steeper[0, i]) == pytest.approx(float((up - down) / 2e-2), abs=2e-2)


def test_a_way_that_has_been_told_otherwise_goes_on_until_the_mended_logit_is_there() -> None:
    free, model = people(), plane()
    _, first = straight_ways(model, free, SCALE, MARGIN, KERNEL)
    said = Said(first[:, None], np.full((len(first), 1), -0.4))
    _, ends = straight_ways(model, free, SCALE, MARGIN, KERNEL, said)
    square = np.square(ends - first).sum(axis=1)
    k = KERNEL.size**2 * np.exp(-square / (2 * KERNEL.length_scale**2))
    weight = (-0.4 - true_logit(model, first)) / (KERNEL.size**2 + KERNEL.noise**2)
    inside = ((ends > free.lower) & (ends < free.upper)).all(axis=1)
    assert inside.mean() > 0.5
    np.testing.assert_allclose((true_logit(model, ends) + weight * k)[inside], MARGIN, atol=0.05)
    assert (on_plane(ends) > on_plane(first) + 0.1)[inside].all()


def test_what_is_said_far_away_does_not_change_the_way() -> None:
    free = people()
    said = Said(np.full((len(free), 1, D), 20.0), np.full((len(free), 1), -3.0))
    _, plain = straight_ways(plane(), free, SCALE, MARGIN, KERNEL)
    _, told = straight_ways(plane(), free, SCALE, MARGIN, KERNEL, said)
    np.testing.assert_allclose(told, plain, atol=1e-5)


@pytest.mark.parametrize("told", [False, True])
def test_one_persons_way_does_not_depend_on_the_others(told: bool) -> None:
    free, model = people(150), plane(bend=0.5)
    rng = np.random.default_rng(3)
    rows, logits = rng.random((150, 2, D)), rng.normal(size=(150, 2))
    _, together = straight_ways(model, free, SCALE, MARGIN, KERNEL, Said(rows, logits) if told else None)
    for i in (0, 77, 149):
        one = np.array([i])
        said = Said(rows[one], logits[one]) if told else None
        _, alone = straight_ways(model, free.rows(one), SCALE, MARGIN, KERNEL, said)
        np.testing.assert_array_equal(alone[0], together[i])
