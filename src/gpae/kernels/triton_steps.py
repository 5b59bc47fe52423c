"""Steps of the search in Triton, a thread a row."""

import triton
import triton.language as tl

from gpae.kernels.triton_algebra import concave_part, dot, full, get, plus_entry, solved, times, with_entry, zeros

__all__ = ["latent_step", "newton_on_h", "next_bend"]

_TINY: tl.constexpr = tl.constexpr(1e-12)
_ROUNDS: tl.constexpr = tl.constexpr(12)
_LEAST_BEND: tl.constexpr = tl.constexpr(-0.5)
_MOST_BEND: tl.constexpr = tl.constexpr(4.0)
_TELLING: tl.constexpr = tl.constexpr(1e-6)


@triton.jit
def _damped(N, precision, damping):
    """N + 4 mu Sigma^-1."""
    out = (N[0] + 4.0 * tl.load(precision) * damping,)
    for e in tl.static_range(1, len(N)):
        out = out + (N[e] + 4.0 * tl.load(precision + e) * damping,)
    return out


@triton.jit
def _scaled(a, by):
    out = (by * a[0],)
    for k in tl.static_range(1, len(a)):
        out = out + (by * a[k],)
    return out


@triton.jit
def _begun(x, lower, upper, grad_h, wish, held, walking, n, COLUMNS: tl.constexpr, zero):
    """Columns without room are held from the first round on, where they are; how steep h is along the others."""
    steep = zero
    for j in range(COLUMNS):
        low, high = tl.load(lower + j * n), tl.load(upper + j * n)
        movable, slope = high > low, tl.load(grad_h + j * n)
        steep += tl.where(movable, slope * slope, 0.0)
        tl.store(held + j * n, tl.where(movable, 0.0, 1.0))
        tl.store(wish + j * n, tl.minimum(tl.maximum(tl.load(x + j * n), low), high), mask=walking)
    return steep


@triton.jit
def _pulled(u, x, jacobian, wish, held, pull, shrink, n, COLUMNS: tl.constexpr, D: tl.constexpr, zero):
    """J J' over the columns that are free, as a triangle, and where the held and the anchored ones lead."""
    P: tl.constexpr = D * (D + 1) // 2
    K, offset = zeros(zero, P), zeros(zero, D)
    for j in range(COLUMNS):
        J = get(jacobian + j * n, COLUMNS * n, D)
        at, stuck = tl.load(u + j * n), tl.load(held + j * n) > 0
        to = tl.where(stuck, tl.load(wish + j * n), (tl.load(x + j * n) + pull * at) * shrink) - at
        for k in tl.static_range(D):
            offset = with_entry(offset, k, offset[k] + J[k] * to)
            free = tl.where(stuck, 0.0, J[k])
            for l in tl.static_range(k, D):
                K = plus_entry(K, k, l, D, free * J[l])
    return K, offset


@triton.jit
def _latent_way(K, offset, score, theta, damped, h, cap, beta, shrink, zero):
    """The multiplier, and v: the columns that are free move by J'v."""
    D: tl.constexpr = len(score)
    whole = full(K, D)
    a, b = offset, zeros(zero, D)
    M = zeros(zero, D * D)
    for k in tl.static_range(D):
        for l in tl.static_range(D):
            a = with_entry(a, k, a[k] + beta * shrink * whole[k * D + l] * score[l])
            b = with_entry(b, k, b[k] + shrink * whole[k * D + l] * theta[l])
            entry = zero + (1.0 if k == l else 0.0)
            for m in tl.static_range(D):
                entry += beta * shrink * whole[k * D + m] * damped[m * D + l]
            M = with_entry(M, k * D + l, entry)
    a, b = solved(M, a, b)
    multiplier = (h + dot(theta, a)) / tl.maximum(dot(theta, b), _TINY)
    multiplier = tl.minimum(tl.maximum(multiplier, -cap), cap)
    for k in tl.static_range(D):
        a = with_entry(a, k, a[k] - multiplier * b[k])
    bent = times(damped, a)
    v = (beta * (score[0] - bent[0]) - multiplier * theta[0],)
    for k in tl.static_range(1, D):
        v = v + (beta * (score[k] - bent[k]) - multiplier * theta[k],)
    return multiplier, v


