"""Graphs of neighbouring rows: what a step between two rows costs, and which wanted row is cheapest to reach.

Rows are nodes; a node is joined to its nearest ones. One search from all wanted nodes together gives every node its
nearest wanted one, so that a person who is joined to a few nodes has the answer at once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.special import gammaln
from torch import Tensor

from gpae.arrays import Flags, Floats, Indices
from gpae.numerics.aligned import product
from gpae.numerics.tiles import in_tiles

__all__ = [
    "NOWHERE",
    "EdgeWeights",
    "Weighing",
    "first_of_each",
    "log_ball_volume",
    "nearest_rows",
    "nearest_sources",
    "neighbour_graph",
    "within_hops",
]

Weighing = Literal["density", "hops", "distance"]

NOWHERE = -1
"""In the place of a node where there is none."""

_LEAST = 1e-12
"""Of an edge: a zero is no edge in a sparse matrix, and below this a path of many steps would be free."""


def log_ball_volume(dimension: int) -> float:
    """Log volume of the unit ball."""
    return float(dimension / 2 * np.log(np.pi) - gammaln(dimension / 2 + 1))


@dataclass(frozen=True, slots=True)
class EdgeWeights:
    """What an edge of a given length costs.

    With the k-nearest-neighbour density of an edge of length r, rho = k / (n V_D r^D), a step costs r log(1 + 1 / rho):
    dear where rows are rare. In logarithms it is r softplus(-log rho), since r^D under- and overflows. ``"distance"``
    is r, ``"hops"`` is 1.
    """

    weighing: Weighing
    k: int
    n_rows: int
    dimension: int

    def log_density(self, length: Float[Floats, "*shape"]) -> Float[Floats, "*shape"]:
        """log rho."""
        unit = np.log(self.k) - np.log(self.n_rows) - log_ball_volume(self.dimension)
        return unit - self.dimension * np.log(np.maximum(length, np.finfo(np.float64).tiny))

    def __call__(self, length: Float[Floats, "*shape"]) -> Float[Floats, "*shape"]:
        """The costs, at least a little each; an infinite length costs infinitely much."""
        if self.weighing == "hops":
            return np.where(np.isfinite(length), 1.0, np.inf)
        cost = length if self.weighing == "distance" else length * np.logaddexp(0.0, -self.log_density(length))
        return np.maximum(cost, _LEAST)


def neighbour_graph(neighbours: Int[Indices, "n k"], weights: Float[Floats, "n k"]) -> csr_array:
    """The undirected graph of n nodes and their neighbours; NOWHERE is none.

    Two nodes are joined if either counts the other among its neighbours.
    """
    n, k = neighbours.shape
    real = (neighbours != NOWHERE).ravel()
    start, end = np.repeat(np.arange(n), k)[real], neighbours.ravel()[real]
    one_way = coo_array((weights.ravel()[real], (start, end)), shape=(n, n)).tocsr()
    return one_way.maximum(one_way.T).tocsr()


def nearest_sources(graph: csr_array, sources: Bool[Flags, " n"]) -> tuple[Float[Floats, " n"], Int[Indices, " n"]]:
    """Each node's cheapest way to any source: its cost, and which source; infinite and NOWHERE if there is none."""
    starts = np.flatnonzero(sources)
    if not len(starts):
        return np.full(len(sources), np.inf), np.full(len(sources), NOWHERE, dtype=np.int64)
    cost, _, source = dijkstra(graph, directed=False, indices=starts, min_only=True, return_predecessors=True)
    return cost, np.where(np.isfinite(cost), source, NOWHERE).astype(np.int64)


def within_hops(
    graph: csr_array, first: Bool[Flags, "B n"], wanted: Bool[Flags, "B n"], extra: int
) -> Bool[Flags, "B n"]:
    """Which wanted nodes are at most ``extra`` steps further than the nearest wanted one.

    ``first`` are the nodes that are one step away.
    """
    pattern = graph.astype(bool).astype(np.float32)
    reached, found, left = first.copy(), first & wanted, np.full(len(first), extra + 1)
    while True:
        left -= found.any(axis=1)
        going = np.flatnonzero(left > 0)
        further = reached[going] | ((pattern @ reached[going].T.astype(np.float32)).T > 0)
        if not (further & ~reached[going]).any():
            return found
        reached[going] = further
        found[going] |= further & wanted[going]


def nearest_rows(
    x: Float[Floats, "B D"], rows: Float[Floats, "n D"], allowed: Bool[Flags, "B n"], k: int
) -> tuple[Int[Indices, "B m"], Float[Floats, "B m"]]:
    """The k nearest allowed rows of each x, nearest first, and their distances; NOWHERE and infinite beyond the last.

    In tiles, so that the answer for an x does not depend on the others. The choice is by |r|^2 - 2 x'r, the distances
    are those of the differences.
    """
    others = torch.as_tensor(rows)
    turned, half = -others.T.contiguous(), 0.5 * others.square().sum(1)

    def one_tile(mine: Tensor, open_: Tensor) -> tuple[Tensor, Tensor]:
        score = torch.where(open_, product(mine, turned) + half, torch.inf)
        score, chosen = score.topk(min(k, len(rows)), dim=1, largest=False)
        length = (others[chosen] - mine.unsqueeze(1)).square().sum(2).sqrt()
        length = torch.where(score.isfinite(), length, torch.inf)
        length, order = length.sort(dim=1, stable=True)
        return chosen.gather(1, order), length

    chosen, length = in_tiles(one_tile, (torch.as_tensor(x), torch.as_tensor(allowed)))
    return np.where(np.isfinite(length.numpy()), chosen.numpy(), NOWHERE), length.numpy()


def first_of_each(nodes: Int[Indices, "B m"]) -> Int[Indices, "B m"]:
    """The nodes of each line without repetitions: NOWHERE in the place of one that stood there before."""
    order = np.argsort(nodes, axis=1, kind="stable")
    sorted_ = np.take_along_axis(nodes, order, axis=1)
    again = np.zeros(nodes.shape, dtype=np.bool_)
    again[:, 1:] = sorted_[:, 1:] == sorted_[:, :-1]
    repeated = np.empty_like(again)
    np.put_along_axis(repeated, order, again, axis=1)
    return np.where(repeated, NOWHERE, nodes)
