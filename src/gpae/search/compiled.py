"""The compiled search and polish of a surface, where there are any.

Single precision goes the way, double precision arrives: the last steps start so near that one or two are enough.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeGuard

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gpae.kernels.finisher import Finisher
from gpae.kernels.gpu import Slots
from gpae.kernels.lanes import Lanes, Walked
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt
from gpae.search.problem import ASTRAY, Problem, Solution, Surface
from gpae.table.layout import Layout

__all__ = ["COARSE", "Walker", "finisher", "walker"]

COARSE = 1e-3
"""The residual at which single precision has done its part; where no less is asked for, that is enough."""
_OFF = 0.9 * ASTRAY
"""Share of the margin by which such a row may miss the boundary: short of what counts as stalled, in any precision."""
_LATENT, _ARRIVING, _FEW, _FULL = 20, 8, 6, 24
"""Latent steps in single precision at most, from there on in double, or few of them; and full ones for those whom these
do not bring home."""


@dataclass(frozen=True, slots=True, eq=False)
class Walker:
    """The compiled search in both precisions."""

    single: Lanes | Slots
    double: Lanes

    def descend(self, problem: Problem, start: Float[Tensor, "B D"] | None, tolerance: float) -> Solution:
        """From ``start`` (None: from the boundary, met head-on) by latent steps, and full ones where these fail."""
        if tolerance >= COARSE:
            return self._roughly(problem, start, _LATENT)
        near = self.single.solve(problem.tensors(), start, tolerance=COARSE, iterations=_LATENT)
        begin = _widened(near, problem).u
        at = self.double.solve(problem.tensors(), begin, tolerance=tolerance, iterations=_ARRIVING)
        return self._with_full_steps(problem, at, near.iterations, tolerance)

    def descend_warily(self, problem: Problem, start: Float[Tensor, "B D"] | None, tolerance: float) -> Solution:
        """The same with few latent steps, which may lead a row whom they do not bring home into a corner."""
        if tolerance >= COARSE:
            return self._roughly(problem, start, _FEW)
        at = self.double.solve(problem.tensors(), start, tolerance=tolerance, iterations=_FEW)
        return self._with_full_steps(problem, at, torch.zeros_like(at.iterations), tolerance)

    def _roughly(self, problem: Problem, start: Float[Tensor, "B D"] | None, steps: int) -> Solution:
        """What will be rounded: single precision does, and no last digits are asked for."""
        near = self.single.solve(problem.tensors(), start, tolerance=COARSE, iterations=steps, off=_OFF)
        return _widened(near, problem)

    def _with_full_steps(self, problem: Problem, at: Walked, before: Int[Tensor, " B"], tolerance: float) -> Solution:
        solution = _solution(at, before)
        late = (~at.converged).nonzero().squeeze(1)
        if len(late):
            part = problem.rows(late).tensors()
            last = self.double.solve(part, at.u[late], tolerance=tolerance, iterations=_FULL, full=True)
            solution = solution.replaced(late, _solution(last, solution.iterations[late]))
        return solution


def _widened(near: Walked, problem: Problem) -> Solution:
    """In double precision; where it is not in that already, a bound may differ from what it is in single precision."""
    u = near.u if near.u.dtype == torch.float64 else near.u.double().clamp(problem.lower, problem.upper)
    return Solution(u, near.objective.double(), near.h.abs().double(), near.kkt.double(), near.iterations)


def _solution(walked: Walked, before: Int[Tensor, " B"]) -> Solution:
    return Solution(walked.u, walked.objective, walked.h.abs(), walked.kkt, before + walked.iterations)


def walker(surface: Surface, held: Bool[Tensor, " D"] | None = None) -> Walker | None:
    """The compiled search on a surface, where no row moves the held columns; None where there is none for it.

    The one for a GPU knows no units.
    """
    model, units = surface.model, surface.units
    if not _is_plain(model) or (units is not None and surface.device == "cuda"):
        return None
    which = None if held is None else tuple(held.tolist())
    return _walker(model, surface.density, surface.device, which, units)


def finisher(surface: Surface, layout: Layout) -> Finisher | None:
    """The compiled polish on a surface; None where there is none for it."""
    model = surface.model
    return _finisher(model, surface.density, layout, surface.units) if _is_plain(model) else None


def _is_plain(model: Any) -> TypeGuard[AutoEncoder]:
    """A GPAE in double precision on the processor; other encoders and devices go their own way."""
    return isinstance(model, AutoEncoder) and model.theta.dtype == torch.float64 and not model.theta.is_cuda


# to pack a surface takes as long as to search for a row or two, and it is asked for at every step of a search


@lru_cache(maxsize=16)
def _walker(
    model: AutoEncoder,
    density: Tilt,
    device: str,
    which: tuple[bool, ...] | None,
    units: Float[Tensor, " D"] | None,
) -> Walker | None:
    held = None if which is None else torch.tensor(which)
    double = Lanes.of(model, density, "double", held, units)
    on_gpu = Slots.of(model, density, device) if device == "cuda" else None
    single = on_gpu or Lanes.of(model, density, "single", held, units)
    return None if single is None or double is None else Walker(single, double)


@lru_cache(maxsize=8)
def _finisher(model: AutoEncoder, density: Tilt, layout: Layout, units: Float[Tensor, " D"] | None) -> Finisher | None:
    return Finisher.of(model, density, layout, units)
