"""From a relaxed solution to a row that can be written down: whole levels, whole steps, immutables untouched.

The relaxation treats every column as a number. Here each row's categories are settled (the levels that the relaxed
solution leans to, or the person's own), the remaining columns are solved again, everything is snapped to allowed
values, and a local search over single features does the rest: repairing buys back the decision that rounding lost,
tightening gives back whatever the decision does not need.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from gpae.kernels.snapping import snap
from gpae.numerics.tiles import in_tiles
from gpae.search import newton
from gpae.search.compiled import finisher
from gpae.search.problem import Problem, Surface, linearise, objective, widened
from gpae.search.work import Work
from gpae.table.layout import Layout
from gpae.table.value_block import SAME

__all__ = ["Polished", "pinned", "polish"]

Array = NDArray[np.float64]

_SLACK = 1e-7
"""Logit units by which a row may miss its margin through rounding in the arithmetic."""
_TRIALS = 6
"""Moves of a row that are tried exactly in one round, the best ones by the linear model."""
_MOVED = 1e-6
"""How far pinning must move a column for the others to be solved for again."""
_REPAIRS = 40
_ANCHORS = 32
"""Rows of the target's side that are tried for who has no other answer."""
_DENSITY_LEADS = (0.005, 0.05)
"""Values of beta that lead a row without an answer: on a plateau of the classifier the density still has a slope."""
_TIGHTENINGS = 12


@dataclass(frozen=True, slots=True, eq=False)
class Polished:
    """Allowed rows, one a problem; ``valid`` says which of them reach the target with the margin asked."""

    u: Float[Tensor, "B D"]
    objective: Float[Tensor, " B"]
    valid: Bool[Tensor, " B"]
    work: Work

    def after(self, work: Work) -> "Polished":
        """The same, and what was done before."""
        return replace(self, work=work + self.work)

    def with_another(self, index: Int[Tensor, " n"], other: "Polished") -> "Polished":
        """Of two answers for some of the rows the valid one, or of two valid ones the one of lower objective."""
        valid, value = self.valid[index], self.objective[index]
        take = (other.valid & ~valid) | ((other.valid == valid) & (other.objective < value))
        at = index[take]
        return Polished(
            self.u.index_copy(0, at, other.u[take]),
            self.objective.index_copy(0, at, other.objective[take]),
            self.valid.index_copy(0, at, other.valid[take]),
            self.work + other.work.at(index, len(self.u)),
        )


def polish(
    surface: Surface,
    problem: Problem,
    layout: Layout,
    relaxed: Float[Tensor, "B D"],
    anchors: Mapping[int, Tensor],
) -> Polished:
    """Settle categories, snap, repair and tighten; the best of several ways for each row.

    ``anchors`` are rows known to be on either side (1 and -1): the last resort of a row that no other way brought to
    its own target's.
    """
    leaning, work = _settle(surface, problem, layout, relaxed, relaxed)
    best = _finish(surface, problem, layout, leaning).after(work)
    other = _who_leans_away(problem, layout, leaning)
    if len(other):
        part = problem.rows(other)
        own, work = _settle(surface, part, layout, part.x, relaxed[other])
        best = best.with_another(other, _finish(surface, part, layout, own).after(work))
    for side, there in anchors.items():
        lost = (~best.valid & (problem.sign == side)).nonzero().squeeze(1)
        if len(lost) and len(there):
            best = best.with_another(lost, _rescued(surface, problem.rows(lost), layout, there))
    return best


def _who_leans_away(problem: Problem, layout: Layout, leaning: Float[Tensor, "B D"]) -> Int[Tensor, " n"]:
    """The rows whose settled categories are not the person's own: the others would be settled again as they are."""
    if not layout.discrete.any():
        return torch.zeros(0, dtype=torch.int64)
    apart = (leaning - _snap(problem, layout, problem.x)).abs() > SAME
    return (apart & torch.as_tensor(layout.discrete)).any(1).nonzero().squeeze(1)


