"""NICE, run by its own Python: ``python nice_worker.py FOLDER``; answers as :mod:`plain.serving` says.

The library wants arrays and one row at a time: levels are given as their places in the list of levels.
"""

import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nice import NICE
from numpy.typing import NDArray
from plain.model import PlainModel
from plain.serving import serve
from sklearn.neural_network import MLPRegressor

warnings.filterwarnings("ignore")


class Coded:
    """Tables as arrays of numbers, columns in the table's order, and the model as a function of such arrays."""

    def __init__(self, model: PlainModel, names: list[str]) -> None:
        self.model, self.columns, self.names = model, model.columns, names
        self.numbers = [names.index(name) for name in self.columns.numbers]
        self.levels = [names.index(name) for name in self.columns.levels]

    def rows(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """A table as an array."""
        X = np.zeros((len(frame), len(self.names)))
        X[:, self.numbers] = frame[self.columns.numbers].to_numpy(dtype=float)
        X[:, self.levels] = self.columns.codes(frame)
        return X

    def inputs(self, X: NDArray[np.float64]) -> Any:
        """The columns that the model sees."""
        return self.columns.encoded(X[:, self.numbers], X[:, self.levels].astype(np.intp))

    def predict_proba(self, X: NDArray[np.float64]) -> Any:
        """What the model says."""
        return self.model.probabilities(self.inputs(X))

    def spelled(self, X: NDArray[np.float64]) -> Any:
        """Rows with the names of their levels."""
        return self.columns.spelled(X[:, self.numbers], X[:, self.levels].astype(np.intp), self.names)


def main(folder: Path) -> None:
    """Serve ``sparsity`` and ``plausibility``."""
    model = PlainModel.read(folder)
    train, queries = (model.columns.table(folder / f"{part}.csv") for part in ("train", "queries"))
    coded = Coded(model, list(queries.columns))
    rows, labels = coded.rows(train), train[model.columns.label].to_numpy()

    @cache
    def explainer(method: str) -> Any:
        strange = _reconstruction_error(coded, rows) if method == "plausibility" else None
        return _explainer(coded, rows, labels, method, strange)

    def answer(method: str, asked: pd.DataFrame) -> tuple[list[Any], float]:
        answers, seconds, search = [], 0.0, explainer(method)
        for row in coded.rows(asked):
            started = time.perf_counter()
            found = search.explain(row[None])
            seconds += time.perf_counter() - started
            answers += coded.spelled(np.asarray(found)[:1])
        return answers, seconds

    serve(queries, answer)


def _explainer(coded: Coded, rows: Any, labels: Any, method: str, strange: Callable[..., Any] | None) -> Any:
    return NICE(
        X_train=rows.copy(),
        predict_fn=coded.predict_proba,
        y_train=labels,
        cat_feat=coded.levels,
        num_feat=coded.numbers,
        optimization=method,
        auto_encoder=strange,
    )


def _reconstruction_error(coded: Coded, rows: Any) -> Callable[[Any], Any]:
    """The auto-encoder that ``plausibility`` wants from its user: of the shape that its authors took."""
    inputs = coded.inputs(rows)
    half, quarter = ceil(inputs.shape[1] / 2), ceil(inputs.shape[1] / 4)
    layers = (half, quarter, 2, quarter, half)
    network = MLPRegressor(hidden_layer_sizes=layers, max_iter=20, random_state=0).fit(inputs, inputs)
    return lambda X: np.square(network.predict(coded.inputs(X)) - coded.inputs(X)).mean(axis=1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
