"""Wachter: on a plane the walk can be written down."""

from typing import Any

import numpy as np
import pytest
from tests.explainers.linear_boundary import plane_classifier, square

from gpae.errors import InputError
from gpae.explainers.wachter import Wachter

SLOPE, OFFSET = np.array([8.0, 4.0]), 6.0
PERSONS = np.array([[0.2, 0.3], [0.3, 0.6], [0.5, 0.2], [0.1, 0.7]])
STEP = 0.01
"""Adam moves a column whose gradient keeps its sign by next to the learning rate."""


def made(**options: Any) -> Wachter:
    rows, layout = square(400)
    method = Wachter(classifier=plane_classifier(list(SLOPE), OFFSET), **options)
    method.fit(rows, np.arange(400) % 2, layout=layout)
    return method


def answers(method: Wachter, **options: Any) -> np.ndarray:
    found = method.explain(PERSONS, **options)
    assert found.found.all()
    return found.counterfactual


def beyond(u: np.ndarray) -> np.ndarray:
    return u @ SLOPE - OFFSET


def test_the_walk_stops_at_the_first_step_across_the_plane() -> None:
    past = beyond(answers(made()))
    assert (past > 0).all()
    assert (past <= 1.05 * STEP * SLOPE.sum()).all()


def test_every_column_walks_alike_because_adam_sees_signs() -> None:
    """The steepest way would move twice as much in the first column as in the second."""
    step = answers(made()) - PERSONS
    expected = -beyond(PERSONS) / SLOPE.sum()
    assert np.abs(step - expected[:, None]).max() < 3 * STEP


def test_a_fixed_column_stays_and_the_other_goes_the_whole_way() -> None:
    step = answers(made(), fixed=np.array([False, True])) - PERSONS
    assert (step[:, 1] == 0).all()
    assert np.abs(step[:, 0] + beyond(PERSONS) / SLOPE[0]).max() < 1.05 * STEP


def test_going_back_ends_on_the_plane() -> None:
    walked, shrunk = answers(made()), answers(made(shrink=True))
    past = beyond(shrunk)
    assert (past > 0).all()
    assert (past < 0.002 * -beyond(PERSONS)).all()
    share = (shrunk - PERSONS) / (walked - PERSONS)
    assert np.abs(share[:, 0] - share[:, 1]).max() < 1e-5


def test_a_distance_too_dear_to_cross_is_made_cheaper_until_it_is_not() -> None:
    """At the boundary the slope of the loss is half the classifier's: no step pays from a weight of 4 on."""
    assert not made(distance_weight=40.0, rounds=1, n_iterations=300).explain(PERSONS).found.any()
    assert made(distance_weight=40.0, rounds=6, n_iterations=300).explain(PERSONS).found.all()


def test_the_presets_weight_falls_by_a_twentieth_and_not_below_nothing() -> None:
    assert made(preset="carla")._weights() == [0.01, 0.0]
    assert made(preset="carla", distance_weight=0.07)._weights() == [pytest.approx(0.07), pytest.approx(0.02)]


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match="preset"):
        made(preset="other")