def _rescued(surface: Surface, problem: Problem, layout: Layout, anchors: Float[Tensor, "A D"]) -> Polished:
    """The nearest rows of the target class; or better, where the density leads when it weighs more."""
    nearest = _nearest_anchor(surface, problem, layout, anchors)
    tried = Work.looked(torch.full_like(problem.sign, min(_ANCHORS, len(anchors)), dtype=torch.int64))
    best = _finish(surface, problem, layout, nearest).after(tried)
    everybody = torch.arange(len(problem.x))
    for weight in _DENSITY_LEADS:
        leading = replace(problem, beta=torch.full_like(problem.beta, weight))
        led = newton.solve(surface, leading)
        relaxed = newton.solve(surface, problem, start=led.u)
        settled, work = _settle(surface, problem, layout, relaxed.u, relaxed.u)
        work = Work.of(leading, led) + Work.of(problem, relaxed) + work
        best = best.with_another(everybody, _finish(surface, problem, layout, settled).after(work))
    return best


def _settle(
    surface: Surface,
    problem: Problem,
    layout: Layout,
    categories: Float[Tensor, "B D"],
    start: Float[Tensor, "B D"],
) -> tuple[Float[Tensor, "B D"], Work]:
    """Pin the discrete columns to the levels nearest to ``categories`` and solve for the others."""
    discrete, work = torch.as_tensor(layout.discrete), Work.looked(torch.zeros(len(start), dtype=torch.int64))
    if discrete.any():
        settled = pinned(problem, layout, categories)
        begin = torch.where(discrete, settled.lower, start)
        # who is pinned where the solution was stays there
        moved = ((begin - start).abs() > _MOVED).any(1).nonzero().squeeze(1)
        part, held, start = settled.rows(moved), discrete | torch.as_tensor(layout.fixed), begin
        solution = newton.solve(surface, part, start=start[moved], tolerance=newton.COARSE, held=held)
        start[moved] = solution.u
        work = work + Work.of(part, solution).at(moved, len(start))
    return start, work


def pinned(problem: Problem, layout: Layout, categories: Float[Tensor, "B D"]) -> Problem:
    """The same with no room in the discrete columns but for the levels nearest to ``categories``."""
    discrete, levels = torch.as_tensor(layout.discrete), _snap(problem, layout, categories)
    lower, upper = (torch.where(discrete, levels, bound) for bound in (problem.lower, problem.upper))
    return replace(problem, lower=lower, upper=upper)


