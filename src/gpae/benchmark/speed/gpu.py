"""The kernels on a GPU: rows a second, against plain torch, and how far from what the chip can do.

The figures need CUDA and Triton, and nothing of data sets or tables: a surface, and rows to search for.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from gpae.kernels.gpu import Run, Slots
from gpae.kernels.gpu_descent import Descent
from gpae.numerics.autoencoder import AutoEncoder
from gpae.search import newton
from gpae.search.problem import Problem, Surface, objective

__all__ = ["Ceilings", "figures"]

Found = TypeVar("Found")

UPDATES, STEP_DELTA, STEP_ETA = 60, 0.02, 0.05
_ON_BOUNDARY, _INSIDE = 1e-4, 1e-6
_JUDGED = 1 << 15
"""Of the rows that were timed, how many are compared with the processor's."""
_TURN = 1 << 15
_MILLION = 1e-6


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the chip does at most, measured: operations, sines and bytes a second."""

    half: float
    """Of products in half precision on the tensor cores."""
    tf32: float
    single: float
    """Of fused products of the ordinary units."""
    sines: float
    copy: float

    @classmethod
    def measured(cls) -> "Ceilings":
        """Large products, chains of fused products and of sines, and one large copy."""
        from gpae.kernels.triton_peak import fast_sines, fused_products

        n, rows, times = 8192, 1 << 22, 2000
        a, out = torch.randn(n, n, device="cuda"), torch.empty(rows, device="cuda")
        half, wide = a.half(), torch.randn(1 << 28, device="cuda")
        other, grid = torch.empty_like(wide), (rows // 256,)
        torch.backends.cuda.matmul.allow_tf32 = True
        return cls(
            half=2 * n**3 / _seconds(lambda: half @ half),
            tf32=2 * n**3 / _seconds(lambda: a @ a),
            single=2 * 8 * rows * times / _seconds(lambda: fused_products[grid](out, 0.5, times, ROWS=256)),
            sines=4 * rows * times / _seconds(lambda: fast_sines[grid](out, 0.5, times, ROWS=256)),
            copy=2 * wide.nbytes / _seconds(lambda: other.copy_(wide)),
        )


def figures(surface: Surface, problem: Problem, rows: int = 1 << 23, repeats: int = 4) -> list[dict[str, Any]]:
    """What was measured, one line a figure: of what, the figure, its unit, its ceiling and the share of that.

    ``problem``: some rows on the processor, which are repeated, a little moved, as often as it takes.
    """
    model = surface.model
    assert isinstance(model, AutoEncoder)
    ceilings = Ceilings.measured()
    return [
        *_descent(surface, model, _repeated(problem, 1 << 20), ceilings),
        *_search(surface, model, _repeated(problem, rows), ceilings, repeats),
    ]


def _line(what: str, figure: float, unit: str, ceiling: float = np.nan) -> dict[str, Any]:
    return {"what": what, "figure": figure, "unit": unit, "ceiling": ceiling, "share": figure / ceiling}


# the paper's updates


def _descent(surface: Surface, model: AutoEncoder, problem: Problem, top: Ceilings) -> Iterator[dict[str, Any]]:
    rows = tuple(part.float().cuda().contiguous() for part in problem.tensors())
    packed, n = Descent.of(model, surface.density), len(rows[0])
    steps = {"iterations": UPDATES, "step_delta": STEP_DELTA, "step_eta": STEP_ETA}
    taken = _seconds(lambda: packed.descend(rows, **steps))  # type: ignore[arg-type]
    some = tuple(part[: n // 8].contiguous() for part in rows)
    plain = _PlainDescent.of(surface, model)
    eager, compiled = (n / 8 / _seconds(lambda f=f: f(*some), 3) for f in (plain, torch.compile(plain)))  # type: ignore[misc]
    few = tuple(part[:4096].contiguous() for part in rows)
    torch.backends.cuda.matmul.allow_tf32 = False
    exact, mine = plain(*few), packed.descend(few, **steps)[0]  # type: ignore[arg-type]
    S, width = packed.tables["frequencies"].shape
    T = len(packed.tables["density_phases"])
    at_once = n * UPDATES / taken
    yield _line(f"{UPDATES} alternating updates", _MILLION * n / taken, "M rows/s")
    yield _line("  plain torch, eager", _MILLION * eager, "M rows/s")
    yield _line("  plain torch, torch.compile", _MILLION * compiled, "M rows/s")
    yield _line("  times torch.compile", n / taken / compiled, "x")
    yield _line("  error against float32, of the change", float((mine - exact).norm() / (exact - few[0]).norm()), "")
    products = 2 * (S * (3 * width + 2 * 16) + T * 2 * 16) * at_once
    yield _line("  products in half precision, as padded", 1e-12 * products, "TFLOP/s", 1e-12 * top.half)
    yield _line("  sines and cosines", 1e-12 * (2 * S + T) * at_once, "T/s", 1e-12 * top.sines)
    moved = 4 * (4 * model.encoder.frequencies.shape[1] + 4) * n / taken
    yield _line("  memory", 1e-12 * moved, "TB/s", 1e-12 * top.copy)


@dataclass(frozen=True, slots=True, eq=False)
class _PlainDescent:
    """The same updates, written plainly."""

    Z: Float[Tensor, "S D"]
    phases: Float[Tensor, " S"]
    W: Float[Tensor, "S d"]
    theta: Float[Tensor, " d"]
    theta0: Float[Tensor, ""]
    density: tuple[Tensor, ...]

    @classmethod
    def of(cls, surface: Surface, model: AutoEncoder) -> "_PlainDescent":
        tilt, weights = surface.density, model.encoder.amplitude * model.encoder_weights
        bent = tilt.fmap.amplitude * tilt.weights
        density = (tilt.fmap.frequencies, tilt.fmap.phases, bent, tilt.mean, tilt.precision)
        own = (model.encoder.frequencies, model.encoder.phases, weights, model.theta, model.theta0)
        Z, phases, W, theta, theta0 = (part.float().cuda() for part in own)
        return cls(Z, phases, W, theta, theta0, tuple(part.float().cuda() for part in density))

    def __call__(self, x: Tensor, lower: Tensor, upper: Tensor, beta: Tensor, sign: Tensor, margin: Tensor) -> Tensor:
        u, eta = x.clamp(lower, upper), torch.zeros_like(beta)
        z, c, w, mean, precision = self.density
        for _ in range(UPDATES):
            phase = u @ self.Z.T + self.phases
            latent = phase.cos() @ self.W
            h = sign * (latent @ self.theta + self.theta0) - margin
            pull = -(latent @ z.T + c).sin() * w
            score = pull @ z - (latent - mean) @ precision
            along = (eta * sign)[:, None] * self.theta - beta[:, None] * score
            gradient = u - x + (-phase.sin() * (along @ self.W.T)) @ self.Z
            u = (u - STEP_DELTA * gradient).clamp(lower, upper)
            eta = eta + STEP_ETA * h
        return u


# the search


def _search(
    surface: Surface, model: AutoEncoder, problem: Problem, top: Ceilings, repeats: int
) -> Iterator[dict[str, Any]]:
    slots = Slots.of(model, surface.density)
    assert slots is not None
    host = tuple(part.float().pin_memory() for part in problem.tensors())
    asked: dict[str, Any] = {"tolerance": 3e-4, "iterations": 30}
    slots.solve(tuple(part[: 1 << 16] for part in host), **asked)  # compiles
    n, across, streamed = len(host[0]), [], None
    for _ in range(repeats):
        streamed = None  # its pinned memory serves the next: to pin a gigabyte takes longer than to search
        seconds, streamed = _wall(lambda: slots.solve(host, **asked))
        across.append(n / seconds)
    here = tuple(part[: 1 << 22].cuda() for part in host)
    on_device = [len(here[0]) / _wall(lambda: slots.on_device(here, **asked))[0] for _ in range(repeats)]
    walked = slots.on_device(here, **asked)
    yield _line(f"Newton search, {n:,} rows, from the host's memory and back", _MILLION * np.median(across), "M rows/s")
    yield _line("  the slowest of the repeats", _MILLION * min(across), "M rows/s")
    yield _line("  on the device", _MILLION * np.median(on_device), "M rows/s")
    yield _line("  iterations of a row", float(walked.iterations.double().mean()), "")
    yield from _linearise(slots, here, top)
    some = torch.arange(_JUDGED)
    assert streamed is not None
    yield from _beside_the_processor(surface, problem.rows(some), streamed.u[some].double())


def _linearise(slots: Slots, rows: tuple[Tensor, ...], top: Ceilings) -> Iterator[dict[str, Any]]:
    """One of the two kernels of a turn, alone: where the products, sines and cosines are."""
    run, S = Run.of(slots, rows, None, (3e-4, 0.0, 30), _TURN), len(slots.tables["phases"])
    for _ in range(4):
        run.turn()
    taken, turn = _seconds(run.linearise, 20), _seconds(run.turn, 20)
    products = 2 * S * (slots.width * (slots.latents + 1) + 16) * _TURN / taken
    yield _line(f"  a turn of {_TURN:,} slots", 1e3 * turn, "ms")
    yield _line("  linearise, of that turn", 1e3 * taken, "ms", 1e3 * turn)
    yield _line("  linearise: points", _MILLION * _TURN / taken, "M/s")
    yield _line("  linearise: products of tf32, three for one", 3e-12 * products, "TFLOP/s", 1e-12 * top.tf32)
    # a sine with its cosine takes some thirty operations of the ordinary units
    ordinary = 30e-12 * S * _TURN / taken
    yield _line("  linearise: sines with cosines, at 30 operations", ordinary, "TFLOP/s", 1e-12 * top.single)
    moved = 4 * slots.columns * (slots.latents + 1) * _TURN / taken
    yield _line("  linearise: memory", 1e-12 * moved, "TB/s", 1e-12 * top.copy)


def _beside_the_processor(surface: Surface, problem: Problem, streamed: Tensor) -> Iterator[dict[str, Any]]:
    """What came back from the device, as it was timed, beside the processor's: the same rows valid, as near.

    Both are judged on the processor in double precision: valid is who stands on the boundary and inside the bounds.
    """
    answers = (streamed, newton.solve(replace(surface, device="cpu"), problem).u)
    valid = [_stands(surface, problem, u) for u in answers]
    far = [float((u - problem.x).norm(dim=1).mean()) for u in answers]
    yield _line("valid on the GPU", float(valid[0].double().mean()), "of the rows")
    yield _line("valid as on the processor", float((valid[0] == valid[1]).double().mean()), "of the rows")
    yield _line("mean L2 on the GPU", far[0], "")
    yield _line("mean L2 on the processor", far[1], "")
    apart = (answers[0] - answers[1]).abs().amax(1)
    yield _line("answers apart, median", float(apart.median()), "")
    yield _line("answers apart by more than 1e-3", float((apart > 1e-3).double().mean()), "of the rows")


def _stands(surface: Surface, problem: Problem, u: Tensor) -> Tensor:
    """Who stands on the boundary plus margin, to what single precision can tell of either."""
    _, h = objective(surface, problem, u)
    inside = (u >= problem.lower - _INSIDE) & (u <= problem.upper + _INSIDE)
    return (h.abs() < _ON_BOUNDARY) & inside.all(1)


def _repeated(problem: Problem, n: int) -> Problem:
    """N rows like some others: each a little beside the one it comes from, and inside its bounds."""
    generator = torch.Generator().manual_seed(0)
    part = problem.rows(torch.randint(len(problem.x), (n,), generator=generator))
    moved = part.x + 0.02 * torch.randn(part.x.shape, generator=generator, dtype=part.x.dtype)
    return replace(part, x=moved.clamp(part.lower, part.upper))


def _seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """The median of some runs, by the device's own clock."""
    work()
    torch.cuda.synchronize()
    taken = []
    for _ in range(repeats):
        begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begun.record()
        work()
        ended.record()
        torch.cuda.synchronize()
        taken.append(1e-3 * begun.elapsed_time(ended))
    return float(np.median(taken))


def _wall(work: Callable[[], Found]) -> tuple[float, Found]:
    """Seconds of one run, from the host's side, and what it found."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    found = work()
    torch.cuda.synchronize()
    return time.perf_counter() - started, found
