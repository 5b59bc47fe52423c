"""Rows that threads take from one queue, and tables as C wants them."""

import ctypes
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["SHEAF", "PackedSurface", "agree", "aligned", "from_one_queue", "in_sheaves", "padded", "pointers"]

Array = NDArray[np.float64]

SHEAF = 8
"""Phases that the libraries sum side by side."""
_CORES = os.cpu_count() or 1
_FEW = 512
"""Rows that one thread does alone where they take a few microseconds each: others would have to be woken."""


class _Queue(ctypes.Structure):
    """queue.h's."""

    _fields_ = (("next", ctypes.c_int64), ("end", ctypes.c_int64))


class PackedSurface(ctypes.Structure):
    """The Surface of newton.c and of polish.c: three sizes, then where the tables lie."""

    _fields_ = (("sizes", ctypes.c_int64 * 3), ("tables", ctypes.c_void_p * 18))


def agree(pairs: Iterable[tuple[Tensor, Tensor]], tolerance: float) -> bool:
    """Whether what a library says is what torch says, relative to the largest of it."""
    return all(bool(((a - b).abs() <= tolerance * (1 + b.abs().max())).all()) for a, b in pairs)


def from_one_queue(n: int, work: Callable[[Any], int], alone: int = _FEW) -> None:
    """Call ``work(queue)`` on as many threads as torch may use; each takes rows until none of the n are left.

    ``work`` returns 0 if all is well; up to ``alone`` rows one thread does them. ctypes lets go of the interpreter's
    lock while C runs.
    """
    queue = _Queue(0, n)
    workers = min(torch.get_num_threads(), _CORES) if n > alone else 1
    if workers == 1:
        failed = work(ctypes.byref(queue))
    else:
        failed = max(_threads(workers, os.getpid()).map(work, [ctypes.byref(queue)] * workers))
    if failed:
        raise MemoryError("the compiled search found no memory for its rows")


@lru_cache(maxsize=4)
def _threads(workers: int, process: int) -> ThreadPoolExecutor:
    """Threads that wait for work, made once: a forked process has none of its parent's."""
    return ThreadPoolExecutor(workers, thread_name_prefix="gpae")


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
