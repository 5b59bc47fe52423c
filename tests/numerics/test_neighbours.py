import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpae.numerics.neighbours import (
    NOWHERE,
    EdgeWeights,
    first_of_each,
    log_ball_volume,
    nearest_rows,
    nearest_sources,
    neighbour_graph,
    within_hops,
)


def test_volumes_of_balls() -> None:
    volumes = [np.exp(log_ball_volume(dimension)) for dimension in (1, 2, 3)]
    np.testing.assert_allclose(volumes, [2, np.pi, 4 * np.pi / 3])


def test_a_step_costs_its_length_times_log_one_plus_one_over_the_density() -> None:
    length = np.array([0.1, 0.5, 2.0])
    density = 5 / (100 * np.pi * length**2)
    weights = EdgeWeights("density", k=5, n_rows=100, dimension=2)
    np.testing.assert_allclose(weights.log_density(length), np.log(density))
    np.testing.assert_allclose(weights(length), length * np.log(1 + 1 / density))


def test_weights_neither_overflow_nor_vanish_in_many_dimensions() -> None:
    for weighing in ("density", "distance", "hops"):
        weights = EdgeWeights(weighing, k=50, n_rows=7000, dimension=400)(np.array([0.0, 1e-9, 1.0, 30.0]))
        assert np.isfinite(weights).all()
        assert (weights > 0).all()
        assert (np.diff(weights) >= 0).all()
        assert EdgeWeights(weighing, 50, 7000, 400)(np.array([np.inf]))[0] == np.inf


def test_the_other_weights_are_the_length_and_one() -> None:
    length = np.array([0.25, 3.0])
    np.testing.assert_array_equal(EdgeWeights("distance", 5, 100, 2)(length), length)
    np.testing.assert_array_equal(EdgeWeights("hops", 5, 100, 2)(length), [1, 1])


def test_nodes_are_joined_if_either_counts_the_other_and_by_the_larger_weight() -> None:
    neighbours = np.array([[1], [2], [1], [NOWHERE]])
    graph = neighbour_graph(neighbours, np.array([[0.5], [2.0], [3.0], [np.inf]])).toarray()
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 0.5
    expected[1, 2] = expected[2, 1] = 3.0
    np.testing.assert_array_equal(graph, expected)


def shortest(weights: np.ndarray) -> np.ndarray:
    """Floyd and Warshall, slow and obvious."""
    cost = np.where(weights > 0, weights, np.inf)
    np.fill_diagonal(cost, 0)
    for middle in range(len(cost)):
        cost = np.minimum(cost, cost[:, middle, None] + cost[middle])
    return cost


@settings(max_examples=30)
@given(st.integers(2, 15), st.integers(1, 3), st.integers(0, 10_000))
def test_one_search_from_all_sources_finds_each_nodes_cheapest(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = neighbour_graph(rng.integers(0, n, (n, k)), rng.random((n, k)) + 0.01)
    sources = rng.random(n) < 0.3
    cost, source = nearest_sources(graph, sources)
    matrix = graph.toarray()
    np.fill_diagonal(matrix, 0)
    every = np.where(sources, shortest(matrix), np.inf)
    np.testing.assert_allclose(cost, every.min(axis=1))
    reached = np.isfinite(cost)
    assert (source[~reached] == NOWHERE).all()
    assert sources[source[reached]].all()
    np.testing.assert_allclose(every[reached, source[reached]], cost[reached])


@settings(max_examples=30)
@given(st.integers(2, 15), st.integers(0, 3), st.integers(0, 10_000))
def test_hops_are_counted_from_the_first_wanted_node(n: int, extra: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = neighbour_graph(rng.integers(0, n, (n, 1)), np.ones((n, 1)))
    first, wanted = rng.random((2, 5, n)) < 0.25
    found = within_hops(graph, first, wanted, extra)
    hops = shortest((graph.toarray() > 0).astype(float))
    for i in range(5):
        away = hops[first[i]].min(axis=0, initial=np.inf)
        nearest = away[wanted[i]].min(initial=np.inf)
        expected = wanted[i] & (away <= nearest + extra) & np.isfinite(away)
        np.testing.assert_array_equal(found[i], expected)


def test_nearest_rows_are_those_of_all_distances_and_the_same_alone() -> None:
    rng = np.random.default_rng(0)
    x, rows, allowed = rng.random((150, 3)), rng.random((40, 3)), rng.random((150, 40)) < 0.5
    allowed[0], allowed[1] = False, np.arange(40) < 2
    chosen, length = nearest_rows(x, rows, allowed, 6)
    distance = np.where(allowed, np.linalg.norm(x[:, None] - rows, axis=2), np.inf)
    order = np.argsort(distance, axis=1)[:, :6]
    np.testing.assert_allclose(length, np.take_along_axis(distance, order, axis=1))
    np.testing.assert_array_equal(chosen, np.where(np.isfinite(length), order, NOWHERE))
    assert (chosen[0] == NOWHERE).all()
    assert (chosen[1] != NOWHERE).sum() == 2
    for i in (0, 1, 77, 149):
        alone = nearest_rows(x[i : i + 1], rows, allowed[i : i + 1], 6)
        np.testing.assert_array_equal(alone[0][0], chosen[i])
        np.testing.assert_array_equal(alone[1][0], length[i])


def test_distances_of_coincident_rows_are_zero_and_of_neighbours_exact() -> None:
    rows = np.array([[0.1, 0.9], [0.1 + 1e-9, 0.9], [0.7, 0.7]])
    _, length = nearest_rows(rows[:1], rows, np.ones((1, 3), dtype=bool), 5)
    assert length[0, 0] == 0
    assert length[0, 1] == pytest.approx(1e-9, rel=1e-6)
    assert length.shape == (1, 3)


def test_repetitions_are_struck_out_and_the_order_stays() -> None:
    nodes = np.array([[3, 1, 3, 2, 1], [5, 5, 5, NOWHERE, 0]])
    kept = np.array([[3, 1, NOWHERE, 2, NOWHERE], [5, NOWHERE, NOWHERE, NOWHERE, 0]])
    np.testing.assert_array_equal(first_of_each(nodes), kept)
