"""Proof for trees: the largest sum of leaves that any allowed row can reach, by bounds and then by a program."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpae.proofs.certificate import Certificate, plain_row
from gpae.proofs.forest import Forest, Tree
from gpae.proofs.lp_text import lp_text
from gpae.proofs.program import CONSTANT, AllowedRows, Part, Program, Sum
from gpae.table.constraint import Array, is_number
from gpae.table.freedom import Freedom
from gpae.table.schema import Schema

__all__ = ["ForestOfFeatures", "by_trees"]

_STRAIGHT = 1e-6
"""Relative to its range: how straight the way from a number to a column of the model must be."""
_PER_NODE = 3e-5
"""Seconds for each node of a forest without which its program is not begun."""
_TO_BEGIN = 4.0
"""Times the seconds that it takes to write a program down, HiGHS takes before it looks at the clock."""
_BLUR = 1e-6
"""Of a number's range: so near a threshold, rounding in the model may send a value either way."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForestOfFeatures:
    """A forest, and how the columns that it splits on come from the features of a table.

    A column comes from one feature: from a number by a straight line, or from a level by a value for each.
    """

    forest: Forest
    feature: NDArray[np.intp]
    """Of each column."""
    slope: Array
    offset: Array
    levels: tuple[Array | None, ...]
    """For a column that comes from levels, its value for each level, the missing one last; None for others."""
    absent: Array
    """For a column that comes from a number, its value where that is missing; NaN where it stays missing."""

    @classmethod
    def probed(
        cls, forest: Forest, columns: Callable[[Array], Array], schema: Schema, rows: Array
    ) -> "ForestOfFeatures | None":
        """Find out by single changes; None if a column mixes features, or is no straight line of its number.

        To be used where the way to the columns is known to be of that kind (scaling, one-hot codes): the check here is
        on ``rows`` only.
        """
        base = np.array([_middle(rows[:, i]) for i in range(rows.shape[1])])
        start = columns(base[None])[0]
        n = len(start)
        feature, slope, offset = np.full(n, -1, dtype=np.intp), np.zeros(n), start.astype(np.float64)
        levels: list[Array | None] = [None] * n
        absent = np.full(n, np.nan)
        for i, one in enumerate(schema.features):
            number = is_number(one)
            tried = [one.minimum, one.maximum] if number else list(range(len(one.levels)))
            asked = np.repeat(base[None], len(tried) + 1, axis=0)
            asked[:-1, i] = tried
            asked[-1, i] = np.nan if one.missing else base[i]
            said = columns(asked).astype(np.float64)
            differs = (said != start) & ~(np.isnan(said) & np.isnan(start))
            mine = np.flatnonzero(differs.any(axis=0))
            if (feature[mine] >= 0).any():
                return None
            feature[mine] = i
            for c in mine:
                absent[c] = said[-1, c]
                if number:
                    width = float(tried[1] - tried[0])
                    slope[c] = (said[1, c] - said[0, c]) / width if width else 0.0
                    offset[c] = said[0, c] - slope[c] * float(tried[0])
                else:
                    levels[c] = said[:, c]
        found = cls(forest, feature, slope, offset, tuple(levels), absent)
        straight = np.nan_to_num(np.abs(found.columns(rows) - columns(rows)))
        size = 1.0 + np.nan_to_num(np.abs(columns(rows))).max()
        return found if straight.max() <= _STRAIGHT * size else None

    def columns(self, values: Array) -> Array:
        """The columns of rows in the user's units."""
        out = np.repeat(self.offset[None], len(values), axis=0)
        for c, i in enumerate(self.feature):
            if i < 0:
                continue
            v, parts = values[:, i], self.levels[c]
            missing = np.isnan(v)
            if parts is None:
                line = self.offset[c] + self.slope[c] * np.where(missing, 0.0, v)
                out[:, c] = np.where(missing, self.absent[c], line)
            else:
                out[:, c] = parts[np.where(missing, len(parts) - 1, v).astype(np.intp)]
        return out


