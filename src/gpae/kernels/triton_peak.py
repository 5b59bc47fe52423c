"""What a GPU's units can do at most, on numbers that stay in registers: fused products, and fast sines."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

__all__ = ["fast_sines", "fused_products"]


@triton.jit
def fused_products(out, by, times, ROWS: tl.constexpr):
    """Eight chains of ``times`` fused products on each of ROWS numbers."""
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    a = at.to(tl.float32)
    b, c, d, e, f, g, h = a + 1, a + 2, a + 3, a + 4, a + 5, a + 6, a + 7
    for _ in range(times):
        a, b, c, d = a * by + by, b * by + by, c * by + by, d * by + by
        e, f, g, h = e * by + by, f * by + by, g * by + by, h * by + by
    tl.store(out + at, a + b + c + d + e + f + g + h)


@triton.jit
def fast_sines(out, by, times, ROWS: tl.constexpr):
    """Four chains of ``times`` fast sines on each of ROWS numbers."""
    at = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    a = at.to(tl.float32) * by
    b, c, d = a + 1, a + 2, a + 3
    for _ in range(times):
        a, b, c, d = libdevice.fast_sinf(a), libdevice.fast_sinf(b), libdevice.fast_sinf(c), libdevice.fast_sinf(d)
    tl.store(out + at, a + b + c + d)
