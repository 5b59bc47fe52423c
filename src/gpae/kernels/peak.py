"""What one core of this machine can do at most, measured (peak.c)."""

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass

from gpae.kernels.compiled import library
from gpae.kernels.packing import MACROS

__all__ = ["Peak", "peak_of_a_core"]

_CHAINS, _LANES = 12, 16
_TIMES = 2_000_000
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Peak:
    """In single precision, a second."""

    products: float
    """Fused products: a multiplication and an addition each."""
    angles: float
    """Angles whose sine and cosine are taken."""


def peak_of_a_core() -> Peak | None:
    """The best of some runs; None where nothing is compiled."""
    compiled = library("peak.c", **MACROS["single"])
    if compiled is None:
        return None
    rates = []
    for name, times in (("fused_products", _TIMES), ("sines_and_cosines", _TIMES // 20)):
        function = getattr(compiled, name)
        function.restype = ctypes.c_double
        rates.append(_rate(function, times))
    return Peak(*rates)


def _rate(function: Callable[..., float], times: int) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.perf_counter()
        function(ctypes.c_int64(times), ctypes.c_double(0.5))
        best = min(best, time.perf_counter() - started)
    return _CHAINS * _LANES * times / best
