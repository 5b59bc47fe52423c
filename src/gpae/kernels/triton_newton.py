"""The search of newton.c on a GPU: two Triton kernels that take turns, every row in a slot of its own.

``linearise`` (:mod:`gpae.kernels.triton_point`) is where the work is: the products with Z and W_e and the sines and
cosines between them, tile by tile on the tensor cores, without writing a B x S table. ``advance`` does everything else,
a thread a row: it judges the trial point, goes on to the next stage, takes a new row where one is done, and proposes
the next point. Tables are stored by column, [columns, slots], so that neighbouring threads read neighbouring numbers.
"""

import triton
import triton.language as tl

from gpae.kernels.triton_algebra import dot, get, put
from gpae.kernels.triton_point import density, first_order, gradients
from gpae.kernels.triton_steps import latent_step, newton_on_h, next_bend

__all__ = ["advance"]

MEET: tl.constexpr = tl.constexpr(0)
WALK: tl.constexpr = tl.constexpr(1)
RESTORE: tl.constexpr = tl.constexpr(2)
IDLE: tl.constexpr = tl.constexpr(3)
FRESH: tl.constexpr = tl.constexpr(4)
"""Added to the stage of a row whose start has not been looked at yet."""

# as in newton.c
_RESTORED: tl.constexpr = tl.constexpr(4e-6)
_EPSILON: tl.constexpr = tl.constexpr(1.2e-7)
_LOST: tl.constexpr = tl.constexpr(16.0)
_MEETING: tl.constexpr = tl.constexpr(6)
_RESTORING: tl.constexpr = tl.constexpr(20)


@triton.jit
def _theta(at, like, D: tl.constexpr):
    """The classifier's weights, the same in every slot."""
    out = (like * 0.0 + tl.load(at),)
    for k in tl.static_range(1, D):
        out = out + (like * 0.0 + tl.load(at + k),)
    return out


@triton.jit
def _half_square(trial, x, n, COLUMNS: tl.constexpr, zero):
    square = zero
    for j in range(COLUMNS):
        by = tl.load(trial + j * n) - tl.load(x + j * n)
        square += by * by
    return 0.5 * square


@triton.jit
def _judged(objective, h, kkt, eta, damping, penalty, step, new_objective, new_h, new_kkt, walking):
    """Whether the walkers' trial points are good, the next damping and the next penalty: newton.c's judge."""
    step_eta, step_change, step_h = step[0], step[1], step[2]
    penalty = tl.where(walking, tl.maximum(2.0 * tl.maximum(tl.abs(step_eta), tl.abs(eta)), 0.5 * penalty), penalty)
    fall = objective - new_objective + penalty * (tl.abs(h) - tl.abs(new_h))
    predicted = penalty * (tl.abs(h) - tl.abs(step_h)) - step_change
    ratio = fall / tl.maximum(predicted, 1e-16)
    nearer = (new_kkt < 0.5 * kkt) & (tl.abs(new_h) <= 0.5 * tl.abs(h) + _RESTORED)
    noise = 8.0 * _EPSILON * (tl.abs(objective) + penalty * tl.abs(h) + 1.0)
    nearer = nearer | ((predicted < noise) & (tl.abs(fall) < noise) & (new_kkt < kkt))
    trust = tl.where(nearer, 1.0, tl.minimum(tl.maximum(ratio, 0.0), 1.0))
    swing = 2.0 * trust - 1.0
    lowered = damping * tl.minimum(tl.maximum(1.0 - swing * swing * swing, 0.25), 2.0)
    lowered = tl.where(lowered < 0.05, 0.0, lowered)
    good = (ratio > 1e-3) | nearer
    damping = tl.where(walking, tl.where(good, lowered, tl.maximum(4.0 * damping, 0.25)), damping)
    return good, damping, penalty


@triton.jit
def _adopted(u, trial, jacobian, trial_jacobian, take, n, COLUMNS: tl.constexpr, LATENT: tl.constexpr):
    """Go to the trial points that are taken."""
    for j in range(COLUMNS):
        tl.store(u + j * n, tl.load(trial + j * n), mask=take)
    for j in range(LATENT * COLUMNS):
        tl.store(jacobian + j * n, tl.load(trial_jacobian + j * n), mask=take)


@triton.jit
def _merged(take, new, old):
    out = (tl.where(take, new[0], old[0]),)
    for k in tl.static_range(1, len(new)):
        out = out + (tl.where(take, new[k], old[k]),)
    return out


