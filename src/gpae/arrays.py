"""Names for the arrays that travel through the library; the letters in the shapes mean the same everywhere.

``B`` rows in a batch, ``D`` encoded columns, ``d`` latent dimensions, ``S`` random Fourier features.
"""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Flags",
    "Floats",
    "Indices",
    "Labels",
    "Mask",
    "Probabilities",
    "Rows",
    "in_a_row",
    "is_everyone",
    "joined",
    "picked",
    "placed",
]

Rows: TypeAlias = NDArray[np.float64]
"""Encoded rows, B x D, in [0, 1] for values inside the training range."""

Labels: TypeAlias = NDArray[np.int64]
"""One class per row, B; 1 is the favourable one."""

Mask: TypeAlias = NDArray[np.bool_]

Probabilities: TypeAlias = NDArray[np.float64]
"""B x 2, columns in the order of the classes."""

# What jaxtyping can give a shape: an alias of NumPy's own, such as NDArray, is no class from NumPy 2.5 on.
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Indices: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

T = TypeVar("T", bound=np.generic)

# Mostly everybody is asked about, answered and written down in one order. To fetch the memory of a large table takes
# longer than to see that it would be a copy.


def is_everyone(index: NDArray[np.intp], n: int) -> bool:
    """Whether these are all of n rows, in their order."""
    return len(index) == n and bool((index == np.arange(n)).all())


def in_a_row(index: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """A slice where one place follows the other, which takes no memory; or else the places as they are."""
    if not len(index) or index[-1] - index[0] != len(index) - 1:
        return index
    first, end = int(index[0]), int(index[-1]) + 1
    return slice(first, end) if bool((index == np.arange(first, end)).all()) else index


def picked(index: NDArray[np.intp], *tables: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Rows of some tables of one length; not copied where they follow each other."""
    at = in_a_row(index)
    return tuple(table[at] for table in tables)


def joined(*parts: NDArray[T]) -> NDArray[T]:
    """One after the other; a part itself where all others are empty."""
    there = [part for part in parts if len(part)]
    return there[0] if len(there) == 1 else np.concatenate(parts)


def placed(n: int, index: NDArray[np.intp], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows of a table at their places among n; NaN elsewhere."""
    if is_everyone(index, n):
        return table
    whole = np.full((n, *table.shape[1:]), np.nan)
    whole[index] = table
    return whole
