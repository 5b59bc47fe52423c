"""Everything that one person may become, as a mixed-integer program.

Bounds, steps, codes, levels, and all that ties features together, exactly; what is to be the largest is put on top.
Solved by HiGHS through SciPy, which also gives the bound that a proof needs.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from gpae.table.constraint import Array
from gpae.table.constraints.at_most import AtMost
from gpae.table.constraints.implies import Implies
from gpae.table.constraints.linear import SLACK, Linear
from gpae.table.freedom import Freedom
from gpae.table.level_block import LevelBlock
from gpae.table.value_block import ValueBlock

__all__ = ["CONSTANT", "AllowedRows", "Outcome", "Part", "Program", "Sum"]

Sum: TypeAlias = dict[int, float]
"""Coefficients of variables; under -1 stands the constant."""

CONSTANT = -1

_MOST_STEPS = 100_000
"""Of a number, that are told apart; one with more may lie between its steps, which allows more and proves no less."""
_TINY = 1e-8
"""A solver drops coefficients below about this from its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a program came to: the best value, the bound that nothing exceeds, and the variables if there are any."""

    value: float
    bound: float
    variables: Array | None
    proved: bool
    """Whether the bound is exact (or nothing at all is allowed), not merely where time ran out."""


@dataclass(slots=True, eq=False)
class Program:
    """Variables with bounds and rows of constraints, grown piece by piece."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[Sum, float, float]] = field(default_factory=list)

    def variable(self, lower: float, upper: float, *, whole: bool = False) -> int:
        """A new variable's number."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.lower) - 1

    def binary(self) -> int:
        """A new variable that is 0 or 1."""
        return self.variable(0.0, 1.0, whole=True)

    def between(self, low: float, expression: Sum, high: float) -> None:
        """Ask that a sum lies between two numbers."""
        constant = expression.get(CONSTANT, 0.0)
        self.rows.append(({v: c for v, c in expression.items() if v != CONSTANT}, low - constant, high - constant))

    def largest(self, goal: Sum, seconds: float) -> Outcome:
        """Solve for the largest value of a sum; with numbers that a solver cannot take, nothing is proved."""
        n = len(self.lower)
        numbers = [c for row in (goal, *(row for row, _, _ in self.rows)) for c in row.values()]
        if not np.isfinite(np.array(numbers)).all():
            return Outcome(-np.inf, np.inf, None, proved=False)
        cost = np.zeros(n)
        for variable, weight in goal.items():
            if variable != CONSTANT:
                cost[variable] -= weight
        constant = goal.get(CONSTANT, 0.0)
        rows = [self._without_tiny(*row) for row in self.rows]
        at = [(i, v, c) for i, (row, _, _) in enumerate(rows) for v, c in row.items()]
        i, v, c = zip(*at, strict=True) if at else ((), (), ())
        matrix = csr_array(
            (np.array(c, dtype=float), (np.array(i, dtype=int), np.array(v, dtype=int))), shape=(len(rows), n)
        )
        limits = LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows])
        found = milp(
            cost,
            integrality=np.array(self.whole, dtype=int),
            bounds=Bounds(self.lower, self.upper),
            constraints=limits,
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if found.status == 2:  # nothing is allowed at all
            return Outcome(-np.inf, -np.inf, None, proved=True)
        value = -np.inf if found.x is None else float(constant - found.fun)
        bound = found.mip_dual_bound if found.mip_dual_bound is not None else found.fun
        bound = np.inf if bound is None else float(constant - bound)
        return Outcome(value, bound, found.x, proved=found.status == 0)

    def _without_tiny(self, row: Sum, low: float, high: float) -> tuple[Sum, float, float]:
        """A row without the coefficients that a solver would drop, as wide as it takes to forbid nothing by that."""
        tiny = [v for v, c in row.items() if 0.0 < abs(c) < _TINY]
        if not tiny:
            return row, low, high
        extent = sum(abs(row[v]) * max(abs(self.lower[v]), abs(self.upper[v])) for v in tiny)
        return {v: c for v, c in row.items() if v not in tiny}, low - extent, high + extent


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One way for a number to be: the variable that is 1 if it is so, what the number is then, and on which side.

    ``side`` is 1 above the person's own value, -1 below, 0 for the value itself and NaN for who has none.
    """

    taken: int
    value: Sum
    side: float


