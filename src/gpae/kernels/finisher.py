"""The compiled polish (polish.c) from Python: what a row may be as tables, rows in and allowed rows out."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.compiled import library
from gpae.kernels.lanes import BLOCK, MOST_LATENTS, log_constant
from gpae.kernels.shares import PackedSurface, agree, aligned, in_shares, padded, pointers
from gpae.numerics.autoencoder import AutoEncoder, logit
from gpae.numerics.density import Tilt, log_density
from gpae.table.layout import Block, Layout
from gpae.table.level_block import LevelBlock
from gpae.table.scaling import MinMax
from gpae.table.value_block import ValueBlock

__all__ = ["Finished", "Finisher"]

_LANES = 8
_FREE, _GRID, _RANKS, _LEVELS = range(4)
_MOST_VALUES = 1 << 16
"""Values of a grid that are tabled; a finer one is left to the plain polish."""
_FINE = 2000
"""Steps in the range from which on a step is far below what matters."""

_AGREES = 1e-9
"""How far a logit or a log density may be from torch's, relative to the largest, for the library to be believed."""

Table = NDArray[Any]


class Finished(NamedTuple):
    """Allowed rows with their objective and h, and what they took."""

    u: Float[Tensor, "B D"]
    objective: Float[Tensor, " B"]
    h: Float[Tensor, " B"]
    looks: Int[Tensor, " B"]
    """At how many points the map was evaluated."""


class _Layout(ctypes.Structure):
    _fields_ = (("features", ctypes.c_int64), ("tables", ctypes.c_void_p * 14))


_GRIDS = np.dtype(
    [("count", "i8"), ("tabled", "i8"), *((name, "f8") for name in ("minimum", "step", "ten", "low", "high"))]
)


class _Rows(ctypes.Structure):
    _fields_ = (("given", ctypes.c_void_p * 7), ("found", ctypes.c_void_p * 4))


@dataclass(frozen=True, slots=True, eq=False)
class Finisher:
    """A surface and a layout as polish.c wants them."""

    library: ctypes.CDLL
    tables: tuple[Table, ...]
    surface: PackedSurface
    layout: _Layout
    columns: int
    width: int

    @classmethod
    def of(cls, model: AutoEncoder, density: Tilt, layout: Layout) -> "Finisher | None":
        """Pack them; None where there is no library, or a feature has more values than can be tabled."""
        if not 1 <= len(model.theta) <= MOST_LATENTS or not all(map(_can_be_tabled, layout.features)):
            return None
        compiled = library("polish.c", REAL="double", LATENT=str(len(model.theta)))
        if compiled is None:
            return None
        columns = layout.width
        width = columns + -columns % BLOCK
        surface, rules = _surface_tables(model, density, width), _layout_tables(layout)
        sizes = (len(surface[1]), width, len(surface[7]))
        packed = PackedSurface(sizes, pointers(surface)), _Layout(len(layout.features), pointers(rules))
        finisher = cls(compiled, (*surface, *rules), *packed, columns, width)
        return finisher if finisher._agrees(model, density) else None

    def _agrees(self, model: AutoEncoder, density: Tilt) -> bool:
        """Try a few rows that may not move against torch: a compiler may be wrong."""
        x = torch.rand(5, self.columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        ones = torch.ones(len(x), dtype=torch.float64)
        done = self.finish((x, x, x, ones, ones, 0 * ones), x)
        latent = model.encode(x)
        pairs = ((-done.objective, log_density(density, latent)), (done.h, logit(model, latent)))
        return agree(pairs, _AGREES) and bool((done.u == x).all())

    def snap(self, problem: tuple[Tensor, ...], u: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """The nearest allowed rows; ``problem`` are x, lower, upper, beta, sign and margin."""
        return self._polish(problem, u, searching=False).u

    def finish(self, problem: tuple[Tensor, ...], u: Float[Tensor, "B D"]) -> Finished:
        """Snapped, repaired and tightened."""
        return self._polish(problem, u, searching=True)

    def _polish(self, problem: tuple[Tensor, ...], u: Float[Tensor, "B D"], *, searching: bool) -> Finished:
        n = len(u)
        out = np.empty((n, self.width))
        objective, h, looks = *np.empty((2, n)), np.zeros(n, np.int64)
        given = tuple(padded(part, self.width) for part in (*problem, u))
        rows = _Rows(pointers(given), pointers((out, objective, h, looks)))
        with_what = ctypes.byref(self.surface), ctypes.byref(self.layout), ctypes.byref(rows), ctypes.c_int(searching)
        in_shares(n, lambda first, end: self.library.polish_rows(*with_what, first, end))
        return Finished(*(torch.from_numpy(part) for part in (out[:, : self.columns], objective, h, looks)))


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
        grid, scale = block.grid, block.scaling
        ten = 0.0 if grid.decimals is None else 10.0**grid.decimals
        if isinstance(scale, MinMax):
            grids[i] = (_count(block), -1, grid.minimum, grid.step, ten, scale.low, scale.high)
        else:
            grids[i] = (_count(block), sum(map(len, values)), 0.0, 0.0, 0.0, 0.0, 0.0)
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


def _surface_tables(model: AutoEncoder, density: Tilt, width: int) -> tuple[Table, ...]:
    """The tables of polish.c's Surface, in its order."""
    S, D = model.encoder.frequencies.shape
    more, more_density = -S % _LANES, -len(density.weights) % _LANES
    weights = np.pad(model.encoder.amplitude * model.encoder_weights.numpy().T, ((0, 0), (0, more)))
    tables = (
        np.pad(model.encoder.frequencies.numpy().T, ((0, width - D), (0, more))),
        np.pad(model.encoder.phases.numpy(), (0, more)),
        weights,
        model.theta.numpy() @ weights,
        model.theta.numpy(),
        model.theta0.reshape(1).numpy(),
        np.pad(density.fmap.frequencies.numpy().T, ((0, 0), (0, more_density))),
        np.pad(density.fmap.phases.numpy(), (0, more_density)),
        np.pad(density.fmap.amplitude * density.weights.numpy(), (0, more_density)),
        density.mean.numpy(),
        density.precision.numpy(),
        np.array([log_constant(density)]),
    )
    return tuple(aligned(np.asarray(table, dtype=np.float64)) for table in tables)
