"""FACE against brute force: the cheapest path, CARLA's rule, cells of immutable features, and what comes after."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import dijkstra

from gpae.errors import InputError
from gpae.explainers.face import FACE
from gpae.numerics.neighbours import EdgeWeights
from gpae.table.codec import Codec
from gpae.table.schema import Schema


class Rule:
    """A classifier that is a formula; it counts as fitted."""

    model_ = None
    random_state = 0

    def __init__(self, logit: Any) -> None:
        self.logit = logit

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = 1 / (1 + np.exp(-self.logit(X)))
        return np.column_stack([1 - p, p])


def unit_square(points: np.ndarray, **more: Any) -> Codec:
    """A codec under which the points are their own encoding."""
    frame = pd.DataFrame({"a": points[:, 0], "b": points[:, 1], **more})
    ends = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1.0], **{name: column[:2] for name, column in more.items()}})
    frame = pd.concat([frame, ends], ignore_index=True)
    frame["y"] = np.arange(len(frame)) % 2
    return Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))


def fitted(points: np.ndarray, logit: Any, **settings: Any) -> FACE:
    codec = unit_square(points)
    face = FACE(classifier=Rule(logit), **settings)  # type: ignore[arg-type]
    return face.fit(points, np.arange(len(points)) % 2, layout=codec.layout)


def right_half(X: np.ndarray) -> np.ndarray:
    return 50 * (X[:, 0] - 0.5)


def by_brute_force(face: FACE, points: np.ndarray, x: np.ndarray, k: int) -> np.ndarray:
    """One graph and one search for one person, who is a node like any other but nobody's neighbour."""
    n = len(points)
    weigh = EdgeWeights(face.weights, k, n, points.shape[1])
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distance, np.inf)
    joined = np.zeros((n, n), dtype=bool)
    np.put_along_axis(joined, np.argsort(distance, axis=1)[:, :k], True, axis=1)
    graph = np.zeros((n + 1, n + 1))
    graph[:n, :n] = np.where(joined | joined.T, weigh(distance), 0)
    own = np.linalg.norm(points - x, axis=1)
    near = np.argsort(own)[:k]
    graph[n, near] = weigh(own[near])
    cost = dijkstra(graph, indices=n)[:n]
    cost[right_half(points) <= 0] = np.inf
    return points[cost.argmin()]


@pytest.mark.parametrize("weights", ["density", "distance"])
def test_the_answer_is_the_target_at_the_end_of_the_cheapest_path(weights: Any) -> None:
    rng = np.random.default_rng(1)
    points = rng.random((150, 2))
    face = fitted(points, right_half, weights=weights, n_neighbours=5)
    people = rng.random((40, 2)) * [0.5, 1.0]
    answer = face.explain(people)
    assert answer.found.all()
    expected = [by_brute_force(face, points, x, 5) for x in people]
    np.testing.assert_array_equal(answer.counterfactual, expected)


def test_a_crowded_way_round_beats_a_short_empty_one_only_by_density() -> None:
    """From (0.45, 0.1) the target at (0.6, 0.1) is near, with nobody between; a crowded road leads to (0.51, 0.9)."""
    road = np.column_stack([np.full(200, 0.46), np.linspace(0.1, 0.9, 200)])
    points = np.concatenate([road, [[0.51, 0.9], [0.6, 0.1]]])
    person = np.array([[0.45, 0.1]])
    by_density = fitted(points, right_half, weights="density", n_neighbours=20).explain(person)
    by_distance = fitted(points, right_half, weights="distance", n_neighbours=201).explain(person)
    np.testing.assert_array_equal(by_density.counterfactual, [[0.51, 0.9]])
    np.testing.assert_array_equal(by_distance.counterfactual, [[0.6, 0.1]])


def test_between_paths_of_equally_many_hops_the_nearest_target_wins() -> None:
    points = np.array([[0.4, 0.5], [0.6, 0.5], [0.55, 0.5], [0.9, 0.5], [0.1, 0.5]])
    face = fitted(points, right_half, weights="hops", n_neighbours=4)
    np.testing.assert_array_equal(face.explain(np.array([[0.45, 0.5]])).counterfactual, [[0.55, 0.5]])


def test_carlas_rule_takes_the_nearest_of_the_targets_up_to_three_hops_past_the_first() -> None:
    rng = np.random.default_rng(2)
    points = rng.random((120, 2))
    k, people = 3, rng.random((30, 2)) * [0.5, 1.0]
    face = fitted(points, right_half, selection="carla", n_neighbours=k)
    answer = face.explain(people)
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distance, np.inf)
    joined = np.zeros(distance.shape, dtype=bool)
    np.put_along_axis(joined, np.argsort(distance, axis=1)[:, :k], True, axis=1)
    hops = dijkstra((joined | joined.T).astype(float), unweighted=True)
    for x, u in zip(people, answer.counterfactual, strict=True):
        own = np.linalg.norm(points - x, axis=1)
        away = 1 + hops[np.argsort(own)[:k]].min(axis=0)
        away[right_half(points) <= 0] = np.inf
        candidates = away <= away.min() + 3
        np.testing.assert_array_equal(u, points[np.where(candidates, own, np.inf).argmin()])


