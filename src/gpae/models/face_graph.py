"""The neighbours of training rows among those of their own cell: the graph on which FACE walks."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.neighbors import NearestNeighbors

from gpae.arrays import Indices, Labels, Rows
from gpae.errors import InputError
from gpae.numerics.neighbours import NOWHERE

__all__ = ["Graph"]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The rows that are nodes and, nearest first, the neighbours of each in its cell: what takes longest to learn."""

    rows: Rows
    cell: Labels
    neighbours: Indices
    """n x k; NOWHERE where a cell has fewer."""
    length: Rows

    @classmethod
    def of(cls, rows: Rows, cell: Labels, k: int) -> "Graph":
        """The k nearest other rows of the same cell and their distances."""
        neighbours = np.full((len(rows), k), NOWHERE, dtype=np.int64)
        length = np.full((len(rows), k), np.inf)
        for one in np.unique(cell):
            inside = np.flatnonzero(cell == one)
            m = min(k, len(inside) - 1)
            if m:
                distance, near = NearestNeighbors(n_neighbors=m).fit(rows[inside]).kneighbors()
                neighbours[inside, :m], length[inside, :m] = inside[near], distance
        return cls(rows, cell, neighbours, length)

    def nearest(self, k: int) -> "Graph":
        """With the k nearest alone."""
        return replace(self, neighbours=self.neighbours[:, :k], length=self.length[:, :k])

    def check(self, rows: Rows, cell: Labels, k: int) -> None:
        """Refuse a graph of other nodes, or of too few neighbours."""
        if not (np.array_equal(self.rows, rows) and np.array_equal(self.cell, cell)):
            raise InputError("the graph was made of other rows, or with other features fixed; leave it out")
        if self.neighbours.shape[1] < k:
            raise InputError(
                f"the graph has {self.neighbours.shape[1]} neighbours a node, {k} are wanted; leave it out"
            )
