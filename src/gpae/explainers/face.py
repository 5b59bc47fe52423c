"""FACE: become a real person of the other class, along a path of real people."""

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from gpae.arrays import Indices, Labels, Mask, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import InputError, one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.models.explained import explained_classifier
from gpae.models.face_cells import Cells
from gpae.models.face_graph import Graph
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.numerics.neighbours import (
    NOWHERE,
    EdgeWeights,
    Weighing,
    first_of_each,
    nearest_rows,
    nearest_sources,
    neighbour_graph,
    within_hops,
)
from gpae.table.layout import Layout

__all__ = ["FACE"]

_CHUNK = 512
"""People at a time: they are compared with all nodes."""
_LAST_RESORT = 500
"""Targets tried, by plain distance, for a person to whom no path leads to an answer."""
_CARLA_SIZES, _CARLA_FRACTION, _CARLA_EXTRA = (47, 50, 53), 0.05, 3


class FACE(Explainer):
    """The training row of the target class that is cheapest to reach through rows of high density.

    **Objective.** Nodes are the training rows, edges join nearest neighbours, and an edge of length r costs
    r log(1 + 1 / rho), rho = k / (n V_D r^D) being its k-nearest-neighbour density. The counterfactual is the target
    (probability at least ``min_probability``) at the end of the cheapest path from the person, who is joined to the k
    nearest nodes; one Dijkstra search from all targets answers everybody. Rows are joined only if they agree in the
    features that the schema fixes: in the level, or in the quantile bin of a number. The person's own values are copied
    in, the row is rounded into the person's bounds and judged again; if that costs it the class, the next targets are
    tried: those that the other neighbours lead to, by rising cost, then the nearest ones.

    **Differs from the paper.** The paper ran CARLA's implementation, whose graph knows no density, which explains
    another row than the one asked about, and which lets only one binary feature be immutable. The weight is
    log(1 + 1 / rho) for FACE's -log rho, which can be negative and then has no shortest path.

    Parameters
    ----------
    classifier
        The classifier to explain, fitted or not; None: a :class:`GPAEClassifier` with its defaults.
    n_neighbours
        k, of every node and of the person.
    weights
        Of the edges: ``"density"``, ``"distance"`` (r) or ``"hops"`` (1).
    selection
        ``"nearest"``: the cheapest path decides, and the distance between equal ones. ``"carla"``: the nearest row
        among the targets that are at most three hops further than the first; ``weights`` then has no part in it.
    fraction
        Of the training rows that become nodes, drawn with the classifier's seed.
    min_probability, min_log_density
        What a row needs to be a target: of the target class, and at the distance of its k-th neighbour.
    bins
        Of a number that is fixed.
    last_resort
        Whether a person to whom no path leads to an answer gets the nearest target that is one, without a path; the
        preset has none.
    graph
        That of a FACE which was fitted to the same rows with at least as many neighbours (its ``graph_``), to save
        looking for them again; None: look for them.
    preset
        ``"carla"``: hops, CARLA's selection on graphs of 47, 50 and 53 neighbours, a twentieth of the rows.
    """

    classifier_: GPAEClassifier
    graph_: Graph
    """Set by ``fit`` alone."""
    cells_: Cells
    nodes_: "_Nodes"

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        n_neighbours: int = 50,
        weights: Weighing = "density",
        selection: Literal["nearest", "carla"] = "nearest",
        fraction: float = 1.0,
        min_probability: float = 0.5,
        min_log_density: float | None = None,
        bins: int = 10,
        last_resort: bool = True,
        graph: Graph | None = None,
        preset: Literal["carla"] | None = None,
    ) -> None:
        self.classifier = classifier
        self.n_neighbours = n_neighbours
        self.weights = weights
        self.selection = selection
        self.fraction = fraction
        self.min_probability = min_probability
        self.min_log_density = min_log_density
        self.bins = bins
        self.last_resort = last_resort
        self.graph = graph
        self.preset = preset

    def _check_parameters(self) -> None:
        one_of("preset", self.preset, (None, "carla"))
        one_of("weights", self.weights, ("density", "hops", "distance"))
        one_of("selection", self.selection, ("nearest", "carla"))
        for name, least in (("n_neighbours", 1), ("bins", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(f"{name}={value!r} must be a whole number of at least {least}")
        if not 0 < self.fraction <= 1:
            raise InputError(f"fraction={self.fraction!r} must be above 0 and at most 1")
        if not 0.5 <= self.min_probability < 1:
            raise InputError(f"min_probability={self.min_probability!r} must be at least 0.5 and below 1")

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Numbers of neighbours, one a graph."""
        return _CARLA_SIZES if self.preset == "carla" else (self.n_neighbours,)

    @property
    def _by_hops(self) -> bool:
        return self.preset == "carla" or self.selection == "carla"

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        model = self.classifier_ = explained_classifier(self.classifier, X, y, validation)
        rows = np.unique(self._sample(X), axis=0)  # people who coincide are one node
        self.cells_ = Cells.of(self.layout_, X, self.bins)
        cell = self.cells_(rows)
        self.graph_ = self._graph(rows, cell)
        near = self.graph_.nearest(max(self._sizes))
        favourable = model.predict_proba(rows)[:, 1]
        sure = np.stack([1 - favourable, favourable])
        targets = (sure > 0.5) & (sure >= self.min_probability) & self._dense_enough(near.length)
        cost, source = self._cheapest(near.neighbours, near.length, targets)
        kept = near.neighbours if self._by_hops else near.neighbours[:, :0]
        self.nodes_ = _Nodes(rows, cell, targets, cost, source, kept)
        return model

    def _graph(self, rows: Rows, cell: Labels) -> Graph:
        if self.graph is None:
            return Graph.of(rows, cell, max(self._sizes))
        self.graph.check(rows, cell, max(self._sizes))
        return self.graph

    def _sample(self, X: Rows) -> Rows:
        fraction = _CARLA_FRACTION if self.preset == "carla" else self.fraction
        if fraction == 1:
            return X
        seed = self.classifier_.random_state if isinstance(self.classifier_.random_state, int) else 0
        size = max(int(fraction * len(X)), 1)
        return X[np.random.default_rng(seed).choice(len(X), size, replace=False)]

    def _edges(self, n_rows: int) -> EdgeWeights:
        return EdgeWeights(self.weights, max(self._sizes), n_rows, self.layout_.width)

    def _dense_enough(self, length: Rows) -> Mask:
        if self.min_log_density is None:
            return np.ones(len(length), dtype=np.bool_)
        furthest = np.where(np.isfinite(length), length, 0.0).max(axis=1, initial=0.0)
        return self._edges(len(length)).log_density(furthest) >= self.min_log_density

    def _cheapest(self, neighbours: Indices, length: Rows, targets: Mask) -> tuple[Rows, Indices]:
        """For either class as the target, each node's cost of the way there, and the target at its end (2 x n)."""
        graph = neighbour_graph(neighbours, self._edges(len(neighbours))(length))
        ways = [nearest_sources(graph, wanted) for wanted in targets]
        return np.stack([cost for cost, _ in ways]), np.stack([source for _, source in ways])

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        chunks = range(0, len(query.x), _CHUNK)
        found = [self._chunk(query, np.arange(i, min(i + _CHUNK, len(query.x))), k) for i in chunks]
        row, u = (np.concatenate(part) for part in zip(*found, strict=True))
        return row, u

    def _chunk(self, query: Query, people: Labels, k: int) -> tuple[Labels, Rows]:
        """Up to k plans for each of some people, best first."""
        nodes = self._near_on_the_graph(query.x[people], query.target[people])
        row, u = self._valid_plans(query, people, nodes[:, :k])
        lacking = np.bincount(row, minlength=len(query.x))[people] < k
        more_row, more_u = self._valid_plans(query, people[lacking], nodes[lacking, k:])
        row, u = np.concatenate([row, more_row]), np.concatenate([u, more_u])
        lost = np.setdiff1d(people, row)
        if len(lost) and self.last_resort and self.preset is None:
            nodes = self._near_in_space(query.x[lost], query.target[lost])
            more_row, more_u = self._valid_plans(query, lost, nodes)
            row, u = np.concatenate([row, more_row]), np.concatenate([u, more_u])
        return _first_different(row, u, k)

    def _valid_plans(self, query: Query, people: Labels, nodes: Indices) -> tuple[Labels, Rows]:
        """Those of each person's nodes that are an answer once they are rows which that person may become."""
        line, column = np.nonzero(nodes != NOWHERE)
        row = people[line]
        u = self.layout_.snap(self.nodes_.rows[nodes[line, column]], query.x[row], query.lower[row], query.upper[row])
        good = self._verified(query, row, u)
        return row[good], u[good]

    def _near_on_the_graph(self, x: Rows, target: Labels) -> Indices:
        """The targets that each person's neighbours lead to, best first."""
        nodes = self.nodes_
        same = self.cells_(x)[:, None] == nodes.cell
        joined, length = nearest_rows(x, nodes.rows, same, max(self._sizes))
        if self._by_hops:
            wanted = self._hop_targets(joined, target)
            return nearest_rows(x, nodes.rows, wanted, max(self._sizes))[0]
        cost = self._edges(len(nodes.rows))(length) + nodes.cost[target[:, None], joined]
        source = np.where(joined == NOWHERE, NOWHERE, nodes.source[target[:, None], joined])
        away = np.linalg.norm(nodes.rows[source] - x[:, None], axis=2)
        order = np.lexsort((away, np.where(source == NOWHERE, np.inf, cost)), axis=1)
        return first_of_each(np.take_along_axis(source, order, axis=1))

    def _hop_targets(self, joined: Indices, target: Labels) -> Mask:
        """B x n: the targets a few hops past the first, on any of the graphs."""
        nodes = self.nodes_
        wanted, found = nodes.targets[target], np.zeros((len(joined), len(nodes.rows)), dtype=np.bool_)
        for size in self._sizes:
            graph = neighbour_graph(nodes.neighbours[:, :size], np.ones(nodes.neighbours[:, :size].shape))
            first = np.zeros_like(found)
            line, column = np.nonzero(joined[:, :size] != NOWHERE)
            first[line, joined[line, column]] = True
            found |= within_hops(graph, first, wanted, _CARLA_EXTRA)
        return found

    def _near_in_space(self, x: Rows, target: Labels) -> Indices:
        """The nearest targets wherever they are, nearest first."""
        return nearest_rows(x, self.nodes_.rows, self.nodes_.targets[target], _LAST_RESORT)[0]

    def state(self) -> State:
        """The classifier, the nodes with the way from each to a target, and the cells."""
        state = State({}, {}).with_part("classifier", self.classifier_.state())
        return state.with_part("nodes", State(asdict(self.nodes_), {})).with_part(
            "cells", State(asdict(self.cells_), {})
        )

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.classifier_ = GPAEClassifier.from_state(state.part("classifier"))
        self.nodes_, self.cells_ = _Nodes(**state.part("nodes").arrays), Cells(**state.part("cells").arrays)


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """The rows of the graph, and for either class as the target: who is one, what the way costs, where it ends."""

    rows: Rows
    cell: Labels
    targets: Mask
    cost: Rows
    source: Indices
    neighbours: Indices
    """n x k; no column where only the ways matter."""


def _first_different(row: Labels, u: Rows, k: int) -> tuple[Labels, Rows]:
    """The first k different plans of each person, in order."""
    _, first = np.unique(np.column_stack([row, u]), axis=0, return_index=True)
    kept = np.sort(first)
    kept = kept[np.argsort(row[kept], kind="stable")]
    row, u = row[kept], u[kept]
    early = np.arange(len(row)) - np.searchsorted(row, row) < k
    return row[early], u[early]


EXPLAINERS.add("face", FACE, paper_name="FACE")
