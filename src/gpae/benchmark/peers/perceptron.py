"""The fixed small network of the comparison: standardised numbers and one-hot levels through 32 and 32 units."""

import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from gpae.benchmark.peers.plain.columns import Array, TableColumns
from gpae.benchmark.peers.plain.model import PlainModel
from gpae.dataset import Dataset

__all__ = ["trained_perceptron"]

_LAYERS = (32, 32)


def trained_perceptron(train: pd.DataFrame, dataset: Dataset, seed: int) -> PlainModel:
    """Train on a table without gaps, labels 0 and 1; training stops on a tenth of the rows."""
    numbers = [name for name in dataset.features if pd.api.types.is_numeric_dtype(train[name])]
    levels = {name: sorted(train[name].unique().tolist()) for name in dataset.features if name not in numbers}
    meta = {
        "kind": "perceptron",
        "numbers": numbers,
        "levels": levels,
        "codes": {name: sorted(set(codes) & set(train[name])) for name, codes in dataset.codes.items()},
        "label": dataset.label,
        "immutable": list(dataset.masked),
    }
    values = train[numbers].to_numpy(dtype=float)
    scale: dict[str, Array] = {"mean": values.mean(axis=0), "std": values.std(axis=0)}
    inputs = TableColumns(meta, **scale).inputs(train)
    network = MLPClassifier(hidden_layer_sizes=_LAYERS, early_stopping=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(inputs, train[dataset.label].to_numpy())
    weights = {f"weight{i}": np.asarray(part) for i, part in enumerate(network.coefs_)}
    biases = {f"bias{i}": np.asarray(part) for i, part in enumerate(network.intercepts_)}
    return PlainModel(meta, scale | weights | biases)
