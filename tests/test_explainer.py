"""What the contract does around every search: who is asked about, and whose answer is whose."""

import numpy as np
import pandas as pd
import pytest

from gpae.arrays import Labels, Probabilities, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.explainer import Explainer, Query
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema


class Above:
    """Favourable where the first column is above one half."""

    def predict_proba(self, X: Rows) -> Probabilities:
        return np.column_stack([1 - X[:, 0], X[:, 0]])


class ToTheTop(Explainer):
    """Answers with the upper bounds, and remembers what it was asked."""

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self.asked: list[Query] = []
        return Above()

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        self.asked.append(query)
        return np.arange(len(query.x)), query.upper

    def state(self) -> State:
        return State({}, {})

    def restore(self, state: State, layout: Layout) -> None:
        self.layout_ = layout


@pytest.fixture
def method() -> ToTheTop:
    frame = pd.DataFrame({"a": np.linspace(0, 1, 20), "b": np.linspace(1, 0, 20), "y": [0, 1] * 10})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    made = ToTheTop()
    made.fit(codec.encode(frame).rows, codec.labels(frame), layout=codec.layout)
    return made


def test_only_rows_that_are_refused_and_may_change_are_searched(method: ToTheTop) -> None:
    X = np.array([[0.1, 0.5], [0.9, 0.5], [0.2, 0.5], [0.3, 0.5], [0.8, 0.5]])
    fixed = np.array([[True, True], [True, True], [False, True], [True, False], [False, False]])
    answer = method.explain(X, fixed=fixed)
    (query,) = method.asked
    np.testing.assert_array_equal(query.x, X[[2, 3]])
    np.testing.assert_array_equal(query.lower == query.upper, fixed[[2, 3]])
    np.testing.assert_array_equal(query.lower[0], [0.0, 0.5])
    np.testing.assert_array_equal(answer.row, np.arange(5))
    assert list(answer.status) == ["infeasible", "already_favourable", "found", "not_found", "already_favourable"]
    np.testing.assert_array_equal(answer.counterfactual[2], [1.0, 0.5])
    assert np.isnan(answer.counterfactual[[0, 1, 3, 4]]).all()


def test_where_no_row_may_change_nothing_is_searched(method: ToTheTop) -> None:
    answer = method.explain(np.array([[0.1, 0.5], [0.9, 0.5]]), fixed=np.array([True, True]))
    assert not method.asked
    assert list(answer.status) == ["infeasible", "already_favourable"]
