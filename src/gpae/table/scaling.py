"""Strictly increasing maps from the user's units to [0, 1] and back.

The training minimum goes to 0 and the maximum to 1; each map goes on increasing outside, so that a person
beyond the training range still has an encoding of their own.
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from gpae.table.schema import ScalingName

__all__ = ["Array", "MinMax", "Quantile", "Robust", "Scaling", "fit_scaling"]

Array: TypeAlias = NDArray[np.float64]

_KNOTS = 256


@dataclass(frozen=True)
class MinMax:
    """u = (v - low) / (high - low): the paper's scale."""

    low: float
    high: float
    kind: Literal["minmax"] = "minmax"

    def to_unit(self, values: ArrayLike) -> Array:
        """Map the user's units to [0, 1]."""
        return np.asarray((np.asarray(values, dtype=np.float64) - self.low) / (self.high - self.low))

    def to_user(self, unit: ArrayLike) -> Array:
        """Map [0, 1] to the user's units."""
        u = np.asarray(unit, dtype=np.float64)
        # This form is exact at both ends; low + u (high - low) is not.
        return np.asarray(self.low * (1.0 - u) + self.high * u)


@dataclass(frozen=True)
class Robust:
    """u = (asinh z - asinh z_low) / (asinh z_high - asinh z_low) with z = (v - centre) / spread.

    Linear around the median and logarithmic in the tails: a few huge values do not crush the rest, yet two
    of them stay apart in float64, which a bounded squashing function would not give.
    """

    centre: float
    spread: float
    low: float
    high: float
    kind: Literal["robust"] = "robust"

    def _ends(self) -> tuple[float, float]:
        low, high = np.arcsinh((np.array([self.low, self.high]) - self.centre) / self.spread)
        return float(low), float(high)

    def to_unit(self, values: ArrayLike) -> Array:
        """Map the user's units to [0, 1]."""
        low, high = self._ends()
        z = (np.asarray(values, dtype=np.float64) - self.centre) / self.spread
        return np.asarray((np.arcsinh(z) - low) / (high - low))

    def to_user(self, unit: ArrayLike) -> Array:
        """Map [0, 1] to the user's units."""
        low, high = self._ends()
        u = np.asarray(unit, dtype=np.float64)
        return np.asarray(self.centre + self.spread * np.sinh(low * (1.0 - u) + high * u))


@dataclass(frozen=True)
class Quantile:
    """Piecewise linear through (knot, position): u is roughly the share of training rows below v."""

    knots: tuple[float, ...]
    positions: tuple[float, ...]
    kind: Literal["quantile"] = "quantile"

    def _points(self) -> tuple[Array, Array]:
        # Outside, the slope is that of min-max: the end pieces' own may be so steep that a value one step
        # beyond the range would land at 10.
        low, high = self.knots[0], self.knots[-1]
        knots = (2.0 * low - high, *self.knots, 2.0 * high - low)
        return np.array(knots), np.array((-1.0, *self.positions, 2.0))

    def to_unit(self, values: ArrayLike) -> Array:
        """Map the user's units to [0, 1]."""
        knots, positions = self._points()
        return _through(np.asarray(values, dtype=np.float64), knots, positions)

    def to_user(self, unit: ArrayLike) -> Array:
        """Map [0, 1] to the user's units."""
        knots, positions = self._points()
        return _through(np.asarray(unit, dtype=np.float64), positions, knots)


Scaling: TypeAlias = Annotated[MinMax | Robust | Quantile, Field(discriminator="kind")]


def _through(x: Array, xs: Array, ys: Array) -> Array:
    """Interpolate linearly and extend the first and last piece."""
    piece = np.clip(np.searchsorted(xs, x, side="right") - 1, 0, len(xs) - 2)
    share = (x - xs[piece]) / (xs[piece + 1] - xs[piece])
    return np.asarray(ys[piece] * (1.0 - share) + ys[piece + 1] * share)


def _robust(values: Array) -> Robust:
    low, centre, high = np.quantile(values, [0.25, 0.5, 0.75])
    # A column that is mostly one value (capital gains) has no inter-quartile range; its deviation stands in.
    spread = high - low if high > low else values.std()
    return Robust(float(centre), float(spread), float(values.min()), float(values.max()))


def _quantile(values: Array) -> Quantile:
    positions = np.linspace(0.0, 1.0, _KNOTS)
    knots, group = np.unique(np.quantile(values, positions, method="lower"), return_inverse=True)
    # A value that repeats over many quantiles sits at their mean.
    means = np.bincount(group, weights=positions) / np.bincount(group)
    means[0], means[-1] = 0.0, 1.0
    return Quantile(tuple(knots.tolist()), tuple(means.tolist()))


def fit_scaling(kind: ScalingName, values: Array, low: float, high: float) -> MinMax | Robust | Quantile:
    """Fit a map to training values (missing ones left out).

    ``low`` and ``high``, the range of the schema, stand in for a column that is constant in training.
    """
    if values.size == 0 or values.min() == values.max():
        values = np.array([low, high if high > low else low + 1.0])
    if kind == "robust":
        return _robust(values)
    if kind == "quantile":
        return _quantile(values)
    return MinMax(float(values.min()), float(values.max()))
