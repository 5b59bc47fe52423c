import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpae.metrics.l2 import L2
from gpae.metrics.l2_norm import L2_NORM
from tests.metrics.made_answers import answers, reference

REFERENCE = reference()
X = [[0.0, 0.0, 1, 0, 0], [0.2, 0.1, 0, 1, 0], [0.5, 0.5, 1, 0, 0]]
U = [[0.3, 0.4, 0, 0, 1], [0.8, 0.9, 0, 1, 0], [np.nan] * 5]


def test_l2_is_the_mean_squared_distance_of_the_numbers_only() -> None:
    """0.09 + 0.16 and 0.36 + 0.64; the level's 2, a root, a mean over columns, or N = 3 would give other values."""
    score = L2(answers(X, U), L2.prepare(REFERENCE))
    assert score.value == pytest.approx((0.25 + 1.0) / 2)
    assert score.n_rows == 2


def test_l2_norm_is_the_mean_of_the_distances_and_not_the_root_of_the_mean() -> None:
    score = L2_NORM(answers(X, U), L2_NORM.prepare(REFERENCE))
    assert score.value == pytest.approx((0.5 + 1.0) / 2)
    assert score.value != pytest.approx(np.sqrt(0.625))
    assert score.n_rows == 2


@given(st.integers(0, 1000), st.floats(-3, 3))
def test_both_are_symmetric_and_do_not_see_a_shift(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    x, u = rng.random((2, 6, 5))
    for metric in (L2, L2_NORM):
        columns = metric.prepare(REFERENCE)
        value = metric(answers(x, u), columns).value
        assert metric(answers(u, x), columns).value == pytest.approx(value)
        assert metric(answers(x + shift, u + shift), columns).value == pytest.approx(value)


@given(st.integers(0, 1000), st.floats(0.1, 5))
def test_l2_grows_with_the_square_of_the_scale_and_l2_norm_with_the_scale(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    x, u = rng.random((2, 6, 5))
    for metric, power in ((L2, 2), (L2_NORM, 1)):
        columns = metric.prepare(REFERENCE)
        value = metric(answers(x, u), columns).value
        assert metric(answers(scale * x, scale * u), columns).value == pytest.approx(scale**power * value)
