"""The encoded columns of a feature that is one number: continuous, integer, or the rank of a level.

One value column in [0, 1], and a second one that flags a missing value where training had such. The functions
broadcast over leading axes; the last axis holds the block's own columns.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpae.table.grid import Grid
from gpae.table.scaling import Array, Scaling
from gpae.table.schema import Change

__all__ = ["SAME", "Mask", "ValueBlock", "inside"]

Mask: TypeAlias = NDArray[np.bool_]

SAME = 1e-12
"""Encoded values closer than this are the same value."""

_STRIDES = (1, 2, 4, 8, 16, 32, 64)
_FREE_STRIDE = 1.0 / 2000.0


@dataclass(frozen=True)
class ValueBlock:
    """One number.

    Parameters
    ----------
    name, kind, change
        As in the schema.
    start
        Position of the value column in the encoded row.
    scaling, grid
        The map to [0, 1], and the allowed values in the user's units.
    missing
        Whether a flag column follows the value column.
    fill
        What the value column holds where the value is missing: the encoded training median.
    """

    name: str
    kind: Literal["continuous", "integer", "ordinal", "binary"]
    change: Change
    start: int
    scaling: Scaling
    grid: Grid
    missing: bool
    fill: float
    encoding: Literal["value"] = "value"

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 2 if self.missing else 1

    @property
    def columns(self) -> slice:
        """Where the block lies in the encoded row."""
        return slice(self.start, self.start + self.width)

    @property
    def column_names(self) -> list[str]:
        """Names of the encoded columns."""
        return [self.name, f"{self.name}=(missing)"][: self.width]

    def encode(self, values: Array) -> Array:
        """Encode user's values (ranks for levels, NaN where missing)."""
        absent = np.isnan(values)
        value = np.where(absent & self.missing, self.fill, self.scaling.to_unit(values))
        return np.stack([value, absent.astype(np.float64)][: self.width], axis=-1)

    def decode(self, U: Array) -> Array:
        """Return the user's values: those of the grid and the codes exactly, NaN where missing."""
        u = U[..., 0]
        values = self.scaling.to_user(u)
        values = self._where_same(u, self.grid.nearest(values), values) if self.grid.step else self._trim(u, values)
        for code in self.grid.codes:
            values = self._where_same(u, np.full_like(values, code), values)
        return np.where(self._absent(U), np.nan, values)

    def _where_same(self, u: Array, exact: Array, values: Array) -> Array:
        return np.where(np.abs(self.scaling.to_unit(exact) - u) <= SAME, exact, values)

    def _trim(self, u: Array, values: Array) -> Array:
        """Cut the last bit by which the inverse map may leave a range that the encoded value keeps."""
        low, high = self._span(codes=False)
        values = np.where(u <= high, np.minimum(values, self.grid.maximum), values)
        return np.where(u >= low, np.maximum(values, self.grid.minimum), values)

    def _absent(self, U: Array) -> Mask:
        if not self.missing:
            return np.zeros(U.shape[:-1], dtype=np.bool_)
        return np.asarray(U[..., 1] >= 0.5)

    def _span(self, *, codes: bool) -> tuple[float, float]:
        """Return the encoded range, with or without the codes beside it."""
        ends = [self.grid.minimum, self.grid.maximum, *(self.grid.codes if codes else ())]
        unit = self.scaling.to_unit(ends)
        return float(unit.min()), float(unit.max())

    def span_of_numbers(self) -> tuple[float, float]:
        """The encoded range of what is a number and no code."""
        return self._span(codes=False)

    def _is_code(self, u: Array) -> Mask:
        found = np.zeros(u.shape, dtype=np.bool_)
        for code in self.scaling.to_unit(self.grid.codes):
            found |= np.abs(u - code) <= SAME
        return found

    @property
    def ends(self) -> tuple[Array, Array]:
        """The least and the largest value of each column, for whoever is not beyond them already.

        A plan may supply what was missing, never withhold what was known.
        """
        low, high = self._span(codes=True)
        return np.array([low, 0.0][: self.width]), np.array([high, -np.inf][: self.width])

    def box(self, X: Array) -> tuple[Array, Array]:
        """Return the bounds of each column, seen from the person."""
        least, most = self.ends
        lower, upper = np.minimum(least, X), np.maximum(most, X)
        x, absent = X[:, 0], self._absent(X)
        if self.change in (Change.up, Change.down):
            # Less of something is not "no record": codes are open only to a person who has one already.
            low, high = self._span(codes=False)
            state = self._is_code(x)
            lower[:, 0] = np.where(state, lower[:, 0], np.minimum(low, x))
            upper[:, 0] = np.where(state, upper[:, 0], np.maximum(high, x))
        if self.change is Change.up:
            lower[:, 0] = np.where(absent, lower[:, 0], x)
        if self.change is Change.down:
            upper[:, 0] = np.where(absent, upper[:, 0], x)
        return lower, upper

    def _nearest(self, u: Array, X: Array, lower: Array, upper: Array) -> Array:
        """Return the allowed encoded value nearest to u; NaN where the bounds hold none."""
        x = X[..., 0]
        low, high = self._reach(x, self._absent(X), lower[..., 0], upper[..., 0])
        if self.grid.step is None:
            best = np.where(low <= high, np.clip(u, low, high), np.nan)
        else:
            best = self._on_grid(u, low, high)
            # In the far tail of a heavy-tailed column float64 is coarser than a step of 1e-9; rounding would
            # wander from step to step: there the value is left as it is.
            settled = np.isnan(best) | (self._on_grid(best, low, high) == best)
            best = np.where(settled, best, np.clip(u, low, high))
        for code in self.scaling.to_unit(self.grid.codes):
            open_ = (code >= lower[..., 0] - SAME) & (code <= upper[..., 0] + SAME)
            closer = open_ & ~(np.abs(best - u) <= np.abs(code - u))
            best = np.where(closer, code, best)
        return best

    def _on_grid(self, u: Array, low: Array, high: Array) -> Array:
        to_user = self.scaling.to_user
        value = self.grid.nearest_between(to_user(u), to_user(low), to_user(high))
        return np.clip(self.scaling.to_unit(value), low, high)

    def _reach(self, x: Array, absent: Mask, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return the bounds of what is a number and no code."""
        if not self.grid.codes:
            return lower, upper
        low, high = self._span(codes=False)
        state = self._is_code(x) | absent
        return (
            np.maximum(lower, np.where(state, low, np.minimum(low, x))),
            np.minimum(upper, np.where(state, high, np.maximum(high, x))),
        )

    def snap(self, U: Array, X: Array, lower: Array, upper: Array) -> Array:
        """Return the nearest allowed setting."""
        U = np.clip(U, lower, upper)
        absent = self._absent(U)
        nearest = self._nearest(U[..., 0], X, lower, upper)
        nowhere = np.isnan(nearest) & ~absent
        value = np.where(absent, X[..., 0], np.where(nowhere, U[..., 0], nearest))
        snapped = np.stack([value, absent.astype(np.float64)][: self.width], axis=-1)
        # A person may sit off the grid, and stays there; X is copied so that not one bit of it changes. Where
        # the bounds hold neither X nor a value of the grid, nothing is allowed, and ``allowed`` will say so.
        own = (_same(U, X) | _same(snapped, X) | nowhere) & inside(X, lower, upper)
        return np.where(own[..., None], X, snapped)

    def allowed(self, U: Array, X: Array, lower: Array, upper: Array) -> Mask:
        """Return whether each setting is one that ``snap`` may give."""
        u = U[..., 0]
        fits = np.abs(self._nearest(u, X, lower, upper) - u) <= SAME
        if self.missing:
            fits &= U[..., 1] == 0.0
        return (fits | _same(U, X)) & inside(U, lower, upper)

    def settings(self, U: Array, X: Array, lower: Array, upper: Array) -> Array:
        """Return other settings to try, B x m x w; some may not be allowed."""
        if self.kind in ("ordinal", "binary"):
            ranks = np.arange(self.grid.minimum, self.grid.maximum + 1.0)
            values = np.broadcast_to(self.scaling.to_unit(ranks), (len(U), len(ranks)))
        else:
            codes = np.broadcast_to(self.scaling.to_unit(self.grid.codes), (len(U), len(self.grid.codes)))
            values = np.concatenate([codes, self._strides(U, X, lower, upper)], axis=1)
        if not self.missing:
            return np.concatenate([X[:, None, :], values[:, :, None]], axis=1)
        values = np.concatenate([np.full((len(U), 1), self.fill), values], axis=1)
        known = np.stack([values, np.zeros_like(values)], axis=-1)
        return np.concatenate([X[:, None, :], known], axis=1)

    def _strides(self, U: Array, X: Array, lower: Array, upper: Array) -> Array:
        """Return values one, two, four, ... steps away on either side."""
        both = np.array([sign * stride for stride in _STRIDES for sign in (-1.0, 1.0)])
        u = U[:, :1]
        free = u + both * _FREE_STRIDE
        if self.grid.step is None:
            moved = free
        else:
            moved = self.scaling.to_unit(self.scaling.to_user(u) + both * self.grid.step)
            # Steps far below what matters (cents of an income) still leave room for moves that do.
            tiny = self.grid.step < _FREE_STRIDE * (self.grid.maximum - self.grid.minimum)
            moved = np.concatenate([moved, free], axis=1) if tiny else moved
        lower, upper = lower[:, None, :], upper[:, None, :]
        moved = np.clip(moved, lower[..., 0], upper[..., 0])
        nearest = self._nearest(moved, X[:, None, :], lower, upper)
        return np.where(np.isnan(nearest), moved, nearest)


def _same(U: Array, X: Array) -> Mask:
    return np.asarray((np.abs(U - X) <= SAME).all(axis=-1))


def inside(U: Array, lower: Array, upper: Array) -> Mask:
    """Return which settings lie within their bounds."""
    return np.asarray(((lower - SAME <= U) & (upper + SAME >= U)).all(axis=-1))
