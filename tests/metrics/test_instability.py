import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpae.metrics.instability import INSTABILITY
from tests.metrics.made_answers import answers

X = [[0.0], [1.0], [3.0]]
U = [[10.0], [12.0], [20.0]]


def test_the_distance_of_the_answers_is_divided_by_one_plus_that_of_the_people() -> None:
    """Neighbours 0-1 (1 apart, answers 2), 1-0, and 2-1 (2 apart, answers 8); a person is no neighbour of itself."""
    score = INSTABILITY(answers(X, U), None)
    assert score.value == pytest.approx((2 / 2 + 2 / 2 + 8 / 3) / 3)
    assert score.n_rows == 3


def test_a_person_whose_nearest_neighbour_has_no_answer_is_left_out() -> None:
    """Person 1 is nearest to both others; that person 2 and 0 have answers makes them no neighbours."""
    assert INSTABILITY(answers(X, [[10.0], [np.nan], [20.0]]), None).n_rows == 0
    score = INSTABILITY(answers(X, [[10.0], [12.0], [np.nan]]), None)
    assert (score.value, score.n_rows) == (pytest.approx(1.0), 2)


def test_only_people_of_the_same_predicted_class_are_compared() -> None:
    """Person 1 wants the other class, so is in the other one now: 0 and 2 have each other."""
    score = INSTABILITY(answers(X, U, target=[1, 0, 1]), None)
    assert score.value == pytest.approx(10 / 4)
    assert score.n_rows == 2


def test_people_who_coincide_are_neighbours() -> None:
    score = INSTABILITY(answers([[0.5], [0.5]], [[1.0], [4.0]]), None)
    assert score.value == pytest.approx(3.0)


@given(st.integers(0, 1000))
def test_equal_answers_are_stable_and_order_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, u = rng.random((2, 9, 2))
    order = rng.permutation(9)
    assert INSTABILITY(answers(x, np.ones((9, 2))), None).value == 0
    value = INSTABILITY(answers(x, u), None).value
    assert INSTABILITY(answers(x[order], u[order]), None).value == pytest.approx(value)
