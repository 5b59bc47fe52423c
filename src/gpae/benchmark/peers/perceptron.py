"""The classifier of the comparison as plain arrays, the same for every peer: a network with two hidden layers.

This file is also read by the peers' own Python, which knows nothing of gpae: NumPy and pandas are all that it needs.
It is written to be fast, for a slow model would hide how fast the one or the other asks it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]


class MultilayerPerceptron:
    """Standardised numbers and one-hot levels through two layers of rectified units.

    ``meta`` says what the columns of a table are: ``numbers`` (names), ``levels`` (a list for each other name),
    ``label`` and ``immutable``.
    """

    def __init__(self, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.meta, self.arrays = meta, arrays
        self.levels = {name: pd.Index(levels) for name, levels in meta["levels"].items()}

    @classmethod
    def read(cls, folder: Path) -> "MultilayerPerceptron":
        """The model of a folder."""
        with np.load(folder / "model.npz") as arrays:
            return cls(json.loads((folder / "model.json").read_text(encoding="utf-8")), dict(arrays))

    def table(self, path: Path) -> pd.DataFrame:
        """A table from a file, its levels as categories: so nobody spends time on comparing text."""
        frame = pd.read_csv(path, keep_default_na=False)
        typed = {name: pd.Categorical(frame[name].astype(str), categories=self.levels[name]) for name in self.levels}
        return frame.assign(**typed)

    def codes(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        """The place of each level in its list, n x number of lists; -1 for a level that is not there."""
        return np.stack([_places(frame[name], levels) for name, levels in self.levels.items()], axis=1)

    def encoded(self, numbers: Array, codes: NDArray[np.intp]) -> Array:
        """The columns that the network sees, from numbers and the places of levels."""
        scaled = (numbers - self.arrays["mean"]) / self.arrays["std"]
        width = scaled.shape[1] + sum(len(levels) for levels in self.levels.values())
        inputs = np.zeros((len(scaled), width))
        inputs[:, : scaled.shape[1]] = scaled
        start = scaled.shape[1]
        for place, levels in zip(codes.T, self.levels.values(), strict=True):
            known = np.flatnonzero(place >= 0)
            inputs[known, start + place[known]] = 1.0
            start += len(levels)
        return inputs

    def inputs(self, frame: pd.DataFrame) -> Array:
        """The columns that the network sees, from a table."""
        return self.encoded(frame[self.meta["numbers"]].to_numpy(dtype=float), self.codes(frame))

    def favourable(self, inputs: Array) -> Array:
        """The probability of the favourable class, from what the network sees."""
        h = inputs
        for layer in range(2):
            h = np.maximum(h @ self.arrays[f"weight{layer}"] + self.arrays[f"bias{layer}"], 0.0)
        logit = (h @ self.arrays["weight2"] + self.arrays["bias2"])[:, 0]
        return np.asarray(1.0 / (1.0 + np.exp(-logit)))

    def predict_proba(self, frame: pd.DataFrame) -> Array:
        """Probabilities of the two classes."""
        p = self.favourable(self.inputs(frame))
        return np.column_stack([1.0 - p, p])

    def predict(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """0 or 1."""
        return (self.favourable(self.inputs(frame)) > 0.5).astype(np.int64)


def _places(column: Any, levels: Any) -> NDArray[np.intp]:
    """Categories are looked up once, not once a row."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(levels.get_indexer(column))
    places = np.append(levels.get_indexer(column.cat.categories), -1)  # the last for what is missing
    return np.asarray(places[column.cat.codes.to_numpy()])
