"""A point of the search in Triton: ``linearise`` on the tensor cores, and what the point is worth, a thread a row."""

import triton
import triton.language as tl

from gpae.kernels.triton_algebra import dot, get, plus_entry, with_entry, zeros

__all__ = ["density", "first_order", "gradients", "linearise"]

_AT_BOUND: tl.constexpr = tl.constexpr(1e-6)


@triton.jit
def sine_cosine(a):
    """After Cody and Waite, with the polynomials of Cephes: vectors.h's, in single precision."""
    shifted = a * 0.636619772367581343 + 12582912.0
    q = shifted - 12582912.0
    r = a - q * 1.5703125
    r -= q * 4.837512969970703125e-4
    r -= q * 7.549789948768648e-8
    z = r * r
    s = r + r * z * (-1.6666654611e-1 + z * (8.3321608736e-3 + z * -1.9515295891e-4))
    c = 1.0 - 0.5 * z + z * z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 + z * 2.443315711809948e-5))
    quadrant = shifted.to(tl.int32, bitcast=True)
    odd = (quadrant & 1) != 0
    sine, cosine = tl.where(odd, c, s), tl.where(odd, s, c)
    sine = tl.where((quadrant & 2) != 0, -sine, sine)
    return sine, tl.where(((quadrant + 1) & 2) != 0, -cosine, cosine)


@triton.jit
def linearise(
    u, latent, jacobian, frequencies, phases, weights, n,
    D: tl.constexpr, WIDTH: tl.constexpr, LATENT: tl.constexpr, S: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """latent = W_e' phi(u) and J, for ROWS slots; ``weights``: S x 16, the amplitude in them, zeros from LATENT on."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, WIDTH)
    here = tl.load(u + column[None, :] * n + row[:, None], mask=column[None, :] < D, other=0.0)
    latents = tl.zeros((ROWS, 16), tl.float32)
    J = (tl.zeros((ROWS, WIDTH), tl.float32),)
    for _ in tl.static_range(1, LATENT):
        J = J + (tl.zeros((ROWS, WIDTH), tl.float32),)
    for first in range(0, S, TILE):
        feature = first + tl.arange(0, TILE)
        z = tl.load(frequencies + feature[:, None] * WIDTH + column[None, :])
        phase = tl.dot(here, tl.trans(z), input_precision=PRECISION) + tl.load(phases + feature)[None, :]
        sine, cosine = sine_cosine(phase)
        w = tl.load(weights + feature[:, None] * 16 + tl.arange(0, 16)[None, :])
        latents = tl.dot(cosine, w, latents, input_precision=PRECISION)
        sums = (tl.dot(sine * -tl.load(weights + feature * 16)[None, :], z, J[0], input_precision=PRECISION),)
        for k in tl.static_range(1, LATENT):
            slope = sine * -tl.load(weights + feature * 16 + k)[None, :]
            sums = sums + (tl.dot(slope, z, J[k], input_precision=PRECISION),)
        J = sums
    which = tl.arange(0, 16)
    tl.store(latent + which[None, :] * n + row[:, None], latents, mask=which[None, :] < LATENT)
    for k in tl.static_range(LATENT):
        tl.store(jacobian + (k * D + column[None, :]) * n + row[:, None], J[k], mask=column[None, :] < D)


@triton.jit
def density(latent, frequencies, phases, weights, mean, precision, constant, T, D: tl.constexpr):
    """log p, its slope and its curvature (a triangle) at the latents."""
    P: tl.constexpr = D * (D + 1) // 2
    value = latent[0] * 0.0 + tl.load(constant)
    score, curvature = zeros(value, D), zeros(value, P)
    for k in tl.static_range(D):
        pull = value * 0.0
        for l in tl.static_range(D):
            pull += tl.load(precision + k * D + l) * (latent[l] - tl.load(mean + l))
        for l in tl.static_range(k, D):
            curvature = plus_entry(curvature, k, l, D, -tl.load(precision + k * D + l))
        score = with_entry(score, k, -pull)
        value -= 0.5 * pull * (latent[k] - tl.load(mean + k))
    for t in range(T):
        phase = value * 0.0 + tl.load(phases + t)
        for k in tl.static_range(D):
            phase += tl.load(frequencies + t * D + k) * latent[k]
        sine, cosine = sine_cosine(phase)
        w = tl.load(weights + t)
        sine, cosine = sine * w, cosine * w
        value += cosine
        for k in tl.static_range(D):
            z = tl.load(frequencies + t * D + k)
            score = with_entry(score, k, score[k] - z * sine)
            for l in tl.static_range(k, D):
                curvature = plus_entry(curvature, k, l, D, -z * tl.load(frequencies + t * D + l) * cosine)
    return value, score, curvature


@triton.jit
def gradients(u, x, jacobian, grad_f, grad_h, score, theta, beta, sign, n, COLUMNS: tl.constexpr):
    """Gradients of the objective and of h, column by column."""
    D: tl.constexpr = len(score)
    for j in range(COLUMNS):
        J = get(jacobian + j * n, COLUMNS * n, D)
        tl.store(grad_f + j * n, tl.load(u + j * n) - tl.load(x + j * n) - beta * dot(score, J))
        tl.store(grad_h + j * n, sign * dot(theta, J))


@triton.jit
def first_order(u, x, lower, upper, grad_f, grad_h, n, COLUMNS: tl.constexpr, zero):
    """The scaled residual and its multiplier: problem.kkt_residual."""
    eta = zero
    for round_ in tl.static_range(4):
        above, below = zero, zero
        for j in range(COLUMNS):
            at, low, high = tl.load(u + j * n), tl.load(lower + j * n), tl.load(upper + j * n)
            f, h = tl.load(grad_f + j * n), tl.load(grad_h + j * n)
            free = high > low
            if round_ > 0:
                gradient = f + eta * h
                free = free & ~((at <= low + _AT_BOUND) & (gradient > 0))
                free = free & ~((at >= high - _AT_BOUND) & (gradient < 0))
            above += tl.where(free, f * h, 0.0)
            below += tl.where(free, h * h, 0.0)
        eta = tl.where(below > 0, -above / tl.maximum(below, 1e-30), eta)
    worst, way, steep = zero, zero, zero
    for j in range(COLUMNS):
        at, f, h = tl.load(u + j * n), tl.load(grad_f + j * n), tl.load(grad_h + j * n)
        low, high = tl.load(lower + j * n), tl.load(upper + j * n)
        to = tl.minimum(tl.maximum(at - (f + eta * h), low), high)
        worst = tl.maximum(worst, tl.abs(at - to))
        by = at - tl.load(x + j * n)
        way += tl.where(high > low, by * by, 0.0)
        steep += tl.where(high > low, h * h, 0.0)
    scale = tl.maximum(tl.maximum(tl.sqrt(way), tl.abs(eta) * tl.sqrt(steep)), 1.0)
    return worst / scale, eta