def test_the_carla_preset_uses_a_twentieth_of_the_rows_and_three_graphs() -> None:
    points = np.random.default_rng(3).random((4000, 2))
    face = fitted(points, right_half, preset="carla")
    assert len(face.nodes_.rows) == 200
    assert face.nodes_.neighbours.shape == (200, 53)
    answer = face.explain(np.array([[0.2, 0.3], [0.4, 0.9]]))
    assert answer.found.all()
    again = fitted(points, right_half, preset="carla")
    np.testing.assert_array_equal(again.nodes_.rows, face.nodes_.rows)


def horseshoe(n: int) -> np.ndarray:
    """Rows along a thin road up the left, across the top and down the right."""
    rng = np.random.default_rng(0)
    way, off = 2.4 * rng.random(n), 0.02 * rng.random(n)
    up, across = np.column_stack([0.3 + off, way]), np.column_stack([way - 0.7, 1 - off])
    down = np.column_stack([0.7 - off, 2.4 - way])
    return np.where(way[:, None] < 1, up, np.where(way[:, None] < 1.4, across, down))


def first_targets_by_hops(nodes: np.ndarray, x: np.ndarray, k: int) -> np.ndarray:
    """Which nodes are targets at most three hops past the first, on the graph of k neighbours."""
    near = [set(np.linalg.norm(nodes - node, axis=1).argsort()[1 : k + 1]) for node in nodes]
    for i, mine in enumerate([set(of) for of in near]):
        for j in mine:
            near[j].add(i)
    target = right_half(nodes) > 0
    hop = np.full(len(nodes), np.inf)
    edge, step = set(np.linalg.norm(nodes - x, axis=1).argsort()[:k]), 1
    while edge:
        hop[list(edge)] = step
        edge, step = {j for i in edge for j in near[i] if np.isinf(hop[j])}, step + 1
    return target & (hop <= hop[target].min() + 3)


def test_the_carla_preset_takes_the_nearest_of_what_graphs_of_47_50_and_53_neighbours_offer() -> None:
    """On a horseshoe: the further a graph reaches down the other side, the nearer is what it offers."""
    points = horseshoe(8000)
    nodes = points[np.random.default_rng(Rule.random_state).choice(8000, 400, replace=False)]
    people = np.column_stack([np.full(10, 0.31), np.linspace(0.01, 0.6, 10)])
    offers = {k: [first_targets_by_hops(nodes, x, k) for x in people] for k in (47, 50, 53)}

    def nearest(*sizes: int) -> np.ndarray:
        offered = np.any([offers[k] for k in sizes], axis=0)
        away = np.linalg.norm(nodes - people[:, None], axis=2)
        return nodes[np.where(offered, away, np.inf).argmin(axis=1)]

    expected = nearest(47, 50, 53)
    for fewer in [(47,), (50,), (53,), (47, 50), (47, 53), (50, 53)]:
        assert not np.array_equal(nearest(*fewer), expected)  # none of the three can be left out
    answer = fitted(points, right_half, preset="carla").explain(people)
    np.testing.assert_array_equal(answer.counterfactual, expected)


