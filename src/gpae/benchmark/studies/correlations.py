"""Do counterfactuals hang together as the target class does: correlations of numbers, shares of levels."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import Mask, Rows
from gpae.artefact import State
from gpae.benchmark.contenders import contender
from gpae.benchmark.studies.paper import FREE
from gpae.benchmark.workbench import Workbench
from gpae.errors import InputError
from gpae.progress import report
from gpae.table.layout import Layout
from gpae.table.schema import Continuous, Feature, Integer

__all__ = ["METHODS", "Correlations", "correlation_difference", "level_shares", "make_correlations"]

METHODS = tuple(name for name in FREE if name != "gpae-inducing")

_DATASET = "lcd-term"

_READABLE = {
    "dti": "debt-to-income ratio",
    "loan_amnt": "loan amount",
    "int_rate": "interest rate",
    "annual_inc": "annual income",
    "last_fico_range_high": "FICO score",
    "term": "loan term",
}
"""The paper's words for the columns."""

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Correlations:
    """Counterfactuals of several methods beside the target class: M methods, F numbers, L levels of one category.

    Parameters
    ----------
    methods, features, category, levels
        Names: the paper's of the methods, readable ones of the columns.
    difference
        M x F x F: by how much the correlations of a method's counterfactuals differ from the target class's. NaN where
        a feature is the same in all of them.
    refused_difference, held_out_difference
        F x F, to compare with: that of the refused people as they are, and that of test rows which the data label
        favourable, which differ by chance only.
    shares, target_shares, refused_shares
        M x L, L and L: the share of each level.
    answered, asked
        M: how many of the refused people a method answered; and how many there are.
    """

    methods: tuple[str, ...]
    features: tuple[str, ...]
    category: str
    levels: tuple[str, ...]
    difference: Array
    refused_difference: Array
    held_out_difference: Array
    shares: Array
    target_shares: Array
    refused_shares: Array
    answered: NDArray[np.int64]
    asked: int

    def state(self) -> State:
        """Arrays as they are, names as JSON values."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value for name, value in own.items() if isinstance(value, np.ndarray)}
        names = {name: list(value) for name, value in own.items() if isinstance(value, tuple)}
        return State(arrays, {"category": self.category, "asked": self.asked, **names})

    @classmethod
    def from_state(cls, state: State) -> "Correlations":
        """Rebuild from :meth:`state`."""
        names: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in state.values.items()
        }
        arrays: dict[str, Any] = state.arrays
        return cls(**arrays, **names)


def correlation_difference(rows: Rows, target: Rows, columns: Mask) -> Array:
    """The absolute difference of two sets' correlation matrices in some columns (F x F).

    NaN where either correlation is undefined: a column that holds one value only has none.
    """
    return np.abs(_correlation(rows[:, columns]) - _correlation(target[:, columns]))


def _correlation(X: Rows) -> Array:
    if len(X) < 2:
        return np.full((X.shape[1], X.shape[1]), np.nan)
    centred = X - X.mean(axis=0)
    # a mean is rounded: what is the same in all rows must not become a spread of the last bit
    centred[:, np.ptp(X, axis=0) == 0] = np.nan
    unit = centred / np.linalg.norm(centred, axis=0)
    return np.clip(unit.T @ unit, -1.0, 1.0)


def level_shares(rows: Rows, layout: Layout, feature: int, n_levels: int) -> Array:
    """The share of rows with each level of a feature (L); a missing value counts for none. NaN of no rows."""
    if not len(rows):
        return np.full(n_levels, np.nan)
    rank = layout.to_user(rows)[:, feature]
    return np.asarray((rank[:, None] == np.arange(n_levels)).mean(axis=0))


def make_correlations(
    shared: Path | None = None,
    *,
    seed: int = 0,
    methods: Sequence[str] = METHODS,
    rows: int = 1000,
    small: bool = False,
) -> Correlations:
    """Let each method, as it is by default, answer the refused test rows of LCD with the loan term.

    The target class are the training rows that the data label favourable.

    Parameters
    ----------
    shared, seed, rows, small
        As in :class:`~gpae.benchmark.workbench.Workbench`; without a folder nothing is kept.
    methods
        Names in the registry, in the order of the figure.
    """
    with tempfile.TemporaryDirectory() as temporary:
        bench = Workbench(_DATASET, seed, rows, shared or Path(temporary), small)
        answers = []
        for i, name in enumerate(methods):
            report("comparing correlations", i / len(methods))
            found, _ = bench.answers(bench.fitted(name, None, False)[0], bench.refused)
            answers.append(found.counterfactual[found.found])
        return _compared(bench, [contender(name).label for name in methods], answers)


def _compared(bench: Workbench, methods: Sequence[str], answers: Sequence[Rows]) -> Correlations:
    layout, features = bench.layout(False), bench.schema(False).features
    target, held_out = (X[y == 1] for X, y in (bench.parts.train, bench.parts.test))
    category, name, levels = _category(features)

    def apart(X: Rows) -> Array:
        return correlation_difference(X, target, layout.continuous)

    def shares(X: Rows) -> Array:
        return level_shares(X, layout, category, len(levels))

    return Correlations(
        methods=tuple(methods),
        features=tuple(_readable(f.name) for f in features if isinstance(f, Continuous | Integer)),
        category=_readable(name),
        levels=levels,
        difference=np.stack([apart(X) for X in answers]),
        refused_difference=apart(bench.refused),
        held_out_difference=apart(held_out),
        shares=np.stack([shares(X) for X in answers]),
        target_shares=shares(target),
        refused_shares=shares(bench.refused),
        answered=np.array([len(X) for X in answers], dtype=np.int64),
        asked=len(bench.refused),
    )


def _category(features: Sequence[Feature]) -> tuple[int, str, tuple[str, ...]]:
    """The first feature that is a level, not a number: its place, its name and its levels."""
    for i, feature in enumerate(features):
        if not isinstance(feature, Continuous | Integer):
            return i, feature.name, tuple(str(level) for level in feature.levels)
    raise InputError("the data set has no column of levels")


def _readable(name: str) -> str:
    return _READABLE.get(name, name.replace("_", " "))
