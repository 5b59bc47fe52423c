"""Proof for linear models: the largest logit that any allowed row can have, by a mixed-integer program."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gpae.proofs.certificate import Certificate, plain_row
from gpae.proofs.lp_text import lp_text
from gpae.proofs.program import CONSTANT, AllowedRows, Sum
from gpae.table.constraint import Array, is_number
from gpae.table.freedom import Freedom
from gpae.table.schema import Schema

__all__ = ["Affine", "by_linear_program"]

_EXACT = 1e-5
"""Relative to the logits' size: how well a model must be a sum of parts to be taken for one; single precision is."""
_WORSE = 10.0
"""Times what was seen on rows, it may miss the model's logit elsewhere."""


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """A logit that is a sum of one part for each feature: a slope times a number, or a value for each level."""

    constant: float
    slopes: Array
    """F; 0 for features with levels."""
    levels: tuple[Array | None, ...]
    """For each feature with levels the part of each, the missing one last; None for numbers."""
    missing: Array
    """F: the part of a number that is missing, beside which its slope is not counted; NaN where none can be."""
    error: float
    """By how much it may miss the model's own logit."""

    @classmethod
    def probed(cls, logits: Callable[[Array], Array], schema: Schema, rows: Array) -> "Affine | None":
        """Find the parts by asking about single changes, and check the sum on rows; None if it does not hold there.

        To be used of models that are linear by their nature: for others a check on rows proves nothing.
        """
        base = np.array([_ordinary(rows[:, i]) for i in range(rows.shape[1])])
        asked, meaning = [base], [(-1, np.nan)]
        for i, feature in enumerate(schema.features):
            if is_number(feature):
                values = [float(feature.minimum), float(feature.maximum)]
            else:
                values = [float(rank) for rank in range(len(feature.levels))]
            for value in [*values, np.nan] if feature.missing else values:
                one = base.copy()
                one[i] = value
                asked.append(one)
                meaning.append((i, value))
        said = logits(np.array(asked))
        affine = cls._from_answers(schema, base, said, meaning)
        apart = float(np.abs(affine.of(rows) - logits(rows)).max())
        size = 1.0 + float(np.abs(said).max())
        return replace(affine, error=_WORSE * apart + 1e-12 * size) if apart <= _EXACT * size else None

    @classmethod
    def _from_answers(cls, schema: Schema, base: Array, said: Array, meaning: list[tuple[int, float]]) -> "Affine":
        n = len(schema.features)
        slopes, missing, constant = np.zeros(n), np.full(n, np.nan), float(said[0])
        levels: list[Array | None] = []
        answers = {key: float(value) - constant for key, value in zip(meaning, said, strict=True)}
        absent = {i: part for (i, value), part in answers.items() if np.isnan(value)}
        for i, feature in enumerate(schema.features):
            if not is_number(feature):
                parts = [answers[i, float(rank)] for rank in range(len(feature.levels))]
                levels.append(np.array([*parts, absent.get(i, np.nan)]))
                continue
            levels.append(None)
            low, high = float(feature.minimum), float(feature.maximum)
            slopes[i] = (answers[i, high] - answers[i, low]) / (high - low) if high > low else 0.0
            # the parts of numbers count from zero, not from the base
            constant -= slopes[i] * base[i]
            missing[i] = absent.get(i, np.nan) + slopes[i] * base[i]
        return cls(constant, slopes, tuple(levels), missing, 0.0)

    def of(self, values: Array) -> Array:
        """The logits of rows in the user's units."""
        total = np.full(len(values), self.constant)
        for i, parts in enumerate(self.levels):
            absent = np.isnan(values[:, i])
            if parts is None:
                total += np.where(absent, self.missing[i], self.slopes[i] * np.where(absent, 0.0, values[:, i]))
            else:
                total += parts[np.where(absent, len(parts) - 1, values[:, i]).astype(np.intp)]
        return total

    def goal(self, rows: AllowedRows) -> Sum:
        """The logit as a sum of a program's variables."""
        goal: Sum = {CONSTANT: self.constant}
        own = rows.freedom.own[0]
        for i, parts in enumerate(self.levels):
            if parts is not None:
                goal |= {variable: float(parts[level]) for level, variable in rows.level[i].items()}
                continue
            for variable, worth in rows.value[i].items():
                goal[variable] = goal.get(variable, 0.0) + self.slopes[i] * worth
            if np.isnan(own[i]):
                goal |= {variable: float(self.missing[i]) for variable in rows.stays[i]}
        return goal


def _ordinary(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, 0.5, method="lower")) if len(known) else np.nan


def by_linear_program(
    freedom: Freedom, affine: Affine, needed: float, seconds: float
) -> tuple[Certificate | None, Array | None]:
    """Return a proof that the one person has no plan, or the allowed row of largest logit, or neither: time ran out."""
    rows = AllowedRows.of(freedom)
    outcome = rows.program.largest(affine.goal(rows), seconds)
    if outcome.bound + affine.error <= needed:
        best = {} if outcome.variables is None else {"best_row": plain_row(freedom, rows.plan(outcome))}
        program = partial(_program, freedom, affine, needed)
        return Certificate("linear program", outcome.bound + affine.error, needed, details=best, program=program), None
    return None, None if outcome.variables is None else rows.plan(outcome)


def _program(freedom: Freedom, affine: Affine, needed: float) -> str:
    rows = AllowedRows.of(freedom)
    return lp_text(rows.program, affine.goal(rows), needed, affine.error)
