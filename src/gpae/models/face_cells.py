"""Who may become whom where some features are fixed: the cells between which FACE makes no edge."""

from dataclasses import dataclass, replace

import numpy as np

from gpae.arrays import Labels, Rows
from gpae.numerics.neighbours import NOWHERE
from gpae.table.layout import Layout
from gpae.table.schema import Change

__all__ = ["Cells"]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """People who agree in what the schema fixes: in every level, and in the quantile bin of every number."""

    levels: Labels
    """Columns."""
    numbers: Labels
    """Columns."""
    edges: Rows
    """One line a number."""
    known: Rows
    """One line a cell: levels, then bins."""

    @classmethod
    def of(cls, layout: Layout, X: Rows, bins: int) -> "Cells":
        """Learn the bins and the cells that occur."""
        fixed = np.zeros(layout.width, dtype=np.bool_)
        for block in layout.features:
            fixed[block.columns] = block.change is Change.fixed
        levels, numbers = np.flatnonzero(fixed & ~layout.continuous), np.flatnonzero(fixed & layout.continuous)
        edges = np.quantile(X[:, numbers], np.linspace(0, 1, bins + 1)[1:-1], axis=0).T
        cells = cls(levels, numbers, edges, np.zeros((0, len(levels) + len(numbers))))
        return replace(cells, known=np.unique(cells._keys(X), axis=0))

    def _keys(self, X: Rows) -> Rows:
        bins = (X[:, self.numbers, None] >= self.edges).sum(axis=2)
        return np.concatenate([X[:, self.levels], bins], axis=1)

    def __call__(self, X: Rows) -> Labels:
        """The number of each row's cell; NOWHERE for one that training did not have."""
        keys = self._keys(X)
        if not keys.shape[1]:
            return np.zeros(len(X), dtype=np.int64)
        _, where = np.unique(np.concatenate([self.known, keys]), axis=0, return_inverse=True)
        number = np.full(len(where), NOWHERE, dtype=np.int64)
        number[where[: len(self.known)]] = np.arange(len(self.known))
        return number[where[len(self.known) :]]
