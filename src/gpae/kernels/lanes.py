"""The compiled search (newton.c) from Python: a surface packed for it, rows in and rows out."""

import ctypes
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.compiled import library
from gpae.kernels.packing import MACROS, REALS, PackedSurface, Precision, agree, in_sheaves, pointers
from gpae.kernels.threads import from_one_queue
from gpae.numerics.autoencoder import AutoEncoder, logit
from gpae.numerics.density import Tilt, log_density

__all__ = ["BLOCK", "MOST_LATENTS", "Lanes", "Walked", "log_constant"]

Array = NDArray[np.float64]

BLOCK = 4
"""Columns are padded to multiples of this."""
MOST_LATENTS = 16
_ALONE = 32
"""Rows that one thread searches for alone: two would have half of their lanes empty."""
_FEATURES = 64
"""Features are padded to multiples of this."""
_AGREES: dict[Precision, float] = {"single": 2e-4, "double": 1e-9}
"""How far a logit or a log density may be from torch's, relative to the largest, for the library to be believed."""


class Walked(NamedTuple):
    """What the compiled search returns, one entry a row."""

    u: Float[Tensor, "B D"]
    objective: Float[Tensor, " B"]
    h: Float[Tensor, " B"]
    kkt: Float[Tensor, " B"]
    iterations: Int[Tensor, " B"]
    converged: Bool[Tensor, " B"]


