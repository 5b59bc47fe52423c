"""The encoded columns of a feature that is one of several levels: one-hot, missing is one more level."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpae.table.levels import Level
from gpae.table.scaling import Array
from gpae.table.schema import Change
from gpae.table.value_block import Mask, inside

__all__ = ["LevelBlock"]


@dataclass(frozen=True)
class LevelBlock:
    """One level of several.

    Parameters
    ----------
    name, kind, change, levels, missing
        As in the schema; a binary feature comes here only if it may be missing.
    start
        Position of the first level's column in the encoded row.
    """

    name: str
    kind: Literal["categorical", "binary"]
    change: Change
    start: int
    levels: tuple[Level, ...]
    missing: bool
    encoding: Literal["level"] = "level"

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return len(self.levels) + self.missing

    @property
    def columns(self) -> slice:
        """Where the block lies in the encoded row."""
        return slice(self.start, self.start + self.width)

    @property
    def column_names(self) -> list[str]:
        """Names of the encoded columns."""
        return [f"{self.name}={level}" for level in (*self.levels, "(missing)")][: self.width]

    def encode(self, values: Array) -> Array:
        """Encode ranks of levels (NaN where missing)."""
        rank = np.where(np.isnan(values), len(self.levels), values)
        return np.asarray((rank[:, None] == np.arange(self.width)).astype(np.float64))

    def decode(self, U: Array) -> Array:
        """Return the rank of the largest entry, NaN where that is the missing level."""
        rank = U.argmax(axis=-1).astype(np.float64)
        return np.where(rank == len(self.levels), np.nan, rank)

    @property
    def ends(self) -> tuple[Array, Array]:
        """The least and the largest value of each column, for whoever is not beyond them already.

        A plan may supply what was missing, never withhold what was known.
        """
        most = np.ones(self.width)
        most[len(self.levels) :] = -np.inf
        return np.zeros(self.width), most

    def box(self, X: Array) -> tuple[Array, Array]:
        """Return the bounds of each column, seen from the person."""
        least, most = self.ends
        lower, upper = np.minimum(least, X), np.maximum(most, X)
        own, known = X.argmax(axis=1)[:, None], X.argmax(axis=1)[:, None] < len(self.levels)
        rank = np.arange(self.width)
        if self.change is Change.up:
            upper[known & (rank < own)] = 0.0
        if self.change is Change.down:
            upper[known & (rank > own)] = 0.0
        return lower, upper

    def snap(self, U: Array, X: Array, lower: Array, upper: Array) -> Array:
        """Return the one-hot of the largest entry among the open levels."""
        score = np.where(upper > 0.0, np.clip(U, lower, upper), -np.inf)
        chosen = (np.arange(self.width) == score.argmax(axis=-1)[..., None]).astype(np.float64)
        fixed = (lower == upper).all(axis=-1, keepdims=True)
        return np.where(fixed, lower, chosen)

    def allowed(self, U: Array, X: Array, lower: Array, upper: Array) -> Mask:
        """Return whether each setting is exactly one open level."""
        exact = ((U == 0.0) | (U == 1.0)).all(axis=-1) & (U.sum(axis=-1) == 1.0)
        return np.asarray(exact & inside(U, lower, upper))

    def settings(self, U: Array, X: Array, lower: Array, upper: Array) -> Array:
        """Return every level, B x m x w; some may not be allowed."""
        return np.broadcast_to(np.eye(self.width), (len(U), self.width, self.width)).copy()
