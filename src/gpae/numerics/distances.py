"""Distances between many rows, by differences: the inner-product formula loses the digits of near-duplicates."""

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from gpae.arrays import Flags, Floats, Indices

__all__ = ["NOWHERE", "mean_distance_to_others", "nearest_of_class", "nearest_other"]


NOWHERE = -1
"""In the place of a row where there is none."""

_BLOCK = 1024
"""Rows at a time, so that many rows need no square matrix."""


def mean_distance_to_others(rows: Float[Floats, "n D"]) -> Float[Floats, " n"]:
    """Mean distance of each row to the other ones; NaN for a row of NaN, which is nobody's other one."""
    known = np.flatnonzero(~np.isnan(rows).any(axis=1))
    mean = np.full(len(rows), np.nan)
    if len(known) > 1:
        # a row's distance to itself is zero and adds nothing
        blocks = [cdist(rows[part], rows[known]).sum(axis=1) for part in _blocks(known)]
        mean[known] = np.concatenate(blocks) / (len(known) - 1)
    return mean


def nearest_other(
    rows: Float[Floats, "n D"], label: Int[Indices, " n"]
) -> tuple[Int[Indices, " n"], Float[Floats, " n"]]:
    """The nearest other row with the same label, and its distance; infinite (and any row) if there is none."""
    nearest, distance = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), np.inf)
    for part in _blocks(np.arange(len(rows))):
        apart = np.where(label[part, None] == label, cdist(rows[part], rows), np.inf)
        apart[np.arange(len(part)), part] = np.inf
        nearest[part] = apart.argmin(axis=1)
        distance[part] = apart.min(axis=1)
    return nearest, distance


def nearest_of_class(
    x: Float[Floats, "B D"], rows: Float[Floats, "n D"], members: Bool[Flags, " n"], k: int
) -> Int[Indices, "B k"]:
    """The k nearest members of each x, nearest first; NOWHERE where there are fewer.

    If x is one of them itself it is left out: once, since others may coincide with it.
    """
    at = np.flatnonzero(members)
    chosen = np.full((len(x), k), NOWHERE, dtype=np.int64)
    for part in _blocks(np.arange(len(x))) if len(at) else []:
        apart = cdist(x[part], rows[at])
        itself = (apart == 0) & ((apart == 0).cumsum(axis=1) == 1)
        apart[itself] = np.inf
        order = np.argsort(apart, axis=1, kind="stable")[:, :k]
        there = np.isfinite(np.take_along_axis(apart, order, axis=1))
        chosen[part, : order.shape[1]] = np.where(there, at[order], NOWHERE)
    return chosen


def _blocks(positions: Indices) -> list[Indices]:
    return [positions[start : start + _BLOCK] for start in range(0, len(positions), _BLOCK)]
