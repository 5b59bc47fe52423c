"""Correlations and shares: worked by hand, and of small methods on a small table."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpae.artefact import read_artefact, write_artefact
from gpae.benchmark.studies.correlations import (
    METHODS,
    Correlations,
    correlation_difference,
    level_shares,
    make_correlations,
)
from gpae.table.codec import Codec
from gpae.table.schema import Schema
from tests.conftest import loans


class Loans:
    name, paper_name, label, favourable, masked = "loans", "Loans", "granted", "yes", ("age",)

    def split(self, seed: int) -> tuple[pd.DataFrame, ...]:
        table = loans(500, seed=seed)
        return table[:300], table[300:400], table[400:]


@pytest.fixture(scope="module", autouse=True)
def _loans_is_a_data_set() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpae.benchmark.workbench.datasets.load", lambda name: Loans())
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Correlations:
    return make_correlations(tmp_path_factory.mktemp("shared"), methods=["gpae", "logistic"], small=True)


def test_the_difference_of_two_correlations_worked_by_hand() -> None:
    # x = -1, 0, 1 with y = -1, 2, -1 has correlation 0; with z = -1, 0, 1 it has 1. The last column is no number.
    rows = np.array([[-1.0, -1.0, 9.0], [0.0, 2.0, 0.0], [1.0, -1.0, 9.0]])
    target = np.array([[-1.0, -1.0, 0.0], [0.0, 0.0, 7.0], [1.0, 1.0, 0.0]])
    numbers = np.array([True, True, False])
    np.testing.assert_allclose(correlation_difference(rows, target, numbers), [[0, 1], [1, 0]], atol=1e-12)
    falling = target * [1.0, -1.0, 1.0]
    np.testing.assert_allclose(correlation_difference(falling, target, numbers), [[0, 2], [2, 0]], atol=1e-12)


def test_correlations_are_those_of_numpy_and_scaling_a_column_does_not_change_them() -> None:
    rng = np.random.default_rng(0)
    rows, target = rng.normal(size=(2, 30, 4)) @ rng.normal(size=(4, 4))
    expected = np.abs(np.corrcoef(rows.T) - np.corrcoef(target.T))
    every = np.ones(4, dtype=bool)
    np.testing.assert_allclose(correlation_difference(rows, target, every), expected, atol=1e-12)
    np.testing.assert_allclose(correlation_difference(3 * rows + 1, 3 * target + 1, every), expected, atol=1e-12)


def test_what_does_not_vary_has_no_correlation() -> None:
    rows = np.array([[0.1, 0.2], [0.1, 0.4], [0.1, 0.7]])
    target = np.random.default_rng(0).random((9, 2))
    apart = correlation_difference(rows, target, np.array([True, True]))
    np.testing.assert_array_equal(np.isnan(apart), [[True, True], [True, False]])
    assert np.isnan(correlation_difference(rows[:1], target, np.array([True, True]))).all()


def test_shares_are_counted_for_one_hot_groups_and_for_binary_columns() -> None:
    people = pd.DataFrame(
        {
            "job": ["a", "b", "c", "b"],
            "term": ["36", "60", "36", "36"],
            "income": [1.5, 2.5, 3.5, 4.5],
            "paid": ["no", "yes", "no", "yes"],
        }
    )
    codec = Codec.fit(people, Schema.infer(people, label="paid", favourable="yes"))
    rows, names = codec.encode(people).rows, codec.layout.names
    np.testing.assert_allclose(level_shares(rows, codec.layout, names.index("job"), 3), [0.25, 0.5, 0.25])
    np.testing.assert_allclose(level_shares(rows[1:], codec.layout, names.index("job"), 3), [0, 2 / 3, 1 / 3])
    assert np.isnan(level_shares(rows[:0], codec.layout, names.index("job"), 3)).all()


def test_every_method_of_the_papers_table_but_the_inducing_one_is_compared() -> None:
    assert len(METHODS) == 10
    assert "gpae-inducing" not in METHODS


def test_each_method_is_compared_with_the_rows_labelled_favourable(made: Correlations) -> None:
    train = Loans().split(0)[0]
    paid = train[train.granted == "yes"]
    assert made.methods == ("GPAE", "LogReg")
    assert made.features == ("income", "debt", "loan", "age", "score")
    assert (made.category, made.levels) == ("job", ("clerk", "cook", "nurse", "owner"))
    np.testing.assert_allclose(made.target_shares, paid.job.value_counts(normalize=True)[list(made.levels)])
    assert made.difference.shape == (2, 5, 5)
    np.testing.assert_allclose(np.diagonal(made.difference, axis1=1, axis2=2), 0, atol=1e-12)
    np.testing.assert_allclose([*made.shares.sum(axis=1), made.refused_shares.sum()], 1)
    assert not np.array_equal(made.shares[0], made.shares[1])
    assert 0 < made.asked < 100
    assert (made.answered <= made.asked).all()


def test_what_a_figure_needs_is_saved_and_read_back(made: Correlations, tmp_path: Path) -> None:
    write_artefact(tmp_path / "c.figure", made.state())
    again = Correlations.from_state(read_artefact(tmp_path / "c.figure"))
    for name in Correlations.__dataclass_fields__:
        before, after = getattr(made, name), getattr(again, name)
        assert type(before) is type(after), name
        np.testing.assert_array_equal(before, after)