@dataclass(slots=True, eq=False)
class AllowedRows:
    """The program of what one person may become.

    ``value`` gives each number as a sum of variables, ``level`` the variable of each level (1 if the plan has it), and
    ``stays`` the variable that is 1 if a feature does not change.
    """

    freedom: Freedom
    program: Program
    value: dict[int, Sum]
    level: dict[int, dict[int, int]]
    stays: dict[int, Sum]
    parts: "dict[int, list[Part]]"

    @classmethod
    def of(cls, freedom: Freedom) -> "AllowedRows":
        """The program of the one person of a freedom."""
        assert len(freedom) == 1
        rows = cls(freedom, Program(), {}, {}, {}, {})
        for i, block in enumerate(freedom.layout.features):
            if isinstance(block, ValueBlock) and block.kind in ("continuous", "integer"):
                rows._number(i, block)
            else:
                rows._levels(i, block)
        for constraint in freedom.constraints:
            if isinstance(constraint, Linear):
                rows._sum(constraint)
            elif isinstance(constraint, AtMost):
                rows._limit(constraint)
            elif isinstance(constraint, Implies):
                rows._implication(constraint)
        return rows

    def _number(self, i: int, block: ValueBlock) -> None:
        """A number stays, takes a code, or is an amount on its grid below or above the person's own."""
        own = float(self.freedom.own[0, i])
        lower, upper = (bound[:, block.columns] for bound in (self.freedom.lower, self.freedom.upper))
        x = self.freedom.x[:, block.columns]
        parts: list[Part] = []
        self.stays[i] = {}
        if block.allowed(x, x, lower, upper)[0]:
            stay = self.program.binary()
            self.stays[i] = {stay: 1.0}
            parts.append(Part(stay, {stay: 0.0 if np.isnan(own) else own}, 0.0))
        for code in block.grid.codes:
            setting = block.encode(np.array([code]))
            if block.allowed(setting, x, lower, upper)[0] and code != own:
                taken = self.program.binary()
                parts.append(Part(taken, {taken: code}, np.sign(code - own)))
        low, high = self._amounts(i, block)
        # on a grid the own value is no amount to change to
        gap = 1e-3 * (block.grid.step or 0.0)
        if np.isnan(own):
            if lower[0, -1] == 0.0:  # the flag of a missing value may fall
                self._amount(block, low, high, np.nan, parts)
        else:
            self._amount(block, low, min(high, own - gap), -1.0, parts)
            self._amount(block, max(low, own + gap), high, 1.0, parts)
        self.program.between(1.0, {part.taken: 1.0 for part in parts}, 1.0)
        self.parts[i] = parts
        self.value[i] = {variable: worth for part in parts for variable, worth in part.value.items()}

    def _amounts(self, i: int, block: ValueBlock) -> tuple[float, float]:
        """The least and the largest amount that the number may take."""
        grid, own = block.grid, float(self.freedom.own[0, i])
        ends = [float(block.scaling.to_user(b[0, block.start])) for b in (self.freedom.lower, self.freedom.upper)]
        # the range reaches as far as the person does, unless the person's value is a state and no amount
        reach = [] if np.isnan(own) or own in grid.codes else [own]
        return max(ends[0], min([grid.minimum, *reach])), min(ends[1], max([grid.maximum, *reach]))

    def _amount(self, block: ValueBlock, low: float, high: float, side: float, parts: "list[Part]") -> None:
        """Add the amounts from low to high, if there are any."""
        program, grid = self.program, block.grid
        if grid.step is None or (high - low) / grid.step > _MOST_STEPS:
            if low > high:
                return
            taken, amount = program.binary(), program.variable(min(low, 0.0), max(high, 0.0))
            program.between(-np.inf, {amount: 1.0, taken: -high}, 0.0)
            program.between(0.0, {amount: 1.0, taken: -low}, np.inf)
            parts.append(Part(taken, {amount: 1.0}, side))
            return
        first, last = grid.nearest_between(np.array([low, high]), np.array([low, low]), np.array([high, high]))
        if np.isnan(first) or first > last:
            return
        n = float(round((last - first) / grid.step))
        taken, steps = program.binary(), program.variable(0.0, n, whole=True)
        program.between(-np.inf, {steps: 1.0, taken: -n}, 0.0)
        parts.append(Part(taken, {taken: float(first), steps: grid.step}, side))

    def _levels(self, i: int, block: ValueBlock | LevelBlock) -> None:
        """Exactly one of the open levels; the missing one only for who has none."""
        program, own = self.program, float(self.freedom.own[0, i])
        lower, upper = (bound[:, block.columns] for bound in (self.freedom.lower, self.freedom.upper))
        x, mask = self.freedom.x[:, block.columns], self.freedom.open[i]
        self.level[i], self.stays[i] = {}, {}
        n_levels = len(self.freedom.schema.features[i].levels)
        for level in range(n_levels):
            setting = block.encode(np.array([float(level)]))
            if block.allowed(setting, x, lower, upper)[0] and (mask is None or mask[0, level]):
                self.level[i][level] = program.binary()
        if np.isnan(own) and block.allowed(x, x, lower, upper)[0]:
            self.level[i][n_levels] = program.binary()
        program.between(1.0, dict.fromkeys(self.level[i].values(), 1.0), 1.0)
        stay = self.level[i].get(n_levels if np.isnan(own) else int(own))
        if stay is not None:
            self.stays[i] = {stay: 1.0}
        if isinstance(block, ValueBlock):
            self.value[i] = {variable: float(level) for level, variable in self.level[i].items()}

    def nothing_left(self) -> bool:
        """Whether some feature has no value at all that the person may have."""
        return not all(self.parts.values()) or not all(self.level.values())

    def _at(self, name: str) -> int:
        return self.freedom.schema.names.index(name)

    def _sum(self, rule: Linear) -> None:
        """A weighted sum in its bounds; it does not bind where one of its numbers is a state and stays."""
        low, high = rule.ends()
        total: Sum = {}
        slack: Sum = {}
        for name, weight in rule.terms.items():
            i = self._at(name)
            for variable, worth in self.value[i].items():
                total[variable] = total.get(variable, 0.0) + weight * worth
            own, codes = self.freedom.own[0, i], self.freedom.schema.features[i].codes
            if np.isnan(own) or own in codes:
                slack |= self.stays[i]
        reach = sum(abs(weight) * self._size(self._at(name)) for name, weight in rule.terms.items())
        wide = reach + max(abs(bound) for bound in (low, high) if np.isfinite(bound))
        near = SLACK * max(1.0, wide)  # what sums of decimals lose breaks no rule
        for bound, sign in ((high, 1.0), (low, -1.0)):
            if np.isfinite(bound):
                row = {v: sign * c for v, c in total.items()}
                for variable in slack:
                    row[variable] = row.get(variable, 0.0) - wide
                self.program.between(-np.inf, row, sign * bound + near)

    def _limit(self, limit: AtMost) -> None:
        """At least all but so many of the features stay."""
        counted = np.flatnonzero(limit.counted(self.freedom.schema))
        stay: Sum = {}
        for i in counted:
            stay |= self.stays[int(i)]
        self.program.between(len(counted) - limit.changes, stay, np.inf)

    def _implication(self, rule: Implies) -> None:
        """The first feature stays (or goes another way), or the second moves far enough the right way."""
        drawn = self._drawn(self._at(rule.when), rule.when_change)
        follows = self._follows(self._at(rule.then), rule.then_change, rule.by)
        self.program.between(-np.inf, _plus(drawn, follows, -1.0), 0.0)

    def _drawn(self, i: int, way: str) -> Sum:
        """A sum that is 1 at least where a feature goes this way."""
        own = float(self.freedom.own[0, i])
        if way == "any" or np.isnan(own):
            return _plus({CONSTANT: 1.0}, self.stays[i], -1.0)
        sign = 1.0 if way == "up" else -1.0
        if i in self.level:
            return {variable: 1.0 for level, variable in self.level[i].items() if sign * (level - own) > 0}
        return {part.taken: 1.0 for part in self.parts[i] if part.side == sign}

    def _follows(self, i: int, way: str, by: float) -> Sum:
        """A sum that is 1 at most where a feature goes this way, far enough."""
        own = float(self.freedom.own[0, i])
        if np.isnan(own) or (way == "any" and by == 0):
            return _plus({CONSTANT: 1.0}, self.stays[i], -1.0)
        if way == "any":
            return _plus(self._follows(i, "up", by), self._follows(i, "down", by), 1.0)
        sign = 1.0 if way == "up" else -1.0
        if i in self.level:
            least = max(by, 1.0)
            return {variable: 1.0 for level, variable in self.level[i].items() if sign * (level - own) >= least}
        follows: Sum = {}
        for part in self.parts[i]:
            if part.side == sign:
                enough = self.program.binary()
                self.program.between(-np.inf, {enough: 1.0, part.taken: -1.0}, 0.0)
                moved = _plus({v: sign * c for v, c in part.value.items()}, {part.taken: 1.0}, -sign * own)
                self.program.between(0.0, _plus(moved, {enough: 1.0}, -by), np.inf)
                follows[enough] = 1.0
        return follows

    def _size(self, i: int) -> float:
        """More than a number, or the way to it from any other of its values, can be."""
        block = self.freedom.layout.features[i]
        assert isinstance(block, ValueBlock)
        own = [float(v) for v in self.freedom.own[:, i] if not np.isnan(v)]
        values = [block.grid.minimum, block.grid.maximum, *block.grid.codes, *own]
        return 2.0 * max(abs(value) for value in values) + 1.0

    def plan(self, outcome: Outcome) -> Array:
        """The encoded row (1 x D) that the variables of an outcome stand for."""
        assert outcome.variables is not None
        taken = outcome.variables
        values = self.freedom.own.copy()
        for i in range(values.shape[1]):
            if sum(taken[variable] for variable in self.stays[i]) > 0.5:
                continue
            if i in self.level:
                values[0, i] = max(self.level[i], key=lambda level: taken[self.level[i][level]])
            else:
                values[0, i] = sum(worth * taken[variable] for variable, worth in self.value[i].items())
        return self.freedom.layout.encode(values)


def _plus(one: Sum, other: Sum, factor: float) -> Sum:
    """Add a multiple of the other sum to the one."""
    return {v: one.get(v, 0.0) + factor * other.get(v, 0.0) for v in {**one, **other}}