def _snap(problem: Problem, layout: Layout, u: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
    return torch.as_tensor(snap(layout, u.numpy(), problem.x.numpy(), problem.lower.numpy(), problem.upper.numpy()))


def _finish(surface: Surface, problem: Problem, layout: Layout, u: Float[Tensor, "B D"]) -> Polished:
    """Snap, repair and tighten."""
    if (compiled := finisher(surface, layout)) is not None:
        done = compiled.finish(problem.tensors(), u)
        return Polished(done.u, done.objective, done.h >= -_SLACK, Work.looked(done.looks))
    u, looks = _local_search(surface, problem, layout, _snap(problem, layout, u), repairing=True, rounds=_REPAIRS)
    u, more = _local_search(surface, problem, layout, u, repairing=False, rounds=_TIGHTENINGS)
    value, h = _evaluate(surface, problem, u)
    return Polished(u, value, h >= -_SLACK, Work.looked(looks + more + 1))


def _evaluate(surface: Surface, problem: Problem, u: Tensor) -> tuple[Tensor, Tensor]:
    return in_tiles(lambda *rows: objective(surface, Problem(*rows[:6]), rows[6]), (*problem.tensors(), u))


def _local_search(
    surface: Surface, problem: Problem, layout: Layout, u: Tensor, *, repairing: bool, rounds: int
) -> tuple[Tensor, Int[Tensor, " B"]]:
    """Change one feature at a time, in the rows that are invalid (repairing) or valid (tightening); count the looks."""
    u = u.clone()
    value, h = _evaluate(surface, problem, u)
    looks = torch.ones(len(u), dtype=torch.int64)
    active = ((h < -_SLACK) == repairing).nonzero().squeeze(1)
    for _ in range(rounds):
        if not len(active):
            break
        part = problem.rows(active)
        looks[active] += 1 + _TRIALS
        moved, new_value, new_h = _best_move(surface, part, layout, u[active], value[active], h[active], repairing)
        better = new_h > h[active] + 1e-9 if repairing else new_value < value[active] - 1e-9
        chosen = active[better]
        u[chosen], value[chosen], h[chosen] = moved[better], new_value[better], new_h[better]
        active = chosen[h[chosen] < -_SLACK] if repairing else chosen
    return u, looks


def _best_move(
    surface: Surface, problem: Problem, layout: Layout, u: Tensor, value: Tensor, h: Tensor, repairing: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Rank every single-feature move by the linear model, try the best few exactly, return the best one.

    Repairing, the best is the cheapest that reaches the target, or else the most logit for the cost. Tightening, it
    is the lowest objective among those that keep the target and change no more than before.
    """
    rows, moves = _moves(problem, layout, u)
    grad_f, grad_h = _gradients(surface, problem, u)
    gain, cost = moves.effects(grad_h, grad_f, rows, _metric(surface, u.shape[1]).numpy())
    if repairing:
        merit = gain.clip(max=(-h).numpy()[:, None] * 1.2) / (np.maximum(cost, 0.0) + 1e-3)
    else:
        merit = np.where(h.numpy()[:, None] + gain >= -0.5 * problem.margin.numpy()[:, None], -cost, -np.inf)
    merit = np.where(moves.allowed, merit, -np.inf)
    n_trials = min(_TRIALS, merit.shape[1])
    picks = np.argpartition(-merit, n_trials - 1, axis=1)[:, :n_trials]
    picks.sort(axis=1)
    usable = np.isfinite(np.take_along_axis(merit, picks, 1))
    trials = torch.as_tensor(moves.rows(u.numpy(), picks))
    index = torch.arange(len(u)).repeat_interleave(n_trials)
    new_value, new_h = (
        t.unflatten(0, (len(u), n_trials)) for t in _evaluate(surface, problem.rows(index), trials.flatten(0, 1))
    )
    score = _trial_score(value, h, new_value, new_h, repairing).masked_fill(~torch.as_tensor(usable), torch.inf)
    if not repairing:
        # the decision is bought already: nothing may be added to the change, whatever the density would gain
        x, metric = problem.x.unsqueeze(1), _metric(surface, u.shape[1])
        score[_squares(trials - x, metric) > _squares(u.unsqueeze(1) - x, metric)] = torch.inf
    best = score.argmin(1)
    at = torch.arange(len(u))
    hopeless = torch.isinf(score[at, best])
    new_value, new_h = new_value[at, best], new_h[at, best]
    return (
        trials[at, best],
        torch.where(hopeless, value + 1, new_value),
        torch.where(hopeless, h - 1, new_h),
    )


def _trial_score(value: Tensor, h: Tensor, new_value: Tensor, new_h: Tensor, repairing: bool) -> Tensor:
    """Lower is better."""
    valid = new_h >= -_SLACK
    if not repairing:
        return torch.where(valid, new_value, torch.inf)
    value, h = value.unsqueeze(1), h.unsqueeze(1)
    rate = (new_h - h) / ((new_value - value).clamp(min=0) + 1e-3)
    return torch.where(valid, new_value - 1e9, torch.where(new_h > h, -rate, torch.inf))


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """All single-feature moves of each row, flattened: which feature's setting, and the columns it replaces."""

    values: list[Array]
    columns: list[slice]
    allowed: NDArray[np.bool_]

    def effects(self, grad_h: Array, grad_f: Array, u: Array, metric: Array) -> tuple[Array, Array]:
        """First-order gain in h and second-order (in the distance) cost of each move."""
        gains, costs = [], []
        for values, columns in zip(self.values, self.columns, strict=True):
            step = values - u[:, None, columns]
            gains.append((step * grad_h[:, None, columns]).sum(2))
            costs.append((step * grad_f[:, None, columns] + 0.5 * step**2 * metric[columns]).sum(2))
        return np.concatenate(gains, 1), np.concatenate(costs, 1)

    def rows(self, u: Array, picks: NDArray[np.intp]) -> Array:
        """The full rows of some moves of each row, B x n x D."""
        out = np.repeat(u[:, None, :], picks.shape[1], axis=1)
        first = 0
        for values, columns in zip(self.values, self.columns, strict=True):
            local = picks - first
            mine = (local >= 0) & (local < values.shape[1])
            b, n = np.nonzero(mine)
            out[b, n, columns] = values[b, local[b, n]]
            first += values.shape[1]
        return out


def _moves(problem: Problem, layout: Layout, u: Tensor) -> tuple[Array, _Moves]:
    rows = u.numpy()
    found = layout.alternatives(rows, problem.x.numpy(), problem.lower.numpy(), problem.upper.numpy())
    if not found:
        none = np.zeros((len(rows), 1), dtype=np.bool_)
        return rows, _Moves([rows[:, None, :1]], [slice(0, 1)], none)
    allowed = np.concatenate([a.allowed for a in found], axis=1)
    return rows, _Moves([a.values for a in found], [a.columns for a in found], allowed)


def _gradients(surface: Surface, problem: Problem, u: Tensor) -> tuple[Array, Array]:
    """Gradients of the objective and of h."""
    n_columns = u.shape[1]
    surface, problem = widened(surface, problem)
    u = pad(u, (0, problem.x.shape[1] - n_columns))
    grad_f, grad_h = in_tiles(partial(_gradient_tile, surface), (*problem.tensors(), u))
    return grad_f[:, :n_columns].numpy(), grad_h[:, :n_columns].numpy()


def _gradient_tile(surface: Surface, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    problem, u = Problem(*tensors[:6]), tensors[6]
    point = linearise(surface, problem, u)
    theta = problem.sign.unsqueeze(1) * surface.model.theta
    pull = torch.bmm(torch.stack([point.score, theta], 1), point.jacobian)
    way = _metric(surface, u.shape[1]) * (u - problem.x)
    return way - problem.beta.unsqueeze(1) * pull[:, 0], pull[:, 1]


def _metric(surface: Surface, n_columns: int) -> Float[Tensor, " D"]:
    """What a squared way counts along each column."""
    return torch.ones(n_columns, dtype=torch.float64) if surface.units is None else surface.units.square()


def _squares(ways: Float[Tensor, "B n D"], metric: Float[Tensor, " D"]) -> Float[Tensor, "B n"]:
    """Squared lengths; summed entry by entry, because a product with a matrix depends on how many rows there are."""
    return (ways.square() * metric).sum(2)


def _nearest_anchor(
    surface: Surface, problem: Problem, layout: Layout, anchors: Float[Tensor, "A D"]
) -> Float[Tensor, "B D"]:
    """The best of the nearest target-class rows, once forced into each person's box and onto allowed values."""
    n_nearest = min(_ANCHORS, len(anchors))
    # a few rows at a time: the table of differences is rows x anchors x columns
    nearest = torch.cat(
        [
            (rows.unsqueeze(1) - anchors).square().sum(2).topk(n_nearest, largest=False).indices
            for rows in problem.x.split(16)
        ]
    )
    index = torch.arange(len(problem.x)).repeat_interleave(n_nearest)
    part = problem.rows(index)
    u = _snap(part, layout, anchors[nearest.flatten()].clamp(part.lower, part.upper))
    value, h = _evaluate(surface, part, u)
    score = torch.where(h >= -_SLACK, value, 1e9 - h).unflatten(0, nearest.shape)
    best = score.argmin(1)
    return u.unflatten(0, nearest.shape)[torch.arange(len(best)), best]
