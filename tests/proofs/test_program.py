"""The program of what a person may become, against every row that there is."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpae.proofs.program import CONSTANT, AllowedRows, Sum
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Integer(name="age", minimum=20, maximum=24),
        Integer(name="debt", minimum=0, maximum=6, step=2, codes=(-9.0,)),
        Integer(name="income", minimum=0, maximum=5, missing=True),
        Ordinal(name="degree", levels=("school", "bachelor", "master")),
        Categorical(name="job", levels=("a", "b"), missing=True),
    ),
    label="loan",
    favourable="yes",
)
VALUES = [
    [20.0, 21, 22, 23, 24],
    [-9.0, 0, 2, 4, 6],
    [0.0, 1, 2, 3, 4, 5, np.nan],
    [0.0, 1, 2],
    [0.0, 1, np.nan],
]
EVERY = np.array(list(product(*VALUES)))
RULES: list[Any] = [
    "debt <= income",
    "age - debt >= 19",
    "2 * debt = 4 * income - 4",
    {"kind": "range", "feature": "age", "minimum": 21, "maximum": 23},
    {"kind": "range", "feature": "debt", "maximum": 2},
    {"kind": "within", "feature": "income", "up": 1, "down": 2},
    {"kind": "direction", "feature": "debt", "change": "down"},
    {"kind": "direction", "feature": "age", "change": "up"},
    {"kind": "transitions", "feature": "degree", "allowed": {"school": ["master"]}, "otherwise": "none"},
    {"kind": "one_of", "feature": "job", "levels": ["b"]},
    {"kind": "implies", "when": "degree", "then": "age", "then_change": "up", "by": 2},
    {"kind": "implies", "when": "income", "when_change": "up", "then": "debt"},
    {"kind": "implies", "when": "job", "then": "income", "by": 2},
    {"kind": "at_most", "changes": 2},
    {"kind": "at_most", "changes": 1, "features": ["age", "job"]},
    {"kind": "step", "feature": "age", "step": 2},
    {"kind": "fixed", "features": ["income"]},
]


def asked(rules: list[Any], own: np.ndarray) -> tuple[Freedom, Layout]:
    layout = Layout.fit(SCHEMA, list(EVERY.T))
    return Freedom.of(layout, SCHEMA, read_constraints(rules), layout.encode(own[None])), layout


def allowed(free: Freedom, layout: Layout) -> np.ndarray:
    """Every row that the person may become, by asking about each."""
    many = free.rows(np.zeros(len(EVERY), dtype=np.intp))
    return EVERY[many.permits(layout.encode(EVERY))]


def goal(rows: AllowedRows, slopes: np.ndarray) -> Sum:
    total: Sum = {CONSTANT: 0.5}
    for i, slope in enumerate(slopes):
        variables = rows.level[i].items() if i in rows.level else ()
        part = {variable: float(level) for level, variable in variables} if variables else rows.value[i]
        for variable, worth in part.items():
            total[variable] = total.get(variable, 0.0) + slope * worth
    return total


def worth(values: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """As the program sees it: a missing number is 0, a missing level the one behind the last."""
    filled = values.copy()
    filled[:, 2] = np.nan_to_num(filled[:, 2])
    filled[:, 4] = np.where(np.isnan(filled[:, 4]), 2.0, filled[:, 4])
    return 0.5 + filled @ slopes


@settings(max_examples=150, deadline=None)
@given(
    rules=st.lists(st.sampled_from(RULES), unique_by=str, max_size=5),
    person=st.integers(0, len(EVERY) - 1),
    seed=st.integers(0, 1000),
)
def test_the_best_allowed_row_is_the_best_of_all_rows_that_are_allowed(
    rules: list[Any], person: int, seed: int
) -> None:
    free, layout = asked(rules, EVERY[person])
    slopes = np.random.default_rng(seed).integers(-3, 4, len(SCHEMA.features)).astype(float)
    every = allowed(free, layout)
    rows = AllowedRows.of(free)
    outcome = rows.program.largest(goal(rows, slopes), seconds=10.0)
    assert outcome.proved
    if not len(every):
        assert outcome.variables is None
        return
    assert outcome.value == pytest.approx(worth(every, slopes).max(), abs=1e-6)
    assert outcome.bound == pytest.approx(outcome.value, abs=1e-6)
    assert free.permits(rows.plan(outcome))[0]
