"""Logistic regression as a classifier that can be saved, and that judges a row the same wherever it stands."""

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from gpae.arrays import Labels, Probabilities, Rows
from gpae.artefact import State
from gpae.errors import InputError
from gpae.numerics.aligned import product
from gpae.numerics.tiles import in_tiles

__all__ = ["LogisticClassifier"]


class LogisticClassifier:
    """p(favourable) = sigmoid(v'x + v_0), by scikit-learn at its defaults (L2 penalty, C = 1).

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = LogisticClassifier.fit(X, np.array([0, 0, 1, 1]))
    >>> (model.predict_proba(X)[:, 1] > 0.5).tolist()
    [False, False, True, True]
    """

    def __init__(self, weights: NDArray[np.float64], bias: float) -> None:
        self.weights = weights
        self.bias = bias

    @classmethod
    def fit(cls, X: Rows, y: Labels) -> "LogisticClassifier":
        """Fit to encoded rows and labels (1 is favourable)."""
        if len(np.unique(y)) < 2:
            raise InputError(
                "all rows have the same label; a logistic model needs rows of both classes (with mode='posthoc' the "
                "labels are the explained classifier's)"
            )
        model = LogisticRegression(max_iter=1000).fit(X, y)
        return cls(model.coef_[0].copy(), float(model.intercept_[0]))

    def decision_function(self, X: Rows) -> NDArray[np.float64]:
        """v'x + v_0."""
        column = torch.as_tensor(self.weights).unsqueeze(1)
        (logits,) = in_tiles(lambda x: (product(x, column).squeeze(1),), (torch.tensor(X, dtype=torch.float64),))
        return np.asarray(logits.numpy() + self.bias)

    def predict_proba(self, X: Rows) -> Probabilities:
        """Class probabilities, B x 2."""
        favourable = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        return np.column_stack([1 - favourable, favourable])

    def state(self) -> State:
        """The weights and the bias."""
        return State({"weights": self.weights}, {"bias": self.bias})

    @classmethod
    def from_state(cls, state: State) -> "LogisticClassifier":
        """Rebuild from :meth:`state`."""
        return cls(state.arrays["weights"], state.values["bias"])
