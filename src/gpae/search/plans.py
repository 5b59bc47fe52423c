"""Plan after plan: the relaxed problem, its polish, and what to do without when one plan is not enough."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gpae.arrays import Labels, Mask, Rows, joined, picked
from gpae.progress import report
from gpae.search import newton, reference
from gpae.search.experience import Experience
from gpae.search.polish import Polished, polish
from gpae.search.problem import Problem, Solution, Surface
from gpae.search.work import Work
from gpae.table.layout import Layout

__all__ = ["PlanSearch", "Solver"]

Solver = Literal["newton", "reference"]

_SLIVER = 0.02
"""Share of the margin that a row may settle for if the whole of it cannot be had."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanSearch:
    """The search on one surface: what a plan weighs, how far it crosses, where it may turn to in need."""

    surface: Surface
    layout: Layout
    beta: float
    margin: float
    anchors: Rows
    """Rows known to be favourable, and"""
    refused: Rows
    """rows known to be refused."""
    solver: Solver = "newton"
    experience: Experience | None = None
    """Of people who were led to the favourable side."""

    def problem(self, x: Rows, target: Labels, lower: Rows, upper: Rows) -> Problem:
        """The rows and their bounds as tensors."""
        sign = 2.0 * target - 1.0
        rows, low, high, sides = (torch.as_tensor(a, dtype=torch.float64) for a in (x, lower, upper, sign))
        beta, margin = (torch.full((len(x),), value, dtype=torch.float64) for value in (self.beta, self.margin))
        return Problem(rows, low, high, beta, sides, margin)

    def relax(self, problem: Problem) -> Solution:
        """Solve the relaxation with the chosen solver."""
        if self.solver == "reference":
            return reference.solve(self.surface, problem)
        # what follows settles and rounds: more digits than these would not be seen
        fixed = torch.as_tensor(self.layout.fixed)
        solve = partial(newton.solve, self.surface, tolerance=newton.COARSE, held=fixed)
        if self.experience is None:
            return solve(problem)
        to_favour = problem.sign > 0
        if bool(to_favour.all()):
            return solve(problem, start=self.experience.start(self.surface, problem))
        known = to_favour.nonzero().squeeze(1)
        return solve(problem).replaced(known, self.relax(problem.rows(known))) if len(known) else solve(problem)

    def plans(self, x: Rows, target: Labels, lower: Rows, upper: Rows, k: int) -> tuple[Labels, Rows]:
        """Up to k plans a row inside its bounds, best first; returns positions in ``x``, and rows.

        Each further plan does without the feature that the last one leaned on most.
        """
        under_way = np.arange(len(x))
        found = _Found([], [], [])
        for number in range(k):
            report("searching", number / k)
            answer = self.one_plan(x[under_way], target[under_way], lower, upper)
            u, valid = answer.u.numpy(), answer.valid.numpy()
            fresh = valid & found.differs(under_way, u)
            found.add(under_way[fresh], u[fresh], answer.objective.numpy()[fresh])
            if number == k - 1:
                break
            # who has no plan now will have none with one more feature locked
            locked = self._heaviest_change(u, x[under_way])
            lower, upper = (np.where(locked, x[under_way], bound)[valid] for bound in (lower, upper))
            under_way = under_way[valid]
            if not len(under_way):
                break
        report("searching", 1.0)
        return found.best_first()

    def one_plan(self, x: Rows, target: Labels, lower: Rows, upper: Rows) -> Polished:
        """Search with the margin asked for; where that fails, settle for a sliver of it."""
        problem = self.problem(x, target, lower, upper)
        best = self._polished(problem)
        if bool(best.valid.all()):
            return best
        lost = (~best.valid & (problem.lower < problem.upper).any(1)).nonzero().squeeze(1)
        if not len(lost):
            return best
        part = problem.rows(lost)
        return best.with_another(lost, self._polished(replace(part, margin=_SLIVER * part.margin)))

    def _polished(self, problem: Problem) -> Polished:
        anchors = {1: torch.as_tensor(self.anchors), -1: torch.as_tensor(self.refused)}
        relaxed = self.relax(problem)
        return polish(self.surface, problem, self.layout, relaxed.u, anchors).after(Work.of(problem, relaxed))

    def _heaviest_change(self, u: Rows, x: Rows) -> Mask:
        """B x D: the columns of the one feature of each row that moved furthest."""
        way = (u - x) if self.surface.units is None else (u - x) * self.surface.units.numpy()
        moved = np.stack([(way[:, f.columns] ** 2).sum(1) for f in self.layout.features], axis=1)
        heaviest = (np.arange(moved.shape[1]) == moved.argmax(1)[:, None]) & (moved > 0)
        return np.repeat(heaviest, [block.width for block in self.layout.features], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The plans found so far, round by round: positions in the query, rows, objectives."""

    row: list[NDArray[np.intp]]
    u: list[Rows]
    cost: list[NDArray[np.float64]]

    def add(self, row: NDArray[np.intp], u: Rows, cost: NDArray[np.float64]) -> None:
        self.row.append(row)
        self.u.append(u)
        self.cost.append(cost)

    def differs(self, row: NDArray[np.intp], u: Rows) -> Mask:
        """Which answers are none of the same person's earlier ones."""
        new = np.ones(len(row), dtype=np.bool_)
        for earlier_row, earlier_u in zip(self.row, self.u, strict=True):
            at = np.searchsorted(earlier_row, row)
            at = np.minimum(at, max(len(earlier_row) - 1, 0))
            if len(earlier_row):
                mine = earlier_row[at] == row
                new &= ~(mine & np.isclose(u, earlier_u[at], rtol=0, atol=1e-9).all(1))
        return new

    def best_first(self) -> tuple[Labels, Rows]:
        """Each person's plans by rising objective."""
        row, u, cost = joined(*self.row), joined(*self.u), joined(*self.cost)
        row, u = picked(np.lexsort((cost, row)), row, u)
        return row, u
