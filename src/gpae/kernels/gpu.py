"""The search on a GPU: rows streamed through slots, two kernels in turn, recorded once and replayed.

Single precision in and out. ``numbers`` of a slot: beta, sign, margin, objective, h, kkt, eta, damping, penalty, bend,
the last step as in step.h, then score and curvature. ``counts``: stage, steps in it, iterations, row, home.
"""

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.kernels.lanes import Walked, log_constant
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt

__all__ = ["Run", "Slots"]

_TURNS = 8
"""Of both kernels in one recording."""
_SLOTS = 1 << 15
"""Few enough for the slots' memory to stay in the second-level cache, enough to fill the chip."""
_CHUNK = 1 << 21
"""Rows on the device at a time."""
_LEAST_WIDTH, _LATENTS = 16, 16
_ROWS = 128
"""Slots of one program of ``linearise``."""
_IDLE, _FRESH = 3, 4
"""Stages, as triton_newton has them."""
_DENSE = 64
"""Features are padded to a multiple of this."""


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """A surface packed for the kernels."""

    columns: int
    latents: int
    width: int
    tables: dict[str, Tensor]
    precision: str = "tf32x3"

    @classmethod
    def of(cls, model: AutoEncoder, density: Tilt, device: str = "cuda", precision: str = "tf32x3") -> "Slots | None":
        """Pack a surface for a device; None without it or Triton, or for more latents than are padded to."""
        there = device != "cuda" or torch.cuda.is_available()
        if not there or find_spec("triton") is None or len(model.theta) > _LATENTS:
            return None
        S, D = model.encoder.frequencies.shape
        d = len(model.theta)
        width = max(_LEAST_WIDTH, 1 << (D - 1).bit_length())
        padded = S + -S % _DENSE
        frequencies, weights, phases = torch.zeros(padded, width), torch.zeros(padded, _LATENTS), torch.zeros(padded)
        frequencies[:S, :D], phases[:S] = model.encoder.frequencies.float(), model.encoder.phases.float()
        weights[:S, :d] = (model.encoder.amplitude * model.encoder_weights).float()
        parts = {
            "frequencies": frequencies,
            "phases": phases,
            "weights": weights,
            "theta": model.theta,
            "theta0": model.theta0.reshape(1),
            "precision": density.precision,
            "mean": density.mean,
            "constant": torch.tensor([log_constant(density)]),
            "density_frequencies": density.fmap.frequencies,
            "density_phases": density.fmap.phases,
            "density_weights": density.fmap.amplitude * density.weights,
        }
        return cls(D, d, width, {k: v.float().contiguous().to(device) for k, v in parts.items()}, precision)

    def solve(
        self,
        problem: tuple[Tensor, ...],
        start: Float[Tensor, "B D"] | None = None,
        *,
        tolerance: float,
        iterations: int,
        off: float = 0.0,
        slots: int = _SLOTS,
    ) -> Walked:
        """As :meth:`gpae.kernels.lanes.Lanes.solve`: rows from the host's memory (best pinned) and back to it.

        Some at a time: while they are searched for, the next are copied in and the last ones out.
        """
        total, device = len(problem[0]), self.tables["theta"].device
        given = problem if start is None else (*problem, start)
        found = _room(total, self.columns, pinned=device.type == "cuda")
        searched = partial(self.on_device, tolerance=tolerance, iterations=iterations, off=off, slots=slots)
        if device.type != "cuda":
            _copy(found, slice(0, total), searched(given))
            return found
        coming_in, going_out = torch.cuda.Stream(device), torch.cuda.Stream(device)
        main = torch.cuda.current_stream(device)

        def fetched(first: int) -> tuple[Tensor, ...]:
            with torch.cuda.stream(coming_in):
                return tuple(p[first : first + _CHUNK].to(device, torch.float32, non_blocking=True) for p in given)

        coming = fetched(0)
        for first in range(0, total, _CHUNK):
            main.wait_stream(coming_in)
            here = coming
            for part in here:
                part.record_stream(main)
            if first + _CHUNK < total:
                coming = fetched(first + _CHUNK)
            walked = searched(here)
            going_out.wait_stream(main)
            with torch.cuda.stream(going_out):
                _copy(found, slice(first, first + _CHUNK), walked)
            for part in walked:
                part.record_stream(going_out)
        going_out.synchronize()
        return found

    def on_device(
        self, given: tuple[Tensor, ...], *, tolerance: float, iterations: int, off: float = 0.0, slots: int = _SLOTS
    ) -> Walked:
        """The same for rows that lie on the device, and stay there; ``given``: the problem and perhaps a start."""
        run = Run.of(self, given[:6], given[6] if len(given) > 6 else None, (tolerance, off, iterations), slots)
        run.until_done()
        counts, numbers = run.out_counts, run.out_numbers
        return Walked(run.out_u.T, numbers[0], numbers[1], numbers[2], counts[0].long(), counts[1] > 0)


