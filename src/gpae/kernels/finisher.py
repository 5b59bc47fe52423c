"""The compiled polish (polish.c) from Python: what a row may be as tables, rows in and allowed rows out."""

import ctypes
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from gpae.kernels.compiled import library
from gpae.kernels.lanes import MOST_LATENTS, log_constant
from gpae.kernels.layouts import PackedLayout
from gpae.kernels.packing import PackedSurface, agree, aligned, padded, pointers
from gpae.kernels.threads import from_one_queue
from gpae.numerics.autoencoder import AutoEncoder, logit
from gpae.numerics.density import Tilt, log_density
from gpae.table.layout import Layout

__all__ = ["Finished", "Finisher"]

_LANES, _ALONE = 16, 8
"""Of single precision; rows that one thread does alone."""
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


class _Rows(ctypes.Structure):
    _fields_ = (("given", ctypes.c_void_p * 7), ("found", ctypes.c_void_p * 4))


@dataclass(frozen=True, slots=True, eq=False)
class Finisher:
    """A surface and a layout as polish.c wants them."""

    library: ctypes.CDLL
    tables: tuple[Table, ...]
    surface: PackedSurface
    layout: PackedLayout
    columns: int

    @classmethod
    def of(
        cls, model: AutoEncoder, density: Tilt, layout: Layout, units: Float[Tensor, " D"] | None = None
    ) -> "Finisher | None":
        """Pack them, and the units in which ways are measured.

        None where there is no library, or a feature has more values than can be tabled.
        """
        if not 1 <= len(model.theta) <= MOST_LATENTS or (rules := PackedLayout.of(layout)) is None:
            return None
        compiled = library("polish.c", REAL="double", LATENT=str(len(model.theta)))
        if compiled is None:
            return None
        columns = layout.width
        tables = _surface_tables(model, density, np.ones(columns) if units is None else units.square().numpy())
        surface = PackedSurface((len(tables[0]), columns, len(tables[-1])), pointers(tables))
        finisher = cls(compiled, tables, surface, rules, columns)
        return finisher if finisher._agrees(model, density) else None

    def _agrees(self, model: AutoEncoder, density: Tilt) -> bool:
        """Try a few rows that may not move against torch: a compiler may be wrong."""
        x = torch.rand(5, self.columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        ones = torch.ones(len(x), dtype=torch.float64)
        done = self.finish((x, x, x, ones, ones, 0 * ones), x)
        latent = model.encode(x)
        pairs = ((-done.objective, log_density(density, latent)), (done.h, logit(model, latent)))
        return agree(pairs, _AGREES) and bool((done.u == x).all())

    def finish(self, problem: tuple[Tensor, ...], u: Float[Tensor, "B D"]) -> Finished:
        """Snapped, repaired and tightened; ``problem`` are x, lower, upper, beta, sign and margin."""
        n = len(u)
        out = np.empty((n, self.columns))
        objective, h, looks = *np.empty((2, n)), np.zeros(n, np.int64)
        given = tuple(padded(part, self.columns) for part in (*problem, u))
        rows = _Rows(pointers(given), pointers((out, objective, h, looks)))
        with_what = ctypes.byref(self.surface), ctypes.byref(self.layout.packed), ctypes.byref(rows)
        from_one_queue(n, lambda queue: self.library.polish_rows(*with_what, queue), _ALONE)
        return Finished(*(torch.from_numpy(part) for part in (out, objective, h, looks)))


def _surface_tables(model: AutoEncoder, density: Tilt, metric: Table) -> tuple[Table, ...]:
    """The tables of along.h's Surface, in its order; ``metric`` is what a squared way counts along each column."""
    S = len(model.encoder.frequencies)
    more, more_density = -S % _LANES, -len(density.weights) % _LANES
    weights = np.pad(model.encoder.amplitude * model.encoder_weights.numpy().T, ((0, 0), (0, more)))
    small = (
        np.pad(model.encoder.phases.numpy(), (0, more)),
        model.theta.numpy(),
        model.theta0.reshape(1).numpy(),
        density.mean.numpy(),
        density.precision.numpy(),
        np.array([log_constant(density)]),
        metric,
    )
    in_both_precisions = (
        np.pad(model.encoder.frequencies.numpy().T, ((0, 0), (0, more))),
        weights,
        np.pad(density.fmap.frequencies.numpy().T, ((0, 0), (0, more_density))),
        np.pad(density.fmap.phases.numpy(), (0, more_density)),
        np.pad(density.fmap.amplitude * density.weights.numpy(), (0, more_density)),
    )
    exact = (aligned(np.asarray(table, dtype=np.float64)) for table in (*small, *in_both_precisions))
    rough = (aligned(np.asarray(table, dtype=np.float32)) for table in in_both_precisions)
    return *exact, *rough