@triton.jit
def _wished(u, x, lower, upper, jacobian, wish, held, v, pull, shrink, settled, n, COLUMNS: tl.constexpr, zero):
    """Where the columns would go, inside their bounds; who is held there next, and whether that is new."""
    D: tl.constexpr = len(v)
    changed = zero
    for j in range(COLUMNS):
        J = get(jacobian + j * n, COLUMNS * n, D)
        low, high, was = tl.load(lower + j * n), tl.load(upper + j * n), tl.load(held + j * n)
        to = (tl.load(x + j * n) + pull * tl.load(u + j * n) + dot(J, v)) * shrink
        outside = tl.where((to > low) & (to < high), 0.0, 1.0)
        changed = tl.maximum(changed, tl.abs(outside - was))
        tl.store(wish + j * n, tl.minimum(tl.maximum(to, low), high), mask=~settled)
        tl.store(held + j * n, outside, mask=~settled)
    return changed


@triton.jit
def _promised(u, x, jacobian, grad_f, grad_h, wish, score, N, h, beta, bend, n, COLUMNS: tl.constexpr, zero):
    """How the model's objective changes with the step, its h after it, and newton.c's square, uphill and curvature."""
    D: tl.constexpr = len(score)
    a, distance, model_h, square, uphill = zeros(zero, D), zero, h, zero, zero
    for j in range(COLUMNS):
        J = get(jacobian + j * n, COLUMNS * n, D)
        at, own, to = tl.load(u + j * n), tl.load(x + j * n), tl.load(wish + j * n)
        distance += (to - at) * (to + at - 2.0 * own)
        model_h += tl.load(grad_h + j * n) * (to - at)
        square += (to - at) * (to - at)
        uphill += tl.load(grad_f + j * n) * (to - at)
        for k in tl.static_range(D):
            a = with_entry(a, k, a[k] + J[k] * (to - at))
    bent = times(N, a)
    change, along = 0.5 * (distance + bend * square), square
    for k in tl.static_range(D):
        change -= beta * (score[k] - 0.5 * bent[k]) * a[k]
        along += beta * bent[k] * a[k]
    return change, model_h, square, uphill, along


@triton.jit
def latent_step(
    u, x, lower, upper, jacobian, grad_f, grad_h, wish, held, score, curvature, plain_theta, precision,
    h, eta, beta, sign, damping, bend, walking, n, COLUMNS: tl.constexpr,
):  # fmt: skip
    """steps.latent_step for the slots that walk; the proposal goes to ``wish``. Returns the fields of step.h's Step."""
    D: tl.constexpr = len(score)
    zero = h * 0.0
    theta, N = _scaled(plain_theta, sign), concave_part(curvature, D)
    pull = damping + bend
    damped, shrink = _damped(N, precision, damping), 1.0 / (1.0 + pull)
    steep = _begun(x, lower, upper, grad_h, wish, held, walking, n, COLUMNS, zero)
    cap = 4.0 * (tl.abs(eta) + tl.abs(h) / tl.maximum(steep, _TINY))
    settled = ~walking
    round_, moving = 0, 1
    while (round_ < _ROUNDS) & (moving > 0):
        K, offset = _pulled(u, x, jacobian, wish, held, pull, shrink, n, COLUMNS, D, zero)
        multiplier, v = _latent_way(K, offset, score, theta, damped, h, cap, beta, shrink, zero)
        changed = _wished(u, x, lower, upper, jacobian, wish, held, v, pull, shrink, settled, n, COLUMNS, zero)
        eta = tl.where(settled, eta, multiplier)
        settled = settled | (changed == 0)
        moving = tl.max((~settled).to(tl.int32), 0)
        round_ += 1
    change, model_h, square, uphill, along = _promised(
        u, x, jacobian, grad_f, grad_h, wish, score, N, h, beta, bend, n, COLUMNS, zero
    )
    return eta, change, model_h, square, uphill, along


@triton.jit
def next_bend(trial, u, grad_f, grad_h, eta, step_h, h, square, uphill, curvature, bend, n, COLUMNS: tl.constexpr):
    """steps.next_bend: gradients and eta are those of the trial points."""
    slope = h * 0.0
    for j in range(COLUMNS):
        by = tl.load(trial + j * n) - tl.load(u + j * n)
        slope += by * (tl.load(grad_f + j * n) + eta * tl.load(grad_h + j * n))
    met = slope - uphill - eta * (step_h - h)
    found = (met - curvature) / tl.maximum(square, _TELLING)
    return tl.where(square > _TELLING, tl.minimum(tl.maximum(found, _LEAST_BEND), _MOST_BEND), bend)


@triton.jit
def newton_on_h(u, lower, upper, grad_h, to, way, h, who, n, COLUMNS: tl.constexpr):
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
