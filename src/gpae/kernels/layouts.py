"""What rows may be, packed for the libraries (layout.h): a layout's features as tables."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpae.kernels.packing import pointers
from gpae.table.layout import Block, Layout
from gpae.table.level_block import LevelBlock
from gpae.table.scaling import MinMax
from gpae.table.value_block import ValueBlock

__all__ = ["PackedLayout"]

_FREE, _GRID, _RANKS, _LEVELS = range(4)
_MOST_VALUES = 1 << 16
"""Values of a grid that are tabled; a finer one is left to the plain polish."""
_FINE = 2000
"""Steps in the range from which on a step is far below what matters."""

Table = NDArray[Any]


class _Layout(ctypes.Structure):
    _fields_ = (("features", ctypes.c_int64), ("tables", ctypes.c_void_p * 14))


_GRID_NUMBERS = ("minimum", "step", "ten", "low", "high", "range", "zero")
_GRIDS = np.dtype([("count", "i8"), ("tabled", "i8"), *((name, "f8") for name in _GRID_NUMBERS)])


@dataclass(frozen=True, slots=True, eq=False)
class PackedLayout:
    """The Layout of layout.h, and the tables that it points at."""

    tables: tuple[Table, ...]
    packed: _Layout

    @classmethod
    def of(cls, layout: Layout) -> "PackedLayout | None":
        """Pack a layout; None where a feature has more values than can be tabled."""
        return _packed(layout)


@lru_cache(maxsize=8)
def _packed(layout: Layout) -> PackedLayout | None:
    """Packed once: it is asked for at every step of a search."""
    if not all(map(_can_be_tabled, layout.features)):
        return None
    tables = _layout_tables(layout)
    return PackedLayout(tables, _Layout(len(layout.features), pointers(tables)))


def _can_be_tabled(block: Block) -> bool:
    if isinstance(block, LevelBlock) or block.grid.step is None or isinstance(block.scaling, MinMax):
        return True
    return _count(block) <= _MOST_VALUES and bool((np.diff(_values(block)) > 0).all())


def _count(block: ValueBlock) -> int:
    assert block.grid.step is not None
    return int((block.grid.maximum - block.grid.minimum) / block.grid.step + 1e-6) + 1


def _values(block: ValueBlock, shift: float = 0.0) -> Table:
    """The encoded values of its grid; or, shifted by half a step, what lies between them."""
    grid = block.grid
    assert grid.step is not None
    return block.scaling.to_unit(grid.at(np.arange(_count(block), dtype=np.float64)) + shift * grid.step)


def _grids(blocks: Sequence[ValueBlock | None]) -> tuple[Table, Table, Table]:
    """Each feature's grid, and the values and what lies between them of those that are tabled."""
    grids = np.zeros(len(blocks), _GRIDS)
    values, middles = [np.zeros(0)], [np.zeros(0)]
    for i, block in enumerate(blocks):
        if block is None or block.grid.step is None:
            continue
        grid, scale, step = block.grid, block.scaling, block.grid.step
        ten = 0.0 if grid.decimals is None else 10.0**grid.decimals
        if isinstance(scale, MinMax):
            steps = (scale.high - scale.low) / step, (scale.low - grid.minimum) / step
            grids[i] = (_count(block), -1, grid.minimum, step, ten, scale.low, scale.high, *steps)
        else:
            grids[i]["count"], grids[i]["tabled"] = _count(block), sum(map(len, values))
            values.append(_values(block))
            middles.append(_values(block, 0.5))
    return grids, np.concatenate(values), np.concatenate(middles)


def _kind(block: Block) -> int:
    if isinstance(block, LevelBlock):
        return _LEVELS
    if block.kind in ("ordinal", "binary"):
        return _RANKS
    return _FREE if block.grid.step is None else _GRID


def _layout_tables(layout: Layout) -> tuple[Table, ...]:
    """The tables of polish.c's Layout, in its order."""
    blocks = layout.features
    numbers = [block if isinstance(block, ValueBlock) else None for block in blocks]
    grids, values, middles = _grids(numbers)
    codes = [np.zeros(0) if b is None else np.asarray(b.scaling.to_unit(b.grid.codes), np.float64) for b in numbers]
    spans = [(0.0, 1.0) if b is None else b.span_of_numbers() for b in numbers]
    code_ends = np.cumsum([len(c) for c in codes])
    whole = (
        [_kind(b) for b in blocks], [b.start for b in blocks], [b.width for b in blocks],
        [b is not None and b.missing for b in numbers],
    )  # fmt: skip
    real = ([low for low, _ in spans], [high for _, high in spans], [0.0 if b is None else b.fill for b in numbers])
    return (
        *(np.ascontiguousarray(table, np.int64) for table in whole),
        grids, values, middles,
        np.ascontiguousarray(code_ends - [len(c) for c in codes], np.int64), np.ascontiguousarray(code_ends, np.int64),
        np.concatenate(codes),
        *(np.ascontiguousarray(table, np.float64) for table in real),
        (grids["count"] - 1 > _FINE).astype(np.int64),
    )  # fmt: skip
