import numpy as np
import pytest

from gpae.metrics.im1 import IM1, IM1_MEDIAN
from gpae.metrics.im2 import IM2, IM2_MEDIAN
from tests.metrics.made_answers import answers, reference


class Shrinking:
    """Auto-encoders that rebuild a fixed share of a row: 0 by class 0, a half by class 1, a quarter by all rows."""

    def of_class(self, X: np.ndarray, label: np.ndarray) -> np.ndarray:
        return np.where(label == 1, 0.5, 0.0)[:, None] * X

    def of_all(self, X: np.ndarray) -> np.ndarray:
        return 0.25 * X


U = [[3.0, 4.0], [0.0, 2.0], [np.nan, np.nan], [-1.0, 1.0]]
X = np.zeros((4, 2))


def test_im1_is_the_squared_error_as_target_over_that_as_origin() -> None:
    """|u / 2|^2 / |u|^2: unsquared it would be a half, upside down four."""
    score = IM1(answers(X, U), Shrinking())
    assert score.value == pytest.approx(0.25, rel=1e-6)
    assert score.n_rows == 3


def test_im1_of_the_other_target_is_the_other_way_round() -> None:
    assert IM1(answers(X, U, target=0), Shrinking()).value == pytest.approx(4, rel=1e-5)
    both = IM1(answers(X, U, target=[1, 0, 1, 1]), Shrinking())
    assert both.value == pytest.approx((0.25 + 4 + 0.25) / 3, rel=1e-5)


def test_im1_survives_an_answer_that_the_original_class_rebuilds_exactly() -> None:
    score = IM1(answers(X[:1], [[1e-5, 0.0]]), Shrinking())
    assert score.value == pytest.approx(0.25 * 1e-10 / (1e-10 + 1e-7))


def test_im2_is_the_squared_difference_of_two_rebuilds_over_the_sum_of_sizes() -> None:
    """|u / 4|^2 / |u|_1, signs apart; with |u|_2 the first would be 25 / 16 / 5."""
    score = IM2(answers(X, U), Shrinking())
    expected = [25 / 16 / 7, 4 / 16 / 2, 2 / 16 / 2]
    assert score.value == pytest.approx(np.mean(expected), rel=1e-6)
    assert score.n_rows == 3
    against_class_0 = IM2(answers(X[:1], U[:1], target=0), Shrinking())
    assert against_class_0.value == pytest.approx(25 / 16 / 7, rel=1e-6)


def test_the_medians_are_of_the_same_numbers() -> None:
    targets = [1, 0, 1, 1]
    assert IM1_MEDIAN(answers(X, U, target=targets), Shrinking()).value == pytest.approx(0.25, rel=1e-6)
    median = IM2_MEDIAN(answers(X, U), Shrinking())
    assert median.value == pytest.approx(4 / 16 / 2, rel=1e-6)
    assert median.n_rows == 3


def test_all_four_share_one_training() -> None:
    made = Shrinking()
    against = reference(made={"class_autoencoders": made})
    assert all(metric.prepare(against) is made for metric in (IM1, IM1_MEDIAN, IM2, IM2_MEDIAN))
