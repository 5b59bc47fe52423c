import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpae.metrics.diversity import DIVERSITY
from gpae.metrics.mean_pairwise import MEAN_PAIRWISE
from tests.metrics.made_answers import answers, reference

U = [[0.0, 0.0], [np.nan, np.nan], [3.0, 0.0], [0.0, 4.0]]
"""Three answers, 3, 4 and 5 apart, and one query without."""


def test_diversity_counts_each_pair_once_but_divides_by_both_orders() -> None:
    score = DIVERSITY(answers(np.zeros((4, 2)), U), None)
    assert score.value == pytest.approx((3 + 4 + 5) / (3 * 2))
    assert score.n_rows == 3


def test_the_mean_distance_of_two_answers_is_twice_that() -> None:
    """An answer's distance to itself does not count: with it the value would be 24 / 9."""
    score = MEAN_PAIRWISE(answers(np.zeros((4, 2)), U), None)
    assert score.value == pytest.approx((3 + 4 + 5) / 3)
    assert score.n_rows == 3


def test_one_answer_alone_has_no_diversity_to_speak_of() -> None:
    for metric in (DIVERSITY, MEAN_PAIRWISE):
        score = metric(answers(np.zeros((2, 2)), U[:2]), None)
        assert np.isnan(score.value)
        assert score.n_rows == 0


def test_nothing_is_learnt_from_the_reference() -> None:
    assert DIVERSITY.prepare(reference()) is MEAN_PAIRWISE.prepare(reference()) is None


@given(st.integers(0, 1000), st.floats(0.1, 5), st.floats(-2, 2))
def test_order_and_shift_do_not_matter_and_scale_is_linear(seed: int, scale: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    u = rng.random((7, 3))
    value = DIVERSITY(answers(u, u), None).value
    moved = scale * rng.permutation(u) + shift
    assert DIVERSITY(answers(u, moved), None).value == pytest.approx(scale * value)
    assert MEAN_PAIRWISE(answers(u, u), None).value == pytest.approx(2 * value)
