"""The classifier of the comparison as plain arrays, the same for every peer: a network with two hidden layers.

This file is also read by the peers' own Python, which knows nothing of gpae: NumPy and pandas are all that it needs.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


class Perceptron:
    """Standardised numbers and one-hot levels through two layers of rectified units."""

    def __init__(self, folder: Path) -> None:
        self.meta: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        with np.load(folder / "model.npz") as arrays:
            self.arrays = {name: arrays[name] for name in arrays.files}

    def inputs(self, frame: pd.DataFrame) -> np.ndarray:
        """The columns that the network sees."""
        numbers = frame[self.meta["numbers"]].to_numpy(dtype=float)
        parts = [(numbers - self.arrays["mean"]) / self.arrays["std"]]
        for name, levels in self.meta["levels"].items():
            parts.append((frame[name].astype(str).to_numpy()[:, None] == np.array(levels)).astype(float))
        return np.concatenate(parts, axis=1)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Probabilities of the two classes."""
        h = self.inputs(frame)
        for layer in range(2):
            h = np.maximum(h @ self.arrays[f"weight{layer}"] + self.arrays[f"bias{layer}"], 0.0)
        logit = (h @ self.arrays["weight2"] + self.arrays["bias2"])[:, 0]
        p = 1.0 / (1.0 + np.exp(-logit))
        return np.column_stack([1.0 - p, p])

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """0 or 1."""
        return (self.predict_proba(frame)[:, 1] > 0.5).astype(int)