def test_rows_that_differ_in_an_immutable_level_are_not_joined() -> None:
    """The person's own group has its only target far away; the other group has one next door."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.random((60, 2)) * 0.45, [[0.52, 0.2]], [[0.9, 0.9]]])
    group = np.array(["u"] * 30 + ["v"] * 30 + ["v", "u"])
    frame = pd.DataFrame({"a": points[:, 0], "b": points[:, 1], "group": group, "y": np.arange(62) % 2})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1, immutable=("group",)))
    X = codec.encode(frame).rows
    edge = 0.5 * (X[60, 0] + X[:60, 0].max())
    face = FACE(classifier=Rule(lambda X: 50 * (X[:, 0] - edge)), weights="distance")  # type: ignore[arg-type]
    face.fit(X, frame.y.to_numpy(), layout=codec.layout)
    answer = face.explain(X[[3, 40]])
    np.testing.assert_array_equal(answer.counterfactual, X[[61, 60]])


def test_people_in_different_bins_of_an_immutable_number_are_not_joined() -> None:
    rng = np.random.default_rng(0)
    age = np.repeat([20.0, 70.0], 40) + rng.random(80)
    a = np.concatenate([np.linspace(0, 0.4, 39), [1.0], np.linspace(0, 0.4, 39), [0.6]])
    frame = pd.DataFrame({"a": a, "age": age, "y": np.arange(80) % 2})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1, immutable=("age",)))
    X = codec.encode(frame).rows
    face = FACE(classifier=Rule(right_half), bins=2)  # type: ignore[arg-type]
    answer = face.fit(X, frame.y.to_numpy(), layout=codec.layout).explain(X[[10, 50]])
    np.testing.assert_array_equal(answer.counterfactual[:, 0], X[[39, 79], 0])
    np.testing.assert_array_equal(answer.counterfactual[:, 1], X[[10, 50], 1])


def test_where_a_lock_costs_the_nearest_target_its_class_the_next_one_is_taken() -> None:
    """With b locked at 0 only a target with a > 0.7 is accepted; the nearest one relies on its b."""
    points = np.array([[0.3, 0.0], [0.35, 0.1], [0.45, 0.4], [0.75, 0.6], [0.8, 0.7]])
    face = fitted(points, lambda X: 20 * (X[:, 0] + X[:, 1] - 0.7), n_neighbours=4, weights="distance")
    free = face.explain(points[:1])
    locked = face.explain(points[:1], fixed=np.array([False, True]))
    np.testing.assert_array_equal(free.counterfactual, [[0.45, 0.4]])
    np.testing.assert_allclose(locked.counterfactual, [[0.75, 0.0]])


def test_several_plans_are_different_targets_nearest_first() -> None:
    points = np.array([[0.4, 0.5], [0.55, 0.5], [0.55, 0.5], [0.7, 0.5], [0.95, 0.5], [0.2, 0.5]])
    face = fitted(points, right_half, weights="distance", n_neighbours=5)
    answer = face.explain(np.array([[0.45, 0.5]]), k=3)
    np.testing.assert_array_equal(answer.counterfactual, [[0.55, 0.5], [0.7, 0.5], [0.95, 0.5]])


def test_a_target_can_be_asked_to_be_sure_and_to_be_in_company() -> None:
    rng = np.random.default_rng(4)
    crowd = np.concatenate([rng.random((60, 2)) * [0.4, 1.0], [0.8, 0.5] + 0.02 * rng.random((30, 2))])
    points = np.concatenate([crowd, [[0.51, 0.5], [0.6, 0.1]]])
    person = np.array([[0.45, 0.5]])
    easy = fitted(points, right_half, n_neighbours=10, weights="distance").explain(person)
    sure = fitted(points, right_half, n_neighbours=10, weights="distance", min_probability=0.7).explain(person)
    company = fitted(points, right_half, n_neighbours=10, weights="distance", min_log_density=3.0).explain(person)
    np.testing.assert_array_equal(easy.counterfactual, [[0.51, 0.5]])
    assert sure.counterfactual[0, 0] > 0.51
    assert company.counterfactual[0, 0] > 0.79


def test_either_class_can_be_the_target_of_different_people_in_one_call() -> None:
    points = np.random.default_rng(5).random((80, 2))
    face = fitted(points, right_half, n_neighbours=6)
    people, target = np.array([[0.2, 0.5], [0.8, 0.5]]), np.array([1, 0])
    answer = face.explain(people, target)
    assert answer.counterfactual[0, 0] > 0.5 > answer.counterfactual[1, 0]
    assert {tuple(u) for u in answer.counterfactual} <= {tuple(p) for p in points}


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": "x"},
        {"selection": "x"},
        {"preset": "x"},
        {"n_neighbours": 0},
        {"bins": 1.5},
        {"fraction": 0},
        {"min_probability": 0.2},
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_at_fit(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        fitted(np.random.default_rng(0).random((10, 2)), right_half, **wrong)


def test_a_graph_that_is_given_is_used_for_as_many_neighbours_as_it_has() -> None:
    points = np.random.default_rng(0).random((200, 2))
    wide, narrow = fitted(points, right_half, n_neighbours=20), fitted(points, right_half, n_neighbours=8)
    given = fitted(points, right_half, n_neighbours=8, graph=wide.graph_)
    assert given.graph_ is wide.graph_
    np.testing.assert_array_equal(given.nodes_.cost, narrow.nodes_.cost)
    np.testing.assert_array_equal(given.explain(points).counterfactual, narrow.explain(points).counterfactual)
    with pytest.raises(InputError, match="8 neighbours a node, 20 are wanted"):
        fitted(points, right_half, n_neighbours=20, graph=narrow.graph_)
    with pytest.raises(InputError, match="other rows"):
        fitted(points[:-1], right_half, n_neighbours=8, graph=narrow.graph_)
