"""The fast solver: batched Newton steps with active bounds and per-row step control.

Every row takes Gauss-Newton steps in the latent space (:func:`gpae.search.steps.latent_step`), all of whose algebra
is d x d; rows that these do not bring home go on with full Newton steps. Where there is a compiled search
(:mod:`gpae.search.compiled`), that does the same. A row's damping is raised where the exact
penalty f + nu |h| did not fall as its model predicted and lowered where it did. Rows that converged leave the batch.
"""

from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from gpae.numerics.tiles import in_tiles
from gpae.search.compiled import COARSE, walker
from gpae.search.problem import (
    ASTRAY,
    Point,
    Problem,
    Solution,
    Surface,
    kkt_residual,
    linearise,
    merged,
    stalled,
    widened,
)
from gpae.search.restoration import restore
from gpae.search.steps import Step, full_step, latent_step, next_bend
from gpae.search.units import solved_in_units

__all__ = ["COARSE", "solve"]

_BURSTS: tuple[tuple[Step, int], ...] = (
    (latent_step, 6), (full_step, 6), (full_step, 6), (full_step, 12),
)  # fmt: skip
"""Which step, and how many iterations until the rows still under way are packed together anew."""


def solve(
    surface: Surface,
    problem: Problem,
    *,
    start: Float[Tensor, "B D"] | None = None,
    tolerance: float = 3e-4,
    held: Bool[Tensor, " D"] | None = None,
) -> Solution:
    """Solve every row's relaxed problem from ``start`` (default: the boundary, met head-on).

    A row stops once its scaled KKT residual is below ``tolerance`` and |h| below a thousandth of its margin; at
    the end every row is restored onto the boundary plus margin (the compiled search leaves it at that where the
    tolerance is coarse). Rows that stall are started a second time.

    ``held`` are columns where bounds leave no room: to say so saves their part of every step. Rows that have room there
    after all do without.
    """
    if held is not None and bool((roaming := ((problem.upper > problem.lower) & held).any(1)).any()):
        solution, still = solve(surface, problem, start=start, tolerance=tolerance), (~roaming).nonzero().squeeze(1)
        begin = None if start is None else start[still]
        others = solve(surface, problem.rows(still), start=begin, tolerance=tolerance, held=held)
        return solution.replaced(still, others)
    compiled = None if problem.x.is_cuda else walker(surface, held)
    if compiled is None and surface.units is not None:
        return solved_in_units(solve, surface, problem, start, tolerance=tolerance, held=held)
    plain = partial(_descend, surface)
    first, again = (plain, plain) if compiled is None else (compiled.descend, compiled.descend_warily)
    solution = first(problem, start, tolerance)
    left = stalled(problem, solution).nonzero().squeeze(1)
    if len(left):
        part = problem.rows(left)
        solution = _keep_better(problem, solution, left, again(part, part.x, tolerance))
    return solution


def _descend(surface: Surface, problem: Problem, start: Float[Tensor, "B D"] | None, tolerance: float) -> Solution:
    """At most 30 iterations from ``start``, then onto the boundary."""
    n_columns = problem.x.shape[1]
    surface, problem = widened(surface, problem)
    iterations = torch.zeros_like(problem.beta, dtype=torch.int64)
    if start is None:
        # met head-on first, the boundary is where the answer lies: fewer rows end in a poorer minimum than from x
        begin = restore(surface, problem, problem.x, iterations, max_steps=6, tolerance=1e-2)
        u, iterations = begin.u, begin.iterations
    else:
        u = pad(start, (0, problem.x.shape[1] - n_columns))
    u = u.clamp(problem.lower, problem.upper)
    damping, penalty = torch.zeros_like(problem.beta), torch.zeros_like(problem.beta)
    active = torch.arange(len(u), device=u.device)
    for step, n_iterations in _BURSTS:
        if not len(active):
            break
        burst = partial(_burst, surface, step, n_iterations, tolerance)
        under_way = (u[active], damping[active], penalty[active], iterations[active])
        *end, done = in_tiles(burst, (*problem.rows(active).tensors(), *under_way))
        u[active], damping[active], penalty[active], iterations[active] = end
        active = active[~done]
    return restore(surface, problem, u, iterations).cropped(n_columns)


