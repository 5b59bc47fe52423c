"""The classifiers' table."""

import numpy as np
import pytest

from gpae.benchmark.classifiers import CLASSIFIERS, Parts, classification_scores, fitted
from gpae.errors import InputError
from gpae.models.neural_network import NeuralNetwork


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).random((n, 4))
    return X, (X[:, 0] + X[:, 1] ** 2 > 0.8).astype(np.int64)


@pytest.mark.parametrize("name", sorted(set(CLASSIFIERS) - {"Neural Networks"}))
def test_every_classifier_of_the_table_learns(name: str) -> None:
    model, seconds = fitted(name, 0, Parts(rows(400, 0), rows(100, 1), rows(200, 2)))
    scores = classification_scores(model, *rows(200, 2))
    assert scores["accuracy"] > 0.85
    assert scores["auc"] > 0.85
    assert seconds > 0


@pytest.mark.parametrize("activation", ["relu", "cosine"])
def test_the_neural_network_learns_and_gives_a_row_the_same_value_in_any_batch(activation: str) -> None:
    model = NeuralNetwork(50, 3, activation=activation, learning_rate=1e-2, max_epochs=40, random_state=0)  # type: ignore[arg-type]
    model.fit(*rows(600, 0))
    X, y = rows(200, 2)
    assert (model.predict(X) == y).mean() > 0.9
    np.testing.assert_array_equal(model.decision_function(X[::-1])[::-1], model.decision_function(X))
    np.testing.assert_array_equal(model.predict_proba(X[:1]), model.predict_proba(X)[:1])


class _Fixed:
    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.array([1, 1, 0, 0])

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.array([2.0, 0.5, -0.1, -3.0])


def test_the_area_is_of_the_scores_and_precision_of_the_class_asked_for() -> None:
    y = np.array([1, 0, 1, 0])
    scores = classification_scores(_Fixed(), np.zeros((4, 1)), y)
    assert scores == {"accuracy": 0.5, "precision": 0.5, "recall": 0.5, "auc": 0.75}  # of labels it would be 0.5
    y = np.array([0, 1, 1, 1])
    positive, negative = (classification_scores(_Fixed(), np.zeros((4, 1)), y, positive=p) for p in (1, 0))
    assert (positive["precision"], negative["precision"]) == (0.5, 0.0)
    assert (positive["recall"], negative["recall"]) == (pytest.approx(1 / 3), 0.0)


@pytest.mark.parametrize(
    ("name", "value"), [("activation", "tanh"), ("n_hidden", 0), ("max_epochs", 0), ("patience", 0), ("n_latent", 2.5)]
)
def test_a_network_that_cannot_be_is_refused(name: str, value: object) -> None:
    with pytest.raises(InputError, match=name):
        NeuralNetwork(**{name: value}).fit(*rows(50, 0))  # type: ignore[arg-type]
