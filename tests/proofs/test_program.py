"""The program of what a person may become, against every row that there is."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.proofs.small_table import EVERY, RULES, SCHEMA, allowed, asked

from gpae.proofs.program import CONSTANT, AllowedRows, Sum


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
