"""Tables as C wants them: packed, aligned, and what a library says of them held against torch."""

import ctypes
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

__all__ = [
    "MACROS",
    "REALS",
    "SHEAF",
    "PackedSurface",
    "Precision",
    "agree",
    "aligned",
    "in_sheaves",
    "padded",
    "pointers",
]

Array = NDArray[np.float64]
Precision = Literal["single", "double"]
MACROS: dict[Precision, dict[str, str]] = {"single": {"REAL": "float", "SINGLE": "1"}, "double": {"REAL": "double"}}
"""What a library of that precision is compiled with, and"""
REALS: dict[Precision, type] = {"single": np.float32, "double": np.float64}
"""what its tables are of."""

SHEAF = 8
"""Phases that the libraries sum side by side."""


class PackedSurface(ctypes.Structure):
    """The Surface of point.h and of along.h: three sizes, then where the tables lie."""

    _fields_ = (("sizes", ctypes.c_int64 * 3), ("tables", ctypes.c_void_p * 18))


def agree(pairs: Iterable[tuple[Tensor, Tensor]], tolerance: float) -> bool:
    """Whether what a library says is what torch says, relative to the largest of it."""
    return all(bool(((a - b).abs() <= tolerance * (1 + b.abs().max())).all()) for a, b in pairs)


def aligned(table: NDArray[Any]) -> NDArray[Any]:
    """A copy that begins on a boundary of 64 bytes, as vectors must."""
    size = table.dtype.itemsize
    room = np.empty(table.size + 64 // size, table.dtype)
    first = -room.ctypes.data % 64 // size
    out = room[first : first + table.size].reshape(table.shape)
    out[...] = table
    return out


def in_sheaves(frequencies: Array) -> Array:
    """S x D frequencies as S / SHEAF x D x SHEAF."""
    return np.ascontiguousarray(frequencies.reshape(-1, SHEAF, frequencies.shape[1]).transpose(0, 2, 1))


def padded(part: Tensor, width: int) -> Array:
    """As doubles in rows of ``width`` columns, zeros where there are fewer; a vector stays one."""
    values = part.detach().numpy()
    if values.ndim == 1 or values.shape[1] == width:
        return np.ascontiguousarray(values, dtype=np.float64)
    wide = np.zeros((len(values), width))
    wide[:, : values.shape[1]] = values
    return wide


def pointers(parts: tuple[NDArray[Any] | None, ...]) -> tuple[int | None, ...]:
    """Where each array lies; whoever asks keeps the arrays alive."""
    return tuple(None if part is None else part.ctypes.data for part in parts)
