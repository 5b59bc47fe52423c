"""NICE, run by its own Python: ``python nice_worker.py FOLDER``; answers as :mod:`serving` says.

The library wants arrays and one row at a time: levels are given as their places in the list of levels.
"""

import sys
import time
import warnings
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nice import NICE
from numpy.typing import NDArray
from perceptron import MultilayerPerceptron
from serving import serve  # type: ignore[import-not-found]
from sklearn.neural_network import MLPRegressor

warnings.filterwarnings("ignore")


class Coded:
    """Tables as arrays of numbers, columns in the table's order, and the model as a function of such arrays."""

    def __init__(self, model: MultilayerPerceptron, names: list[str]) -> None:
        self.model, self.names = model, names
        self.numbers = [names.index(name) for name in model.meta["numbers"]]
        self.levels = [names.index(name) for name in model.levels]

    def rows(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """A table as an array."""
        X = np.zeros((len(frame), len(self.names)))
        X[:, self.numbers] = frame[self.model.meta["numbers"]].to_numpy(dtype=float)
        X[:, self.levels] = self.model.codes(frame)
        return X

    def inputs(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns that the network sees."""
        return self.model.encoded(X[:, self.numbers], X[:, self.levels].astype(np.intp))

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the model says."""
        p = self.model.favourable(self.inputs(X))
        return np.column_stack([1.0 - p, p])

    def spelled(self, row: NDArray[np.float64]) -> dict[str, Any]:
        """One row with the names of its levels."""
        out: dict[str, Any] = dict(zip(self.names, row.tolist(), strict=True))
        return out | {name: levels[int(out[name])] for name, levels in self.model.levels.items()}


def main(folder: Path) -> None:
    """Serve ``sparsity`` and ``plausibility``."""
    model = MultilayerPerceptron.read(folder)
    train, queries = model.table(folder / "train.csv"), model.table(folder / "queries.csv")
    coded = Coded(model, list(queries.columns))
    rows, labels = coded.rows(train), train[model.meta["label"]].to_numpy()
    strange = _reconstruction_error(coded, rows)
    explainers = {method: _explainer(coded, rows, labels, method, strange) for method in ("sparsity", "plausibility")}

    def answer(method: str, asked: pd.DataFrame) -> tuple[list[Any], float]:
        answers, seconds = [], 0.0
        for row in coded.rows(asked):
            started = time.perf_counter()
            found = explainers[method].explain(row[None])
            seconds += time.perf_counter() - started
            answers.append(coded.spelled(np.asarray(found)[0]))
        return answers, seconds

    serve(queries, answer)


def _explainer(coded: Coded, rows: Any, labels: Any, method: str, strange: Callable[..., Any]) -> Any:
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
