import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from gpae.errors import InputError
from gpae.models.logistic import LogisticClassifier


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((300, 5))
    return X, (X @ [1, -2, 0.5, 0, 1] + 0.2 * rng.normal(size=300) > 0.2).astype(int)


def test_it_is_scikit_learns_model_and_survives_being_saved() -> None:
    X, y = data()
    model = LogisticClassifier.fit(X, y)
    expected = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    again = LogisticClassifier.from_state(model.state())
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_row_is_judged_the_same_alone_and_in_company() -> None:
    X, y = data()
    model = LogisticClassifier.fit(X, y)
    whole = model.decision_function(X)
    for i in range(0, 300, 17):
        assert model.decision_function(X[i : i + 1])[0] == whole[i]


def test_rows_of_one_class_are_refused() -> None:
    X, y = data()
    with pytest.raises(InputError, match="same label"):
        LogisticClassifier.fit(X, np.ones_like(y))
