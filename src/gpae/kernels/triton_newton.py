"""The search of newton.c on a GPU: two Triton kernels that take turns, every row in a slot of its own.

``linearise`` is where the work is: the products with Z and W_e and the sines and cosines between them, tile by tile on
the tensor cores, without writing a B x S table. ``advance`` does everything else, a thread a row: it judges the trial
point, goes on to the next stage, takes a new row where one is done, and proposes the next point. Tables are stored by
column, [columns, slots], so that neighbouring threads read neighbouring numbers.

Small vectors and matrices over the latent dimension are tuples of blocks: the compiler unrolls them.
"""

import triton
import triton.language as tl

__all__ = ["IDLE", "advance", "linearise"]

MEET: tl.constexpr = tl.constexpr(0)
WALK: tl.constexpr = tl.constexpr(1)
RESTORE: tl.constexpr = tl.constexpr(2)
IDLE: tl.constexpr = tl.constexpr(3)
FRESH: tl.constexpr = tl.constexpr(4)
"""Added to the stage of a row whose start has not been looked at yet."""

_RESTORED: tl.constexpr = tl.constexpr(4e-6)
_EPSILON: tl.constexpr = tl.constexpr(1.2e-7)
_AT_BOUND: tl.constexpr = tl.constexpr(1e-6)
_TINY: tl.constexpr = tl.constexpr(1e-12)
_MEETING: tl.constexpr = tl.constexpr(6)
_RESTORING: tl.constexpr = tl.constexpr(20)
_ROUNDS: tl.constexpr = tl.constexpr(12)


@triton.jit
def _sine_cosine(a):
    """After Cody and Waite, with the polynomials of Cephes: newton.c's, in single precision."""
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
        sine, cosine = _sine_cosine(phase)
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


# ---- tuples as vectors; a symmetric matrix is its upper triangle, row by row ----


@triton.jit
def _get(p, n, COUNT: tl.constexpr):
    out = (tl.load(p),)
    for k in tl.static_range(1, COUNT):
        out = out + (tl.load(p + k * n),)
    return out


@triton.jit
def _put(p, n, values, who):
    for k in tl.static_range(len(values)):
        tl.store(p + k * n, values[k], mask=who)


@triton.jit
def _dot(a, b):
    total = a[0] * b[0]
    for k in tl.static_range(1, len(a)):
        total += a[k] * b[k]
    return total


@triton.jit
def _zeros(like, COUNT: tl.constexpr):
    out = (like * 0.0,)
    for _ in tl.static_range(1, COUNT):
        out = out + (like * 0.0,)
    return out


@triton.jit
def _times(A, b):
    """A b, of a full matrix row by row."""
    D: tl.constexpr = len(b)
    out = (_row_times(A, b, 0),)
    for k in tl.static_range(1, D):
        out = out + (_row_times(A, b, k),)
    return out


@triton.jit
def _row_times(A, b, k: tl.constexpr):
    D: tl.constexpr = len(b)
    total = A[k * D] * b[0]
    for l in tl.static_range(1, D):
        total += A[k * D + l] * b[l]
    return total