def _keep_better(problem: Problem, first: Solution, index: Int[Tensor, " n"], second: Solution) -> Solution:
    """Per row the one on the boundary, or of two such the one of lower objective; iterations are of both."""
    old, tolerance = first.rows(index), ASTRAY * problem.margin[index]
    on_old, on_new = old.violation <= tolerance, second.violation <= tolerance
    take = (on_new & ~on_old) | ((on_new == on_old) & (second.objective < old.objective))
    kept = first.replaced(index[take], second.rows(take.nonzero().squeeze(1)))
    return replace(kept, iterations=first.iterations.index_add(0, index, second.iterations))


def _burst(
    surface: Surface, step: Step, n_iterations: int, tolerance: float, *tensors: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Run some iterations on one tile; rows that converge stay where they are."""
    problem = Problem(*tensors[:6])
    u, damping, penalty, iterations = tensors[6:]
    point = linearise(surface, problem, u)
    kkt, eta = kkt_residual(surface, problem, point)
    done, bend = _converged(problem, point, kkt, tolerance), torch.zeros_like(damping)
    for _ in range(n_iterations):
        if bool(done.all()):
            break
        proposal, step_eta, change = step(surface, problem, point, damping, bend, eta)
        penalty = torch.where(done, penalty, _next_penalty(penalty, eta, step_eta))
        trial = linearise(surface, problem, proposal)
        trial_kkt, trial_eta = kkt_residual(surface, problem, trial)
        ratio = _fall(point, trial, penalty) / _predicted(surface, problem, point, proposal, change, penalty)
        nearer = (trial_kkt < 0.5 * kkt) & (trial.h.abs() <= 0.5 * point.h.abs() + 1e-9)
        accept = ~done & ((ratio > 1e-3) | nearer)
        damping = torch.where(done, damping, _next_damping(damping, ratio, nearer))
        if step is latent_step:
            bend = next_bend(surface, problem, point, trial, trial_eta, change, bend)
        point = merged(accept, trial, point)
        kkt, eta = torch.where(accept, trial_kkt, kkt), torch.where(accept, trial_eta, eta)
        iterations = iterations + (~done).to(iterations.dtype)
        done = done | _converged(problem, point, kkt, tolerance)
    return point.u, damping, penalty, iterations, done


def _converged(problem: Problem, point: Point, kkt: Float[Tensor, " B"], tolerance: float) -> Bool[Tensor, " B"]:
    return (kkt <= tolerance) & (point.h.abs() <= 1e-3 * problem.margin)


def _fall(point: Point, trial: Point, penalty: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """How much the exact penalty fell."""
    return point.objective - trial.objective + penalty * (point.h.abs() - trial.h.abs())


def _predicted(
    surface: Surface,
    problem: Problem,
    point: Point,
    proposal: Float[Tensor, "B D"],
    change: Float[Tensor, " B"],
    penalty: Float[Tensor, " B"],
) -> Float[Tensor, " B"]:
    """How much the model said it would fall."""
    theta = problem.sign.unsqueeze(1) * surface.model.theta
    grad_h = torch.bmm(theta.unsqueeze(1), point.jacobian).squeeze(1)
    model_h = point.h + (grad_h * (proposal - point.u)).sum(1)
    return (penalty * (point.h.abs() - model_h.abs()) - change).clamp(min=1e-16)


def _next_penalty(
    penalty: Float[Tensor, " B"], eta: Float[Tensor, " B"], step_eta: Float[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """Twice the multiplier, falling by halves at most.

    A penalty far above the multiplier makes good steps look bad (they bend off the boundary), so it may fall again.
    """
    return torch.maximum(2 * torch.maximum(step_eta.abs(), eta.abs()), 0.5 * penalty)


def _next_damping(
    damping: Float[Tensor, " B"], ratio: Float[Tensor, " B"], nearer: Bool[Tensor, " B"]
) -> Float[Tensor, " B"]:
    """Raise the damping after a bad step; lower it after a good one, the more so the better the model was."""
    raised = (4 * damping).clamp(min=0.25)
    trust = torch.where(nearer, torch.ones_like(ratio), ratio.clamp(0, 1))
    lowered = damping * (1 - (2 * trust - 1) ** 3).clamp(1 / 4, 2)
    lowered = torch.where(lowered < 0.05, torch.zeros_like(lowered), lowered)
    return torch.where((ratio > 1e-3) | nearer, lowered, raised)
