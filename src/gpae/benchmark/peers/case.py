"""What every contender is given: one model, its training rows, and people whom it refuses, as files of a folder."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from gpae.benchmark.peers.perceptron import MultilayerPerceptron
from gpae.dataset import Dataset
from gpae.errors import InputError
from gpae.files import written_whole

__all__ = ["Case"]

_LAYERS = (32, 32)
_UNKNOWN = "?"
"""What is missing becomes a level, as in the file of the census: no peer takes missing values."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The files of a folder, read."""

    folder: Path
    model: MultilayerPerceptron
    train: pd.DataFrame
    """Features, then the label: 1 for the favourable one."""
    queries: pd.DataFrame
    """Features of the held-out people whom the model refuses."""

    @classmethod
    def of(cls, folder: Path, dataset: Dataset, seed: int) -> "Case":
        """Read the files of a folder; where there are none yet, train a model and write them."""
        if not (folder / "model.json").is_file():
            _make(folder, dataset, seed)
        model = MultilayerPerceptron.read(folder)
        return cls(folder, model, model.table(folder / "train.csv"), model.table(folder / "queries.csv"))

    def first(self, rows: int) -> pd.DataFrame:
        """The people whose answers are compared."""
        if len(self.queries) < rows:
            raise InputError(
                f"--rows {rows}: the model refuses only {len(self.queries)} held-out people; ask for fewer"
            )
        return self.queries.iloc[:rows]


def _make(folder: Path, dataset: Dataset, seed: int) -> None:
    """Write the files; the last one is the sign that all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    train, valid, test = (_without_gaps(part, dataset) for part in dataset.split(seed=seed))
    model = _trained(train, dataset, seed)
    held_out = pd.concat([test, valid], ignore_index=True)
    right = model.predict(test) == test[dataset.label]
    queries = held_out.loc[model.predict(held_out) == 0, list(dataset.features)]
    train.to_csv(folder / "train.csv", index=False)
    queries.to_csv(folder / "queries.csv", index=False)
    np.savez(folder / "model.npz", **model.arrays)  # type: ignore[arg-type]
    with written_whole(folder / "model.json") as temporary:
        temporary.write_text(json.dumps(model.meta | {"accuracy": float(right.mean())}, indent=1), encoding="utf-8")


def _without_gaps(part: pd.DataFrame, dataset: Dataset) -> pd.DataFrame:
    """Numbers as they are, everything else as text, the label as 0 and 1."""
    levels = [name for name in dataset.features if not pd.api.types.is_numeric_dtype(part[name])]
    text = {name: part[name].astype(object).where(part[name].notna(), _UNKNOWN).astype(str) for name in levels}
    return part.assign(**text, **{dataset.label: (part[dataset.label] == dataset.favourable).astype(np.int64)})


def _trained(train: pd.DataFrame, dataset: Dataset, seed: int) -> MultilayerPerceptron:
    """A network on standardised numbers and one-hot levels, which stops on a tenth of the rows."""
    numbers = [name for name in dataset.features if pd.api.types.is_numeric_dtype(train[name])]
    levels = {name: sorted(train[name].unique().tolist()) for name in dataset.features if name not in numbers}
    values = train[numbers].to_numpy(dtype=float)
    meta = {"numbers": numbers, "levels": levels, "label": dataset.label, "immutable": list(dataset.masked)}
    scale = {"mean": values.mean(axis=0), "std": values.std(axis=0)}
    inputs = MultilayerPerceptron(meta, scale).inputs(train)
    network = MLPClassifier(hidden_layer_sizes=_LAYERS, early_stopping=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(inputs, train[dataset.label].to_numpy())
    weights: dict[str, NDArray[np.float64]] = {f"weight{i}": part for i, part in enumerate(network.coefs_)}
    return MultilayerPerceptron(
        meta, scale | weights | {f"bias{i}": part for i, part in enumerate(network.intercepts_)}
    )
