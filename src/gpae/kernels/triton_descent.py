"""The paper's alternating updates on a GPU: all iterations of a tile of rows in one launch, the rows on the chip.

    delta <- clip(delta - step_delta * dL/d delta)        eta <- eta + step_eta * h

Each iteration goes through the features twice, tile by tile: once for the latent (product with Z, cosine, product with
W_e), once back (sine, the latent's pull through W_e, product with Z). The phases are computed both times: that is
cheaper than to keep a table of rows x features, and no such table is ever written.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

__all__ = ["descend"]


@triton.jit
def _reduced(phase):
    """In [-pi, pi], where the fast sine and cosine are good to 2^-21."""
    turns = tl.floor(phase * 0.15915494309189535 + 0.5)
    return (phase - turns * 6.28125) - turns * 1.9353071795864769e-3


@triton.jit
def descend(
    x, lower, upper, u, numbers, frequencies, phases, weights, theta, theta0, n,
    density_frequencies, density_phases, density_weights, mean, precision,
    step_delta, step_eta, iterations,
    D: tl.constexpr, WIDTH: tl.constexpr, S: tl.constexpr, T: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """``iterations`` updates of ROWS rows, row-major [n, D]; ``numbers``: beta, sign, margin and, at the end, eta.

    The tables of the maps are in half precision and padded: frequencies S x WIDTH, weights S x 16, the density's
    frequencies T x 16 and theta, mean (16) and precision (16 x 16), with zeros.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column, which = tl.arange(0, WIDTH), tl.arange(0, 16)
    at = row[:, None] * D + column[None, :]
    there = (row[:, None] < n) & (column[None, :] < D)
    own = tl.load(x + at, mask=there, other=0.0)
    low, high = tl.load(lower + at, mask=there, other=0.0), tl.load(upper + at, mask=there, other=0.0)
    inside = row < n
    beta = tl.load(numbers + row, mask=inside, other=0.0)
    sign = tl.load(numbers + n + row, mask=inside, other=1.0)
    margin = tl.load(numbers + 2 * n + row, mask=inside, other=0.0)
    direction, bias = tl.load(theta + which), tl.load(theta0)
    centre = tl.load(mean + which)
    tight = tl.load(precision + which[:, None] * 16 + which[None, :])
    here = tl.minimum(tl.maximum(own, low), high)
    eta = beta * 0.0
    for _ in range(iterations):
        half = here.to(tl.float16)
        latent = tl.zeros((ROWS, 16), tl.float32)
        for first in range(0, S, TILE):
            feature = first + tl.arange(0, TILE)
            z = tl.load(frequencies + feature[:, None] * WIDTH + column[None, :])
            phase = _reduced(tl.dot(half, tl.trans(z)) + tl.load(phases + feature)[None, :])
            w = tl.load(weights + feature[:, None] * 16 + which[None, :])
            latent = tl.dot(libdevice.fast_cosf(phase).to(tl.float16), w, latent)
        h = sign * (tl.sum(latent * direction[None, :], 1) + bias) - margin
        score = tl.dot(centre[None, :] - latent, tight, input_precision="tf32")
        for first in range(0, T, TILE):
            feature = first + tl.arange(0, TILE)
            z = tl.load(density_frequencies + feature[:, None] * 16 + which[None, :])
            phase = _reduced(tl.dot(latent.to(tl.float16), tl.trans(z)) + tl.load(density_phases + feature)[None, :])
            pull = -libdevice.fast_sinf(phase) * tl.load(density_weights + feature)[None, :]
            score = tl.dot(pull.to(tl.float16), z, score)
        along = (eta * sign)[:, None] * direction[None, :] - beta[:, None] * score
        gradient = here - own
        for first in range(0, S, TILE):
            feature = first + tl.arange(0, TILE)
            z = tl.load(frequencies + feature[:, None] * WIDTH + column[None, :])
            phase = _reduced(tl.dot(half, tl.trans(z)) + tl.load(phases + feature)[None, :])
            w = tl.load(weights + feature[:, None] * 16 + which[None, :])
            slope = -libdevice.fast_sinf(phase) * tl.dot(along.to(tl.float16), tl.trans(w))
            gradient = tl.dot(slope.to(tl.float16), z, gradient)
        here = tl.minimum(tl.maximum(here - step_delta * gradient, low), high)
        eta += step_eta * h
    tl.store(u + at, here, mask=there)
    tl.store(numbers + 3 * n + row, eta, mask=inside)
