"""Random numbers that belong to a row: the same row gets the same draws alone, in any batch and in any order.

Every number is a hash of (seed, the row's bits, stream, position), so nothing has to be remembered or shared.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["normals", "row_keys", "uniforms"]

Keys = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_keys(rows: NDArray[np.float64], seed: int) -> Keys:
    """One 64-bit key a row, from the seed and the row's own bits."""
    # adding zero turns -0.0 into 0.0, which is the same value and must be the same key
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)
    keys = _mixed(np.full(len(rows), seed, dtype=np.uint64) + _GOLDEN)
    for column in bits.T:
        keys = _mixed(keys ^ column)
    return keys


def uniforms(keys: Keys, n: int, stream: int = 0) -> NDArray[np.float64]:
    """B x n draws strictly inside (0, 1); another stream is another set of draws."""
    own = _mixed(keys + _mixed(np.uint64(stream) + _GOLDEN))
    bits = _mixed(own[:, None] + np.arange(1, n + 1, dtype=np.uint64) * _GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def normals(keys: Keys, n: int, stream: int = 0) -> NDArray[np.float64]:
    """B x n standard normal draws."""
    return np.asarray(ndtri(uniforms(keys, n, stream)))


def _mixed(value: Keys | np.uint64) -> Keys:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the value."""
    with np.errstate(over="ignore"):
        z = np.asarray(value, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