@triton.jit
def _next_stage(stage, steps, home, h, kkt, damping, margin, stuck, tolerance, off, iterations):
    """Who is done with a stage goes on to the next, several at once perhaps; who has come home, and who is done."""
    miss = tl.abs(h)
    met = (stage == MEET) & ((miss <= 1e-2) | stuck | (steps >= _MEETING))
    stage, steps = tl.where(met, WALK, stage), tl.where(met, 0, steps)
    there = (kkt <= tolerance) & (miss <= tl.maximum(off, 1e-3) * margin)
    out = (stage == WALK) & (there | (damping >= _LOST) | (steps >= iterations))
    stage, steps = tl.where(out, RESTORE, stage), tl.where(out, 0, steps)
    home = tl.where(out, there.to(tl.int32), home)
    over = (stage == RESTORE) & ((miss <= tl.maximum(off * margin, _RESTORED)) | (stuck & ~out) | (steps >= _RESTORING))
    return stage, steps, home, over


@triton.jit
def _handed_in(
    u, out_u, out_numbers, out_counts, objective, h, kkt, taken, home, row, over, n, total, COLUMNS: tl.constexpr
):
    """The answers of those who are done."""
    for j in range(COLUMNS):
        tl.store(out_u + j * total + row, tl.load(u + j * n), mask=over)
    tl.store(out_numbers + row, objective, mask=over)
    tl.store(out_numbers + total + row, h, mask=over)
    tl.store(out_numbers + 2 * total + row, kkt, mask=over)
    tl.store(out_counts + row, taken, mask=over)
    tl.store(out_counts + total + row, home, mask=over)


@triton.jit
def _next_row(progress, row, over, total):
    """The queue's next row for each slot that is free, as long as there is one."""
    tl.atomic_add(progress + 1 + tl.zeros_like(row), over.to(tl.int32), mask=over)
    after = tl.atomic_add(progress + tl.zeros_like(row), over.to(tl.int32), mask=over)
    new = over & (after < total)
    return tl.where(new, after, row), new


@triton.jit
def _seated(
    x, lower, upper, trial, rows_x, rows_lower, rows_upper, rows_start, row, new, n, total,
    COLUMNS: tl.constexpr, STARTED: tl.constexpr,
):  # fmt: skip
    """Put the new rows into their slots."""
    for j in range(COLUMNS):
        at = j * total + row
        low, high = tl.load(rows_lower + at, mask=new), tl.load(rows_upper + at, mask=new)
        own = tl.load(rows_x + at, mask=new)
        start = tl.load(rows_start + at, mask=new) if STARTED else own
        tl.store(x + j * n, own, mask=new)
        tl.store(lower + j * n, low, mask=new)
        tl.store(upper + j * n, high, mask=new)
        tl.store(trial + j * n, tl.minimum(tl.maximum(start, low), high), mask=new)