def by_trees(
    freedom: Freedom, trees: ForestOfFeatures, seconds: float, margin: float = 0.0
) -> tuple[Certificate | None, Array | None]:
    """Return a proof that the one person has no plan, or the best allowed row that was found, or neither."""
    begun, nodes = time.monotonic(), sum(len(tree.column) for tree in trees.forest.trees)
    if seconds < nodes * _PER_NODE:  # a program that is begun takes as long as that, whatever its limit
        return None, None
    rows = AllowedRows.of(freedom)
    needed, slack = trees.forest.needed_for(margin), trees.forest.error
    if rows.nothing_left():
        return Certificate("tree program", -np.inf, needed), None
    program = _TreeProgram(rows, trees)
    goal, written = program.goal(), partial(_program, freedom, trees, needed)
    if program.easy_bound + slack <= needed:
        easily = {"bound": "tree by tree"}
        return Certificate("tree program", program.easy_bound + slack, needed, 0, easily, written), None
    took = time.monotonic() - begun
    if seconds <= _TO_BEGIN * took:
        return None, None
    outcome = rows.program.largest(goal, seconds - _TO_BEGIN * took)
    if outcome.bound + slack <= needed:
        best = {} if outcome.variables is None else {"best_row": plain_row(freedom, rows.plan(outcome))}
        return Certificate("tree program", outcome.bound + slack, needed, 0, best, written), None
    return None, None if outcome.variables is None else rows.plan(outcome)


def _program(freedom: Freedom, trees: ForestOfFeatures, needed: float) -> str:
    rows = AllowedRows.of(freedom)
    return lp_text(rows.program, _TreeProgram(rows, trees).goal(), needed, trees.forest.error)


