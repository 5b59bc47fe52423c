"""The nearest rows of a table and distances to them, compiled (neighbours.c)."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.compiled import library
from gpae.kernels.packing import MACROS, aligned
from gpae.kernels.threads import from_one_queue
from gpae.numerics.tiles import in_tiles

__all__ = ["NearRows", "nearest", "plain_nearest"]

_GROUP = 64
"""Rows whose distances are summed side by side."""
_FAR = 1e15
"""Where a lane without a row is: far from everything, and its square can still be told."""

Singles = NDArray[np.float32]
Places = NDArray[np.int64]


class _Table(ctypes.Structure):
    _fields_ = (("sizes", ctypes.c_int64 * 2), ("tables", ctypes.c_void_p * 2))


@dataclass(frozen=True, slots=True, eq=False)
class NearRows:
    """A table of rows as neighbours.c wants it."""

    library: ctypes.CDLL
    tables: tuple[Singles, Singles]
    table: _Table

    @classmethod
    def of(cls, rows: Singles) -> "NearRows | None":
        """Pack a table; None where there is no library."""
        compiled = library("neighbours.c", **MACROS["single"])
        if compiled is None:
            return None
        n, columns = rows.shape
        padded = np.pad(rows, ((0, -n % _GROUP), (0, 0)), constant_values=_FAR)
        tables = (np.ascontiguousarray(rows), aligned(padded.reshape(-1, _GROUP, columns).transpose(0, 2, 1)))
        return cls(compiled, tables, _Table((n, columns), tuple(part.ctypes.data for part in tables)))

    def nearest(self, x: Singles, wanted: int) -> Places:
        """The ``wanted`` nearest rows of each of some others, nearest first; at most as many as there are."""
        x, index = np.ascontiguousarray(x), np.empty((len(x), wanted), np.int64)
        call = ctypes.byref(self.table), _at(x), ctypes.c_int64(wanted), _at(index)
        from_one_queue(len(x), lambda queue: self.library.nearest_rows(*call, queue))
        return index

    def distances(self, index: Places, person: Places, plans: Singles, few: int) -> NDArray[np.float64]:
        """How far each plan lies, on average, from the ``few`` nearest of its person's rows, a line of ``index``."""
        order = np.argsort(person, kind="stable")
        given = [np.ascontiguousarray(part) for part in (index, person, order, plans)]
        far = np.empty(len(plans))
        call = (
            ctypes.byref(self.table), _at(given[0]), ctypes.c_int64(index.shape[1]), *map(_at, given[1:]),
            ctypes.c_int64(few), _at(far),
        )  # fmt: skip
        from_one_queue(len(plans), lambda queue: self.library.distances(*call, queue))
        return far


def nearest(rows: Singles, x: Singles, wanted: int) -> Places:
    """The ``wanted`` rows nearest to each of some others, nearest first; compiled where that can be."""
    compiled = NearRows.of(rows)
    return plain_nearest(rows, x, wanted) if compiled is None else compiled.nearest(x, wanted)


def plain_nearest(rows: Singles, x: Singles, wanted: int) -> Places:
    """The same by torch, in tiles."""
    there = torch.from_numpy(rows)
    size = there.square().sum(1)

    def found(here: Float[Tensor, "B D"]) -> tuple[Int[Tensor, "B M"]]:
        far = size - 2.0 * here @ there.T
        return (far.topk(wanted, dim=1, largest=False).indices,)

    (index,) = in_tiles(found, (torch.from_numpy(np.ascontiguousarray(x)),))
    return np.asarray(index.numpy())


def _at(part: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(part.ctypes.data)