def _room(n: int, columns: int, *, pinned: bool) -> Walked:
    def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(*shape, dtype=dtype, pin_memory=pinned)

    u, numbers = empty(n, columns), empty(3, n)
    counts, home = empty(n, dtype=torch.int64), empty(n, dtype=torch.bool)
    return Walked(u, numbers[0], numbers[1], numbers[2], counts, home)


def _copy(into: Walked, rows: slice, walked: Walked) -> None:
    for place, part in zip(into, walked, strict=True):
        place[rows].copy_(part.contiguous(), non_blocking=True)


class _Memory(NamedTuple):
    """The slots' tables, one slot a column, in the order of ``advance``'s arguments."""

    x: Tensor
    lower: Tensor
    upper: Tensor
    u: Tensor
    trial: Tensor
    jacobian: Tensor
    trial_jacobian: Tensor
    trial_latent: Tensor
    grad_f: Tensor
    grad_h: Tensor
    scratch: Tensor
    numbers: Tensor
    counts: Tensor

    @classmethod
    def empty(cls, n: int, columns: int, latents: int, device: torch.device) -> "_Memory":
        rows = {
            "jacobian": latents * columns,
            "trial_jacobian": latents * columns,
            "trial_latent": _LATENTS,
            "numbers": 16 + latents + latents * (latents + 1) // 2,
            "counts": 5,
        }
        kinds = {"counts": torch.int32}
        return cls(
            *(
                torch.zeros(rows.get(name, columns), n, dtype=kinds.get(name, torch.float32), device=device)
                for name in cls._fields
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The slots' memory and the queue of one batch."""

    surface: Slots
    tables: _Memory
    queue: tuple[Tensor, ...]
    out_u: Tensor
    out_numbers: Tensor
    out_counts: Tensor
    progress: Tensor
    n: int
    total: int
    until: tuple[float, float, int]
    """Tolerance, how far off the boundary a row may end (a share of the margin), and iterations."""
    started: bool

    @classmethod
    def of(
        cls,
        surface: Slots,
        problem: tuple[Tensor, ...],
        start: Tensor | None,
        until: tuple[float, float, int],
        slots: int,
    ) -> "Run":
        """Seat the first rows; ``problem`` and ``start`` lie on the device."""
        x, lower, upper, beta, sign, margin = (part.float() for part in problem)
        total, (D, d) = len(x), (surface.columns, surface.latents)
        n = min(slots, total + -total % _ROWS)
        device = x.device
        by_column = [part.T.contiguous() for part in (x, lower, upper)]
        begin = by_column[0] if start is None else start.float().T.contiguous()
        tables, here = _Memory.empty(n, D, d, device), min(n, total)
        for place, rows in zip((tables.x, tables.lower, tables.upper), by_column, strict=True):
            place[:, :here] = rows[:, :here]
        tables.trial[:, :here] = torch.minimum(torch.maximum(begin, by_column[1]), by_column[2])[:, :here]
        per_row = torch.stack([beta, sign, margin])
        tables.numbers[:3, :here] = per_row[:, :here]
        tables.counts[0] = _IDLE
        tables.counts[0, :here] = _FRESH + (start is not None)
        tables.counts[3] = torch.arange(n, dtype=torch.int32, device=device)
        queue = (*by_column, begin, per_row)
        return cls(
            surface, tables, queue,
            torch.empty(D, total, device=device), torch.empty(3, total, device=device),
            torch.zeros(2, total, dtype=torch.int32, device=device),
            torch.tensor([here, 0], dtype=torch.int32, device=device),
            n, total, until, start is not None,
        )  # fmt: skip

    def until_done(self) -> None:
        """Turn after turn until every row has an answer."""
        self.turn()  # compiles, before anything is recorded
        recording = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recording, capture_error_mode="thread_local"):
            for _ in range(_TURNS):
                self.turn()
        while int(self.progress[1]) < self.total:
            recording.replay()

    def turn(self) -> None:
        """Both kernels once."""
        self.linearise()
        self.advance()

    def linearise(self) -> None:
        """Latents and Jacobians of the trial points."""
        from gpae.kernels.triton_point import linearise

        s, t, mine = self.surface, self.surface.tables, self.tables
        linearise[(self.n // _ROWS,)](
            mine.trial, mine.trial_latent, mine.trial_jacobian, t["frequencies"], t["phases"], t["weights"], self.n,
            D=s.columns, WIDTH=s.width, LATENT=s.latents, S=len(t["phases"]),
            ROWS=_ROWS, TILE=32, PRECISION=s.precision, num_warps=8, num_stages=1,
        )  # fmt: skip

    def advance(self) -> None:
        """Judge the trial points, and go on to the next."""
        from gpae.kernels.triton_newton import advance

        s, t = self.surface, self.surface.tables
        advance[(self.n // 32,)](
            *self.tables,
            t["theta"], t["theta0"], t["precision"], t["mean"], t["constant"],
            t["density_frequencies"], t["density_phases"], t["density_weights"], len(t["density_phases"]),
            *self.queue, self.out_u, self.out_numbers, self.out_counts, self.progress,
            self.n, self.total, *self.until,
            COLUMNS=s.columns, LATENT=s.latents, STARTED=self.started, ROWS=32, num_warps=1,
        )  # fmt: skip