@dataclass(slots=True, eq=False)
class _TreeProgram:
    """Adds to the program of a person's allowed rows which leaf each tree ends in."""

    rows: AllowedRows
    trees: ForestOfFeatures
    above: dict[tuple[int, float], int] = field(default_factory=dict)
    """The variable that is 1 where a number lies above a threshold in the user's units."""
    easy_bound: float = 0.0
    """What the trees reach if each could end in its best leaf that is open to the person."""

    def goal(self) -> Sum:
        """The sum of all trees' leaves."""
        goal: Sum = {CONSTANT: self.trees.forest.base}
        self.easy_bound = self.trees.forest.base
        for tree in self.trees.forest.trees:
            leaves = self._leaves(tree, 0)
            self.easy_bound += max(value for _, value in leaves)
            if len(leaves) == 1:
                goal[CONSTANT] += leaves[0][1]
                continue
            self.rows.program.between(1.0, {variable: 1.0 for variable, _ in leaves}, 1.0)
            goal |= dict(leaves)
        return goal

    def _leaves(self, tree: Tree, node: int) -> list[tuple[int, float]]:
        """The leaves below a node that the person may reach, each with a variable that is 1 if it is reached."""
        if tree.column[node] < 0:
            return [(self.rows.program.variable(0.0, 1.0), float(tree.value[node]))]
        ways = self._ways(tree, node)
        if isinstance(ways, bool):
            return self._leaves(tree, int(tree.left[node] if ways else tree.right[node]))
        left, right = (self._leaves(tree, int(side[node])) for side in (tree.left, tree.right))
        program = self.rows.program
        # leaves on the left need a row that goes left, those on the right one that does not
        program.between(-np.inf, _minus({variable: 1.0 for variable, _ in left}, ways), 0.0)
        program.between(-np.inf, _minus({variable: 1.0 for variable, _ in right}, _minus({CONSTANT: 1.0}, ways)), 0.0)
        return left + right

    def _ways(self, tree: Tree, node: int) -> "Sum | bool":
        """A sum that is 1 where a row goes left; True or False where every allowed row goes the same way."""
        c = int(tree.column[node])
        i, parts = int(self.trees.feature[c]), self.trees.levels[c]
        if i < 0:
            return bool(tree.goes_left(node, self.trees.offset[[c]])[0])
        if parts is not None:
            return self._by_level(tree, node, i, parts)
        return self._by_number(tree, node, i, c)

    def _by_level(self, tree: Tree, node: int, i: int, parts: Array) -> "Sum | bool":
        left = tree.goes_left(node, parts)
        to_left = {variable: 1.0 for level, variable in self.rows.level[i].items() if left[level]}
        if len(to_left) in (0, len(self.rows.level[i])):
            return len(to_left) > 0
        return to_left

    def _by_number(self, tree: Tree, node: int, i: int, c: int) -> "Sum | bool":
        slope, offset = self.trees.slope[c], self.trees.offset[c]
        own = float(self.rows.freedom.own[0, i])
        if np.isnan(own):
            return self._from_missing(tree, node, i, c)
        cut = (float(tree.threshold[node]) - offset) / slope if slope else np.nan
        if np.isnan(cut):
            return bool(tree.goes_left(node, np.array([offset]))[0])
        low, high = self._reach(i)
        blur = self._blur(i)
        if high < cut - blur:
            return bool(slope > 0)
        if low > cut + blur:
            return bool(slope < 0)
        above = self._above(i, cut, blur)
        return {CONSTANT: 1.0, above: -1.0} if slope > 0 else {above: 1.0}

    def _from_missing(self, tree: Tree, node: int, i: int, c: int) -> "Sum | bool":
        """Who has no value may stay without, which has a way of its own, or be given one."""
        stays_left = bool(tree.goes_left(node, self.trees.absent[[c]])[0])
        given = [part for part in self.rows.parts[i] if part.taken not in self.rows.stays[i]]
        left: Sum = dict.fromkeys(self.rows.stays[i], 1.0) if stays_left else {}
        slope, offset = self.trees.slope[c], self.trees.offset[c]
        if not slope:  # such as a column that says whether the number is missing
            given_left = bool(tree.goes_left(node, np.array([offset]))[0])
            left |= {part.taken: 1.0 for part in given if given_left}
        else:
            cut = (float(tree.threshold[node]) - offset) / slope
            for part in given:
                above = self._part_above(part, cut, self._blur(i))
                left |= _minus({part.taken: 1.0}, above) if slope > 0 else above
        every = {*self.rows.stays[i], *(part.taken for part in given)}
        return bool(left) if not left or left == dict.fromkeys(every, 1.0) else left

    def _part_above(self, part: Part, cut: float, blur: float) -> Sum:
        """A sum that is 1 where a part is taken with a value above a threshold, which may be endless."""
        program = self.rows.program
        low, high = _part_ends(program, part)
        if high < cut - blur:
            return {}
        if low > cut + blur:
            return {part.taken: 1.0}
        above = program.binary()
        program.between(-np.inf, {above: 1.0, part.taken: -1.0}, 0.0)
        # with the part taken: value <= cut + blur + (high - cut) above, and value >= cut - blur where above
        program.between(-np.inf, _minus(part.value, {above: max(high - cut, 0.0), part.taken: cut + blur}), 0.0)
        drop = max(cut - low, 0.0)
        program.between(0.0, _minus(part.value, {above: drop, part.taken: cut - blur - drop}), np.inf)
        return {above: 1.0}

    def _reach(self, i: int) -> tuple[float, float]:
        """The least and the largest value of a number over its parts."""
        ends = [_part_ends(self.rows.program, part) for part in self.rows.parts[i]]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def _blur(self, i: int) -> float:
        low, high = self._reach(i)
        size = max(abs(low), abs(high), high - low)
        return _BLUR * max(size, 1e-12)

    def _above(self, i: int, cut: float, blur: float) -> int:
        """The variable for a number above a threshold: free within the blur, decided outside of it."""
        if (i, cut) not in self.above:
            program, value = self.rows.program, self.rows.value[i]
            low, high = self._reach(i)
            above = program.binary()
            # value <= cut + blur + (high - cut) above, and value >= cut - blur - (cut - low) (1 - above)
            program.between(-np.inf, _minus(value, {above: max(high - cut, 0.0)}), cut + blur)
            program.between(cut - blur - max(cut - low, 0.0), _minus(value, {above: max(cut - low, 0.0)}), np.inf)
            self.above[i, cut] = above
        return self.above[i, cut]


def _part_ends(program: Program, part: Part) -> tuple[float, float]:
    """The least and the largest value of a number in one of its parts."""
    ends = [
        sum(worth * (1.0 if v == part.taken else bounds[v]) for v, worth in part.value.items())
        for bounds in (program.lower, program.upper)
    ]
    return ends[0], ends[1]


def _minus(one: Sum, other: Sum) -> Sum:
    return {v: one.get(v, 0.0) - other.get(v, 0.0) for v in {**one, **other}}


def _middle(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, 0.5, method="lower")) if len(known) else np.nan
