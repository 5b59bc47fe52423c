import numpy as np
import pytest

from gpae.numerics import distances
from gpae.numerics.distances import NOWHERE, mean_distance_to_others, nearest_of_class, nearest_other


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "_BLOCK", 7)


def test_mean_distances_leave_out_the_row_itself_and_rows_of_nan() -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((20, 3))
    rows[[4, 11]] = np.nan
    mean = mean_distance_to_others(rows)
    for i in range(20):
        others = [np.linalg.norm(rows[i] - rows[j]) for j in range(20) if j != i and j not in (4, 11)]
        assert mean[i] == pytest.approx(np.mean(others), nan_ok=True)
    assert np.isnan(mean_distance_to_others(rows[:1])).all()
    assert len(mean_distance_to_others(rows[:0])) == 0


def test_the_nearest_other_row_has_the_same_label_and_may_coincide() -> None:
    rows = np.array([[0.0], [0.1], [0.5], [0.0], [0.8]])
    nearest, distance = nearest_other(rows, np.array([0, 1, 0, 0, 1]))
    np.testing.assert_array_equal(nearest, [3, 4, 0, 0, 1])
    np.testing.assert_allclose(distance, [0, 0.7, 0.5, 0, 0.7])


def test_a_row_without_another_of_its_label_is_infinitely_far() -> None:
    _, distance = nearest_other(np.array([[0.0], [0.1]]), np.array([0, 1]))
    assert np.isinf(distance).all()


def test_a_row_is_no_neighbour_of_itself_but_its_double_is() -> None:
    rows = np.array([[0.2], [0.2], [0.3], [0.9]])
    members = np.array([True, True, True, True])
    np.testing.assert_array_equal(nearest_of_class(rows[:1], rows, members, 2), [[1, 2]])
    np.testing.assert_array_equal(nearest_of_class(np.array([[0.25]]), rows, members, 1), [[0]])


def test_only_members_count_and_missing_ones_are_nowhere() -> None:
    rows = np.linspace(0, 1, 30)[:, None]
    members = np.zeros(30, dtype=bool)
    members[[3, 20]] = True
    chosen = nearest_of_class(rows, rows, members, 3)
    np.testing.assert_array_equal(chosen[0], [3, 20, NOWHERE])
    np.testing.assert_array_equal(chosen[3], [20, NOWHERE, NOWHERE])
    np.testing.assert_array_equal(chosen[29], [20, 3, NOWHERE])
    assert (nearest_of_class(rows, rows, np.zeros(30, dtype=bool), 3) == NOWHERE).all()
