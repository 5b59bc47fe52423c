"""The numbers a feature may take: steps from a minimum, and special codes beside the range."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gpae.table.scaling import Array

__all__ = ["Grid"]


@dataclass(frozen=True)
class Grid:
    """``minimum + n step`` for whole n, in the user's units.

    Parameters
    ----------
    minimum, maximum
        The range of the schema.
    step
        None: every number.
    decimals
        Decimal places of the values, if they are short decimals.
    codes
        States beside the range, such as -9 for "no record".
    """

    minimum: float
    maximum: float
    step: float | None = None
    decimals: int | None = None
    codes: tuple[float, ...] = ()

    def at(self, n: Array) -> Array:
        """Return the n-th value; decimals come out as the very float that the decimal literal gives."""
        assert self.step is not None
        if self.decimals is None:
            return np.asarray(self.minimum + n * self.step)
        ten = 10.0**self.decimals
        return np.asarray((np.rint(self.minimum * ten) + n * np.rint(self.step * ten)) / ten)

    def _index(self, values: ArrayLike) -> Array:
        assert self.step is not None
        return np.asarray((np.asarray(values, dtype=np.float64) - self.minimum) / self.step)

    def nearest(self, values: Array) -> Array:
        """Return the nearest value of the grid, the upper one of two equally near."""
        return self.at(np.floor(self._index(values) + 0.5))

    def nearest_between(self, values: Array, low: Array, high: Array) -> Array:
        """Return the nearest value of the grid in [low, high], rounded inward; NaN where there is none."""
        assert self.step is not None
        # Bounds arrive through the scaling and back, so they miss their own grid value by rounding errors.
        slack = 1e-6 + 1e-15 * (self.maximum - self.minimum) / self.step
        first = np.ceil(self._index(low) - slack)
        last = np.floor(self._index(high) + slack)
        n = np.clip(np.floor(self._index(values) + 0.5), first, last)
        return np.where(first <= last, self.at(n), np.nan)