@triton.jit
def _full(A, D: tl.constexpr):
    """The whole matrix of a triangle."""
    out = (A[0],)
    for e in tl.static_range(1, D * D):
        out = out + (_entry(A, e // D, e % D, D),)
    return out


@triton.jit
def _entry(A, k: tl.constexpr, l: tl.constexpr, D: tl.constexpr):
    first: tl.constexpr = k if k < l else l
    second: tl.constexpr = l if k < l else k
    return A[first * D - first * (first - 1) // 2 + second - first]


@triton.jit
def _plus(A, k: tl.constexpr, l: tl.constexpr, D: tl.constexpr, value):
    """The triangle with something added to entry k, l, where k <= l."""
    e: tl.constexpr = k * D - k * (k - 1) // 2 + l - k
    return _with(A, e, A[e] + value)


@triton.jit
def _with(A, at: tl.constexpr, value):
    """The tuple with one entry replaced."""
    out = (value if at == 0 else A[0],)
    for e in tl.static_range(1, len(A)):
        out = out + (value if at == e else A[e],)
    return out


@triton.jit
def _concave(curvature, D: tl.constexpr):
    """N >= 0: minus the curvature with its positive eigenvalues cut off, by Jacobi's rotations."""
    A = _full(curvature, D)
    V = (curvature[0] * 0.0 + 1.0,)
    B = (-A[0],)
    for e in tl.static_range(1, D * D):
        V = V + (curvature[0] * 0.0 + (1.0 if e // D == e % D else 0.0),)
        B = B + (-A[e],)
    for _ in range(6):
        for p in tl.static_range(D):
            for q in tl.static_range(p + 1, D):
                off = B[p * D + q]
                turn = off != 0.0
                ratio = (B[q * D + q] - B[p * D + p]) / (2.0 * tl.where(turn, off, 1.0))
                t = 1.0 / (tl.abs(ratio) + tl.sqrt(ratio * ratio + 1.0))
                t = tl.where(turn, tl.where(ratio < 0, -t, t), 0.0)
                c = 1.0 / tl.sqrt(t * t + 1.0)
                s = t * c
                for k in tl.static_range(D):
                    a, b = B[k * D + p], B[k * D + q]
                    B = _with(_with(B, k * D + p, c * a - s * b), k * D + q, s * a + c * b)
                    a, b = V[k * D + p], V[k * D + q]
                    V = _with(_with(V, k * D + p, c * a - s * b), k * D + q, s * a + c * b)
                for k in tl.static_range(D):
                    a, b = B[p * D + k], B[q * D + k]
                    B = _with(_with(B, p * D + k, c * a - s * b), q * D + k, s * a + c * b)
    out = (_recombined(B, V, 0, 0, D),)
    for e in tl.static_range(1, D * D):
        out = out + (_recombined(B, V, e // D, e % D, D),)
    return out


@triton.jit
def _recombined(B, V, k: tl.constexpr, l: tl.constexpr, D: tl.constexpr):
    total = V[k * D] * tl.maximum(B[0], 0.0) * V[l * D]
    for e in tl.static_range(1, D):
        total += V[k * D + e] * tl.maximum(B[e * D + e], 0.0) * V[l * D + e]
    return total


@triton.jit
def _solved(M, b, c):
    """M^-1 b and M^-1 c, with partial pivoting in each row's own system."""
    D: tl.constexpr = len(b)
    for k in tl.static_range(D):
        for l in tl.static_range(k + 1, D):
            larger = tl.abs(M[l * D + k]) > tl.abs(M[k * D + k])
            for j in tl.static_range(k, D):
                low, high = M[k * D + j], M[l * D + j]
                M = _with(_with(M, k * D + j, tl.where(larger, high, low)), l * D + j, tl.where(larger, low, high))
            low, high = b[k], b[l]
            b = _with(_with(b, k, tl.where(larger, high, low)), l, tl.where(larger, low, high))
            low, high = c[k], c[l]
            c = _with(_with(c, k, tl.where(larger, high, low)), l, tl.where(larger, low, high))
        for l in tl.static_range(k + 1, D):
            share = M[l * D + k] / M[k * D + k]
            for j in tl.static_range(k + 1, D):
                M = _with(M, l * D + j, M[l * D + j] - share * M[k * D + j])
            b = _with(b, l, b[l] - share * b[k])
            c = _with(c, l, c[l] - share * c[k])
    for k in tl.static_range(D - 1, -1, -1):
        for j in tl.static_range(k + 1, D):
            b = _with(b, k, b[k] - M[k * D + j] * b[j])
            c = _with(c, k, c[k] - M[k * D + j] * c[j])
        b = _with(b, k, b[k] / M[k * D + k])
        c = _with(c, k, c[k] / M[k * D + k])
    return b, c


# ---- what a point is worth ----


@triton.jit
def _density(latent, frequencies, phases, weights, mean, precision, constant, T, D: tl.constexpr):
    """log p, its slope and its curvature (a triangle) at the latents."""
    P: tl.constexpr = D * (D + 1) // 2
    value = latent[0] * 0.0 + tl.load(constant)
    score, curvature = _zeros(value, D), _zeros(value, P)
    for k in tl.static_range(D):
        pull = value * 0.0
        for l in tl.static_range(D):
            pull += tl.load(precision + k * D + l) * (latent[l] - tl.load(mean + l))
        for l in tl.static_range(k, D):
            curvature = _plus(curvature, k, l, D, -tl.load(precision + k * D + l))
        score = _with(score, k, -pull)
        value -= 0.5 * pull * (latent[k] - tl.load(mean + k))
    for t in range(T):
        phase = value * 0.0 + tl.load(phases + t)
        for k in tl.static_range(D):
            phase += tl.load(frequencies + t * D + k) * latent[k]
        sine, cosine = _sine_cosine(phase)
        w = tl.load(weights + t)
        sine, cosine = sine * w, cosine * w
        value += cosine
        for k in tl.static_range(D):
            z = tl.load(frequencies + t * D + k)
            score = _with(score, k, score[k] - z * sine)
            for l in tl.static_range(k, D):
                curvature = _plus(curvature, k, l, D, -z * tl.load(frequencies + t * D + l) * cosine)
    return value, score, curvature


@triton.jit
def _gradients(u, x, jacobian, grad_f, grad_h, score, theta, beta, sign, n, COLUMNS: tl.constexpr):
    """Gradients of the objective and of h, column by column."""
    D: tl.constexpr = len(score)
    for j in range(COLUMNS):
        J = _get(jacobian + j * n, COLUMNS * n, D)
        tl.store(grad_f + j * n, tl.load(u + j * n) - tl.load(x + j * n) - beta * _dot(score, J))
        tl.store(grad_h + j * n, sign * _dot(theta, J))


@triton.jit
def _first_order(u, x, lower, upper, grad_f, grad_h, n, COLUMNS: tl.constexpr, zero):
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


# ---- steps ----


@triton.jit
def _latent_step(
    u, x, lower, upper, jacobian, grad_h, wish, held, score, curvature, theta, precision,
    h, eta, beta, damping, walking, n, COLUMNS: tl.constexpr,
):  # fmt: skip
    """steps.latent_step for the slots that walk; the proposal goes to ``wish``. Returns eta, change and model h."""
    D: tl.constexpr = len(score)
    P: tl.constexpr = D * (D + 1) // 2
    zero = h * 0.0
    N = _concave(curvature, D)
    damped = (N[0] + 4.0 * tl.load(precision) * damping,)
    for e in tl.static_range(1, D * D):
        damped = damped + (N[e] + 4.0 * tl.load(precision + e) * damping,)
    shrink = 1.0 / (1.0 + damping)
    steep = zero
    for j in range(COLUMNS):
        low, high = tl.load(lower + j * n), tl.load(upper + j * n)
        movable, slope = high > low, tl.load(grad_h + j * n)
        steep += tl.where(movable, slope * slope, 0.0)
        tl.store(held + j * n, tl.where(movable, 0.0, 1.0))
        tl.store(wish + j * n, tl.minimum(tl.maximum(tl.load(x + j * n), low), high), mask=walking)
    cap = 4.0 * (tl.abs(eta) + tl.abs(h) / tl.maximum(steep, _TINY))
    settled = ~walking
    round_, moving = 0, 1
    while (round_ < _ROUNDS) & (moving > 0):
        K, offset = _zeros(zero, P), _zeros(zero, D)
        for j in range(COLUMNS):
            J = _get(jacobian + j * n, COLUMNS * n, D)
            at, stuck = tl.load(u + j * n), tl.load(held + j * n) > 0
            to = tl.where(stuck, tl.load(wish + j * n), (tl.load(x + j * n) + damping * at) * shrink) - at
            for k in tl.static_range(D):
                offset = _with(offset, k, offset[k] + J[k] * to)
                free = tl.where(stuck, 0.0, J[k])
                for l in tl.static_range(k, D):
                    K = _plus(K, k, l, D, free * J[l])
        whole = _full(K, D)
        a, b = offset, _zeros(zero, D)
        M = _zeros(zero, D * D)
        for k in tl.static_range(D):
            for l in tl.static_range(D):
                a = _with(a, k, a[k] + beta * shrink * whole[k * D + l] * score[l])
                b = _with(b, k, b[k] + shrink * whole[k * D + l] * theta[l])
                entry = zero + (1.0 if k == l else 0.0)
                for m in tl.static_range(D):
                    entry += beta * shrink * whole[k * D + m] * damped[m * D + l]
                M = _with(M, k * D + l, entry)
        a, b = _solved(M, a, b)
        multiplier = (h + _dot(theta, a)) / tl.maximum(_dot(theta, b), _TINY)
        multiplier = tl.minimum(tl.maximum(multiplier, -cap), cap)
        for k in tl.static_range(D):
            a = _with(a, k, a[k] - multiplier * b[k])
        bent = _times(damped, a)
        v = (beta * (score[0] - bent[0]) - multiplier * theta[0],)
        for k in tl.static_range(1, D):
            v = v + (beta * (score[k] - bent[k]) - multiplier * theta[k],)
        changed = zero
        for j in range(COLUMNS):
            J = _get(jacobian + j * n, COLUMNS * n, D)
            low, high, was = tl.load(lower + j * n), tl.load(upper + j * n), tl.load(held + j * n)
            to = (tl.load(x + j * n) + damping * tl.load(u + j * n) + _dot(J, v)) * shrink
            outside = tl.where((to > low) & (to < high), 0.0, 1.0)
            changed = tl.maximum(changed, tl.abs(outside - was))
            tl.store(wish + j * n, tl.minimum(tl.maximum(to, low), high), mask=~settled)
            tl.store(held + j * n, outside, mask=~settled)
        eta = tl.where(settled, eta, multiplier)
        settled = settled | (changed == 0)
        moving = tl.max((~settled).to(tl.int32), 0)
        round_ += 1
    a, distance, model_h = _zeros(zero, D), zero, h
    for j in range(COLUMNS):
        J = _get(jacobian + j * n, COLUMNS * n, D)
        at, own, to = tl.load(u + j * n), tl.load(x + j * n), tl.load(wish + j * n)
        distance += (to - at) * (to + at - 2.0 * own)
        model_h += tl.load(grad_h + j * n) * (to - at)
        for k in tl.static_range(D):
            a = _with(a, k, a[k] + J[k] * (to - at))
    bent = _times(N, a)
    change = 0.5 * distance
    for k in tl.static_range(D):
        change -= beta * (score[k] - 0.5 * bent[k]) * a[k]
    return eta, change, model_h


@triton.jit
def _newton_on_h(u, lower, upper, grad_h, to, way, h, who, n, COLUMNS: tl.constexpr):
    """restoration._newton_on_h for some of the slots: the shortest way onto the linearised boundary."""
    zero = h * 0.0
    remaining = h
    for j in range(COLUMNS):
        tl.store(to + j * n, tl.load(u + j * n), mask=who)
    for _ in tl.static_range(4):
        anyone = zero
        for j in range(COLUMNS):
            at, push = tl.load(to + j * n), tl.load(grad_h + j * n) * remaining
            inside = (at > tl.load(lower + j * n)) & (at < tl.load(upper + j * n)) & (push != 0)
            anyone = tl.where(inside, 1.0, anyone)
        length = zero
        for j in range(COLUMNS):
            at, slope = tl.load(to + j * n), tl.load(grad_h + j * n)
            push = slope * remaining
            above, below = at > tl.load(lower + j * n), at < tl.load(upper + j * n)
            inside = above & below & (push != 0)
            inward = ((push > 0) & above) | ((push < 0) & below)
            take = tl.where((anyone > 0) & inside | (anyone == 0) & inward, slope, 0.0)
            tl.store(way + j * n, take)
            length += take * take
        pace = remaining / tl.maximum(length, _TINY)
        remaining = h
        for j in range(COLUMNS):
            at = tl.load(to + j * n) - pace * tl.load(way + j * n)
            at = tl.minimum(tl.maximum(at, tl.load(lower + j * n)), tl.load(upper + j * n))
            tl.store(to + j * n, at, mask=who)
            remaining += tl.load(grad_h + j * n) * (at - tl.load(u + j * n))


@triton.jit
def advance(
    # by column, [columns, slots]: the slots' rows, points, slopes; then [numbers, slots] and [counts, slots]
    x, lower, upper, u, trial, jacobian, trial_jacobian, trial_latent, grad_f, grad_h, scratch, numbers, counts,
    # the surface
    theta_at, theta0, precision, mean, constant, density_frequencies, density_phases, density_weights, T,
    # the queue, [columns, rows], what is taken from it, and the answers
    rows_x, rows_lower, rows_upper, rows_start, rows_numbers, out_u, out_numbers, out_counts, progress,
    n, total, tolerance, iterations,
    COLUMNS: tl.constexpr, LATENT: tl.constexpr, STARTED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """One turn of every slot; ``numbers`` and ``counts`` are laid out as in :mod:`gpae.kernels.gpu`."""
    P: tl.constexpr = LATENT * (LATENT + 1) // 2
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    x, lower, upper, u, trial = x + i, lower + i, upper + i, u + i, trial + i
    jacobian, trial_jacobian, trial_latent = jacobian + i, trial_jacobian + i, trial_latent + i
    grad_f, grad_h, scratch, numbers, counts = grad_f + i, grad_h + i, scratch + i, numbers + i, counts + i
    stage, steps, taken, row = _get(counts, n, 4)
    fresh = stage >= FRESH
    stage = tl.where(fresh, stage - FRESH, stage)
    busy = stage != IDLE
    if tl.max(busy.to(tl.int32), 0) == 0:
        return
    beta, sign, margin, objective, h, kkt, eta, damping, penalty, step_eta, step_change, step_h = _get(numbers, n, 12)
    score, curvature = _get(numbers + 12 * n, n, LATENT), _get(numbers + (12 + LATENT) * n, n, P)
    theta = (sign * tl.load(theta_at),)
    for k in tl.static_range(1, LATENT):
        theta = theta + (sign * tl.load(theta_at + k),)

    # the trial point
    latent = _get(trial_latent, n, LATENT)
    log_p, new_score, new_curvature = _density(
        latent, density_frequencies, density_phases, density_weights, mean, precision, constant, T, LATENT
    )
    square = beta * 0.0
    for j in range(COLUMNS):
        by = tl.load(trial + j * n) - tl.load(x + j * n)
        square += by * by
    new_objective = 0.5 * square - beta * log_p
    new_h = _dot(theta, latent) + sign * tl.load(theta0) - margin
    zero = square * 0.0
    one = zero + 1.0
    plain_theta = (zero + tl.load(theta_at),)
    for k in tl.static_range(1, LATENT):
        plain_theta = plain_theta + (zero + tl.load(theta_at + k),)
    _gradients(trial, x, trial_jacobian, grad_f, grad_h, new_score, plain_theta, beta, sign, n, COLUMNS)
    new_kkt, new_eta = _first_order(trial, x, lower, upper, grad_f, grad_h, n, COLUMNS, zero)

    # is it taken? newton.c's judge
    walking = busy & ~fresh & (stage == WALK)
    seeking = busy & ~fresh & (stage != WALK)
    steepest = tl.maximum(tl.abs(step_eta), tl.abs(eta))
    penalty = tl.where(walking, tl.maximum(2.0 * steepest, 0.5 * penalty), penalty)
    fall = objective - new_objective + penalty * (tl.abs(h) - tl.abs(new_h))
    predicted = penalty * (tl.abs(h) - tl.abs(step_h)) - step_change
    ratio = fall / tl.maximum(predicted, 1e-16)
    nearer = (new_kkt < 0.5 * kkt) & (tl.abs(new_h) <= 0.5 * tl.abs(h) + _RESTORED)
    noise = 8.0 * _EPSILON * (tl.abs(objective) + penalty * tl.abs(h) + 1.0)
    nearer = nearer | ((predicted < noise) & (tl.abs(fall) < noise) & (new_kkt < kkt))
    trust = tl.where(nearer, one, tl.minimum(tl.maximum(ratio, 0.0), 1.0))
    swing = 2.0 * trust - 1.0
    lowered = damping * tl.minimum(tl.maximum(1.0 - swing * swing * swing, 0.25), 2.0)
    lowered = tl.where(lowered < 0.05, 0.0, lowered)
    good = (ratio > 1e-3) | nearer
    damping = tl.where(walking, tl.where(good, lowered, tl.maximum(4.0 * damping, 0.25)), damping)
    closer = seeking & (tl.abs(new_h) < tl.abs(h))
    take = busy & (fresh | (walking & good) | closer)
    for j in range(COLUMNS):
        tl.store(u + j * n, tl.load(trial + j * n), mask=take)
    for j in range(LATENT * COLUMNS):
        tl.store(jacobian + j * n, tl.load(trial_jacobian + j * n), mask=take)
    for k in tl.static_range(LATENT):
        score = _with(score, k, tl.where(take, new_score[k], score[k]))
    for k in tl.static_range(P):
        curvature = _with(curvature, k, tl.where(take, new_curvature[k], curvature[k]))
    objective, h = tl.where(take, new_objective, objective), tl.where(take, new_h, h)
    kkt, eta = tl.where(take, new_kkt, kkt), tl.where(take, new_eta, eta)
    went = (busy & ~fresh).to(tl.int32)
    steps, taken = steps + went, taken + went

    # on to the next stage; several may be passed at once
    stuck, miss = seeking & ~closer, tl.abs(h)
    met = (stage == MEET) & ((miss <= 1e-2) | stuck | (steps >= _MEETING))
    stage, steps = tl.where(met, WALK, stage), tl.where(met, 0, steps)
    there = (kkt <= tolerance) & (miss <= 1e-3 * margin)
    out = (stage == WALK) & (there | (steps >= iterations))
    stage, steps = tl.where(out, RESTORE, stage), tl.where(out, 0, steps)
    home = tl.load(counts + 4 * n)
    home = tl.where(out, there.to(tl.int32), home)
    tl.store(counts + 4 * n, home)
    over = (stage == RESTORE) & ((miss <= _RESTORED) | (stuck & ~out) | (steps >= _RESTORING)) & busy

    # who is done hands in the answer and takes the next row
    for j in range(COLUMNS):
        tl.store(out_u + j * total + row, tl.load(u + j * n), mask=over)
    tl.store(out_numbers + row, objective, mask=over)
    tl.store(out_numbers + total + row, h, mask=over)
    tl.store(out_numbers + 2 * total + row, kkt, mask=over)
    tl.store(out_counts + row, taken, mask=over)
    tl.store(out_counts + total + row, home, mask=over)
    tl.atomic_add(progress + 1 + tl.zeros_like(row), over.to(tl.int32), mask=over)
    after = tl.atomic_add(progress + tl.zeros_like(row), over.to(tl.int32), mask=over)
    new = over & (after < total)
    row = tl.where(new, after, row)
    for j in range(COLUMNS):
        at = j * total + row
        low, high = tl.load(rows_lower + at, mask=new), tl.load(rows_upper + at, mask=new)
        own = tl.load(rows_x + at, mask=new)
        start = tl.load(rows_start + at, mask=new) if STARTED else own
        tl.store(x + j * n, own, mask=new)
        tl.store(lower + j * n, low, mask=new)
        tl.store(upper + j * n, high, mask=new)
        tl.store(trial + j * n, tl.minimum(tl.maximum(start, low), high), mask=new)
    beta = tl.where(new, tl.load(rows_numbers + row, mask=new, other=0.0), beta)
    sign = tl.where(new, tl.load(rows_numbers + total + row, mask=new, other=0.0), sign)
    margin = tl.where(new, tl.load(rows_numbers + 2 * total + row, mask=new, other=0.0), margin)
    damping, penalty = tl.where(new, 0.0, damping), tl.where(new, 0.0, penalty)
    stage = tl.where(over, tl.where(new, (WALK if STARTED else MEET) + FRESH, IDLE), stage)
    steps, taken = tl.where(new, 0, steps), tl.where(new, 0, taken)

    # the next point, from where each of the others stands
    going = busy & ~over
    _gradients(u, x, jacobian, grad_f, grad_h, score, plain_theta, beta, sign, n, COLUMNS)
    walkers, seekers = going & (stage == WALK), going & (stage != WALK)
    if tl.max(walkers.to(tl.int32), 0) > 0:
        step_eta, step_change, step_h = _latent_step(
            u, x, lower, upper, jacobian, grad_h, trial, scratch, score, curvature, theta, precision,
            h, eta, beta, damping, walkers, n, COLUMNS,
        )  # fmt: skip
    if tl.max(seekers.to(tl.int32), 0) > 0:
        _newton_on_h(u, lower, upper, grad_h, trial, scratch, h, seekers, n, COLUMNS)

    _put(numbers, n, (beta, sign, margin, objective, h, kkt, eta, damping, penalty), busy)
    _put(numbers + 9 * n, n, (step_eta, step_change, step_h), busy)
    _put(numbers + 12 * n, n, score, busy)
    _put(numbers + (12 + LATENT) * n, n, curvature, busy)
    _put(counts, n, (stage, steps, taken, row), busy)
