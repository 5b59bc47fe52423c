"""Wachter: on a plane the walk can be written down."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.explainers.linear_boundary import plane_classifier, square

from gpae.errors import InputError
from gpae.explainers.wachter import Wachter
from gpae.table.codec import Codec
from gpae.table.schema import Schema

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


def test_the_preset_decides_what_it_names_and_no_weight_rewards_distance() -> None:
    method = made(preset="carla", distance_weight=0.7, learning_rate=0.5, n_iterations=7)
    settings = method._settings()
    assert method._weights() == [0.01, 0.0]
    assert (settings["learning_rate"], settings["n_iterations"], method.learning_rate) == (0.01, 1000, 0.5)


def test_a_level_changes_where_nothing_else_can_help() -> None:
    """Rounding has no gradient of its own: without one passed through it, the level would never change."""
    frame = pd.DataFrame({"a": np.linspace(0, 1, 40), "job": ["x", "y"] * 20, "y": [0, 1] * 20})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    rows = codec.encode(frame).rows
    weights = np.where(codec.layout.discrete, 0.0, 0.01)
    weights[np.flatnonzero(codec.layout.discrete)[-1]] = 8.0
    method = Wachter(classifier=plane_classifier(list(weights), 4.0))
    method.fit(rows, np.arange(40) % 2, layout=codec.layout)
    refused = rows[rows @ weights < 4.0]
    found = method.explain(refused, fixed=np.array([True, False]))
    assert len(refused)
    assert found.found.all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("distance_weight", -3.0), ("distance_weight", float("nan")), ("distance_weight", "much"), ("rounds", 0),
        ("n_iterations", -5), ("n_iterations", 2.5), ("n_iterations", True), ("learning_rate", -1.0),
    ],
)  # fmt: skip
def test_what_cannot_be_walked_with_is_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=name):
        made(**{name: value})


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match="preset"):
        made(preset="other")