class _Rows(ctypes.Structure):
    _fields_ = (
        ("given", ctypes.c_void_p * 7),
        ("columns", ctypes.c_void_p * 3),
        ("tolerance", ctypes.c_double),
        ("off", ctypes.c_double),
        ("iterations", ctypes.c_int64),
        ("full", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * 3),
        ("found", ctypes.c_void_p * 6),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """A surface as newton.c wants it: padded tables in one precision, and the library for its latent dimension."""

    library: ctypes.CDLL
    tables: tuple[NDArray[Any], ...]
    surface: PackedSurface
    open: NDArray[np.int64]
    """Columns that rows may move, and"""
    held: NDArray[np.int64]
    """those that none does: what a row is there is summed once, and not at every step."""
    units: Array
    """By what columns are multiplied before a way is measured."""

    @classmethod
    def of(
        cls,
        model: AutoEncoder,
        density: Tilt,
        precision: Precision,
        held: Bool[Tensor, " D"] | None = None,
        units: Float[Tensor, " D"] | None = None,
    ) -> "Lanes | None":
        """Pack a surface; None where there is no library for it, or one that does not agree with torch."""
        if not 1 <= len(model.theta) <= MOST_LATENTS:
            return None
        compiled = library("newton.c", LATENT=str(len(model.theta)), **MACROS[precision])
        if compiled is None:
            return None
        columns = model.encoder.frequencies.shape[1]
        still = np.zeros(columns, np.bool_) if held is None else held.numpy()
        by = torch.ones(columns, dtype=torch.float64) if units is None else units
        open_, held_ = np.flatnonzero(~still), np.flatnonzero(still)
        width = max(len(open_) + -len(open_) % BLOCK, BLOCK)
        tables = _tables(model.stretched(by), density, (open_, held_), width, REALS[precision])
        surface = PackedSurface((len(tables[2]), width, len(density.weights)), pointers(tables))
        lanes = cls(compiled, tables, surface, open_, held_, np.ascontiguousarray(by.numpy()))
        return lanes if lanes._agrees(model, density, _AGREES[precision]) else None

    def solve(
        self,
        problem: tuple[Tensor, ...],
        start: Float[Tensor, "B D"] | None,
        *,
        tolerance: float,
        iterations: int,
        full: bool = False,
        off: float = 0.0,
    ) -> Walked:
        """Latent (or full) steps from ``start`` (None: the boundary, met head-on) until each row converges or gives up.

        ``problem`` are x, lower, upper, beta, sign and margin; the bounds of held columns leave no room. ``off`` is the
        share of the margin by which a row may end off the boundary.
        """
        n = len(problem[0])
        u, taken, converged = np.empty((n, len(self.units))), np.empty(n, np.int64), np.empty(n, np.bool_)
        objective, h, kkt = np.empty((3, n))
        given, found = _given(problem, start), (u, objective, h, kkt, taken, converged)
        rows = self._rows(given, found, tolerance, off, iterations, full)
        call = self.library.solve_rows, ctypes.byref(self.surface), ctypes.byref(rows)
        from_one_queue(n, lambda queue: call[0](*call[1:], queue), _ALONE)
        return Walked(*map(torch.from_numpy, found))

    def evaluate(
        self, problem: tuple[Tensor, ...], u: Float[Tensor, "B D"]
    ) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
        """Objective and h at u."""
        return self._look(self.library.evaluate_rows, problem, u)

    def linearise(
        self, problem: tuple[Tensor, ...], u: Float[Tensor, "B D"], times: int
    ) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
        """The same, with slopes and some times over: what a search would take without its steps."""
        return self._look(self.library.linearise_rows, problem, u, times)

    def _look(
        self, function: Any, problem: tuple[Tensor, ...], u: Float[Tensor, "B D"], times: int = 1
    ) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
        (objective, h), given = np.empty((2, len(u))), _given(problem, u)
        rows = self._rows(given, (None, objective, h, None, None, None), iterations=times)
        call = ctypes.byref(self.surface), ctypes.byref(rows)
        from_one_queue(len(u), lambda queue: function(*call, queue))
        return torch.from_numpy(objective), torch.from_numpy(h)

    def _rows(
        self,
        given: tuple[Array | None, ...],
        found: tuple[NDArray[Any] | None, ...],
        tolerance: float = 0.0,
        off: float = 0.0,
        iterations: int = 0,
        full: bool = False,
    ) -> _Rows:
        """What newton.c is told of the rows; whoever calls keeps the arrays alive."""
        columns = pointers((self.open, self.held, self.units))
        sizes = len(self.units), len(self.open), len(self.held)
        return _Rows(pointers(given), columns, tolerance, off, iterations, full, sizes, pointers(found))

    def _agrees(self, model: AutoEncoder, density: Tilt, tolerance: float) -> bool:
        """Try a few rows against torch: a compiler may be wrong, or the processor another than it believes."""
        x = torch.rand(21, len(self.units), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        ones, lower, upper = torch.ones(len(x), dtype=torch.float64), x.clone(), x.clone()
        lower[:, self.open], upper[:, self.open] = 0.0, 1.0
        still, free = (x, x, x, ones, ones, 0 * ones), (x, lower, upper, 0 * ones, ones, 0 * ones)
        objective, h = self.evaluate(still, x)
        latent = model.encode(x)
        walked = self.solve(free, None, tolerance=1e-3, iterations=3)
        way = 0.5 * ((walked.u - x) * torch.from_numpy(self.units)).square().sum(1)
        there = logit(model, model.encode(walked.u))
        pairs = (
            (-objective, log_density(density, latent)),
            (h, logit(model, latent)),
            (walked.objective, way),
            (walked.h, there),
        )
        return agree(pairs, tolerance)


def _given(problem: tuple[Tensor, ...], at: Float[Tensor, "B D"] | None) -> tuple[Array | None, ...]:
    """The rows and where they begin, as doubles in one piece."""
    parts = (*problem, at)
    return tuple(None if part is None else np.ascontiguousarray(part.numpy(), dtype=np.float64) for part in parts)


def log_constant(density: Tilt) -> float:
    """What log p adds to its exponents."""
    log_volume = 2 * float(density.factor.diagonal().log().sum()) + len(density.mean) * math.log(2 * math.pi)
    return -0.5 * log_volume - float(density.log_normaliser)


def _tables(
    model: AutoEncoder, density: Tilt, columns: tuple[NDArray[np.int64], NDArray[np.int64]], width: int, real: type
) -> tuple[NDArray[Any], ...]:
    """The tables of point.h's Surface, in its order; ``columns`` are the open and the held ones."""
    more = -len(model.encoder.frequencies) % _FEATURES
    open_, held = (model.encoder.frequencies[:, part].numpy() for part in columns)
    frequencies = np.pad(open_, ((0, more), (0, width - open_.shape[1])))
    weights = np.pad(model.encoder.amplitude * model.encoder_weights.numpy(), ((0, more), (0, 0)))
    tables = (
        in_sheaves(frequencies),
        frequencies,
        np.pad(model.encoder.phases.numpy(), (0, more)),
        weights,
        model.theta.numpy(),
        model.theta0.reshape(1).numpy(),
        density.fmap.frequencies.numpy(),
        density.fmap.phases.numpy(),
        density.fmap.amplitude * density.weights.numpy(),
        density.mean.numpy(),
        density.precision.numpy(),
        np.array([log_constant(density)]),
        np.pad(held, ((0, more), (0, 0))).T,
    )
    return tuple(np.ascontiguousarray(table, dtype=real) for table in tables)
