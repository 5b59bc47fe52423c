"""The classifiers' table: what the GPAE's own classifier is measured against."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from gpae.arrays import Labels, Rows
from gpae.models.neural_network import NeuralNetwork

__all__ = ["CLASSIFIERS", "Parts", "classification_scores", "fitted"]

CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "LogReg": lambda seed: LogisticRegression(max_iter=1000),
    "SVM": lambda seed: SVC(),
    "Decision Tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "Adaboost": lambda seed: AdaBoostClassifier(random_state=seed),
    "Random Forest": lambda seed: RandomForestClassifier(random_state=seed),
    "Gaussian NB": lambda seed: GaussianNB(),
    "Neural Networks": lambda seed: NeuralNetwork(random_state=seed),
}
"""The paper's names; scikit-learn's defaults, as the paper gives none. SAE, GPAE-ind and GPAE come from the methods."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Encoded rows and labels to learn from, to choose by and to judge by."""

    train: tuple[Rows, Labels]
    valid: tuple[Rows, Labels]
    test: tuple[Rows, Labels]


def fitted(name: str, seed: int, parts: Parts) -> tuple[Any, float]:
    """A classifier of the table fitted to the training rows, and the seconds that took."""
    started = time.perf_counter()
    model = CLASSIFIERS[name](seed)
    if isinstance(model, NeuralNetwork):
        model.fit(*parts.train, validation=parts.valid)
    else:
        model.fit(*parts.train)
    return model, time.perf_counter() - started


def classification_scores(model: Any, X: Rows, y: Labels, positive: int = 1) -> dict[str, float]:
    """Accuracy, precision and recall at one half, and the area under the curve of the scores (not of the labels)."""
    score = _scores(model, X)
    label = np.asarray(model.predict(X)) if hasattr(model, "predict") else (score > 0.5).astype(np.int64)
    return {
        "accuracy": float(accuracy_score(y, label)),
        "precision": float(precision_score(y, label, pos_label=positive, zero_division=0.0)),
        "recall": float(recall_score(y, label, pos_label=positive)),
        "auc": float(roc_auc_score(y, score)),
    }


def _scores(model: Any, X: Rows) -> NDArray[np.float64]:
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])