@triton.jit
def advance(
    # by column, [columns, slots]: the slots' rows, points, slopes; then [numbers, slots] and [counts, slots]
    x, lower, upper, u, trial, jacobian, trial_jacobian, trial_latent, grad_f, grad_h, scratch, numbers, counts,
    # the surface
    theta_at, theta0, precision, mean, constant, density_frequencies, density_phases, density_weights, T,
    # the queue, [columns, rows], what is taken from it, and the answers
    rows_x, rows_lower, rows_upper, rows_start, rows_numbers, out_u, out_numbers, out_counts, progress,
    n, total, tolerance, off, iterations,
    COLUMNS: tl.constexpr, LATENT: tl.constexpr, STARTED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """One turn of every slot; ``numbers`` and ``counts`` are laid out as in :mod:`gpae.kernels.gpu`."""
    P: tl.constexpr = LATENT * (LATENT + 1) // 2
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    x, lower, upper, u, trial = x + i, lower + i, upper + i, u + i, trial + i
    jacobian, trial_jacobian, trial_latent = jacobian + i, trial_jacobian + i, trial_latent + i
    grad_f, grad_h, scratch, numbers, counts = grad_f + i, grad_h + i, scratch + i, numbers + i, counts + i
    stage, steps, taken, row, home = get(counts, n, 5)
    fresh = stage >= FRESH
    stage = tl.where(fresh, stage - FRESH, stage)
    busy = stage != IDLE
    if tl.max(busy.to(tl.int32), 0) == 0:
        return
    beta, sign, margin, objective, h, kkt, eta, damping, penalty, bend = get(numbers, n, 10)
    step = get(numbers + 10 * n, n, 6)
    score, curvature = get(numbers + 16 * n, n, LATENT), get(numbers + (16 + LATENT) * n, n, P)
    zero = beta * 0.0
    theta = _theta(theta_at, zero, LATENT)

    # what the trial point is worth, and whether it is taken
    latent = get(trial_latent, n, LATENT)
    log_p, new_score, new_curvature = density(
        latent, density_frequencies, density_phases, density_weights, mean, precision, constant, T, LATENT
    )
    new_objective = _half_square(trial, x, n, COLUMNS, zero) - beta * log_p
    new_h = sign * (dot(theta, latent) + tl.load(theta0)) - margin
    gradients(trial, x, trial_jacobian, grad_f, grad_h, new_score, theta, beta, sign, n, COLUMNS)
    new_kkt, new_eta = first_order(trial, x, lower, upper, grad_f, grad_h, n, COLUMNS, zero)
    walking, seeking = busy & ~fresh & (stage == WALK), busy & ~fresh & (stage != WALK)
    good, damping, penalty = _judged(
        objective, h, kkt, eta, damping, penalty, step, new_objective, new_h, new_kkt, walking
    )
    met = next_bend(trial, u, grad_f, grad_h, new_eta, step[2], h, step[3], step[4], step[5], bend, n, COLUMNS)
    bend = tl.where(walking, met, bend)
    closer = seeking & (tl.abs(new_h) < tl.abs(h))
    take = busy & (fresh | (walking & good) | closer)
    _adopted(u, trial, jacobian, trial_jacobian, take, n, COLUMNS, LATENT)
    score, curvature = _merged(take, new_score, score), _merged(take, new_curvature, curvature)
    objective, h = tl.where(take, new_objective, objective), tl.where(take, new_h, h)
    kkt, eta = tl.where(take, new_kkt, kkt), tl.where(take, new_eta, eta)
    went = (busy & ~fresh).to(tl.int32)

    # on to the next stage; who is done hands in the answer and takes the next row
    stage, steps, home, over = _next_stage(
        stage, steps + went, home, h, kkt, damping, margin, seeking & ~closer, tolerance, off, iterations
    )
    over = over & busy
    taken += went
    _handed_in(u, out_u, out_numbers, out_counts, objective, h, kkt, taken, home, row, over, n, total, COLUMNS)
    row, new = _next_row(progress, row, over, total)
    _seated(x, lower, upper, trial, rows_x, rows_lower, rows_upper, rows_start, row, new, n, total, COLUMNS, STARTED)
    beta = tl.where(new, tl.load(rows_numbers + row, mask=new, other=0.0), beta)
    sign = tl.where(new, tl.load(rows_numbers + total + row, mask=new, other=0.0), sign)
    margin = tl.where(new, tl.load(rows_numbers + 2 * total + row, mask=new, other=0.0), margin)
    damping, penalty, bend = tl.where(new, 0.0, damping), tl.where(new, 0.0, penalty), tl.where(new, 0.0, bend)
    stage = tl.where(over, tl.where(new, (WALK if STARTED else MEET) + FRESH, IDLE), stage)
    steps, taken = tl.where(new, 0, steps), tl.where(new, 0, taken)

    # the next point, from where each of the others stands
    going = busy & ~over
    gradients(u, x, jacobian, grad_f, grad_h, score, theta, beta, sign, n, COLUMNS)
    walkers, seekers = going & (stage == WALK), going & (stage != WALK)
    if tl.max(walkers.to(tl.int32), 0) > 0:
        step = latent_step(
            u, x, lower, upper, jacobian, grad_f, grad_h, trial, scratch, score, curvature, theta, precision,
            h, eta, beta, sign, damping, bend, walkers, n, COLUMNS,
        )  # fmt: skip
    if tl.max(seekers.to(tl.int32), 0) > 0:
        newton_on_h(u, lower, upper, grad_h, trial, scratch, h, seekers, n, COLUMNS)

    put(numbers, n, (beta, sign, margin, objective, h, kkt, eta, damping, penalty, bend), busy)
    put(numbers + 10 * n, n, step, busy)
    put(numbers + 16 * n, n, score, busy)
    put(numbers + (16 + LATENT) * n, n, curvature, busy)
    put(counts, n, (stage, steps, taken, row, home), busy)
