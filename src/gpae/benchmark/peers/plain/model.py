"""A classifier as plain arrays, the same for every peer: columns of a table, and a function of the columns.

It is written to be fast, for a slow model would hide how fast the one or the other asks it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from . import fourier, perceptron
from .columns import Array, TableColumns

__all__ = ["PlainModel"]

_LOGITS = {"perceptron": perceptron.logit, "gpae": fourier.logit}


class PlainModel:
    """Columns and a function of them.

    ``meta`` is that of the columns, and ``kind`` says which function. ``arrays`` are that function's, with ``mean``
    and ``std`` of the numbers. ``xp`` is NumPy, or a library with the same functions.
    """

    def __init__(self, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.meta, self.arrays = meta, arrays
        self.columns = TableColumns(meta, arrays["mean"], arrays["std"])
        self._logit = _LOGITS[meta["kind"]]

    @classmethod
    def read(cls, folder: Path) -> "PlainModel":
        """The model of a folder."""
        with np.load(folder / "model.npz") as arrays:
            return cls(json.loads((folder / "model.json").read_text(encoding="utf-8")), dict(arrays))

    def favourable(self, inputs: Any, xp: Any = np) -> Any:
        """The probability of the favourable class, from the columns."""
        return 1.0 / (1.0 + xp.exp(-self._logit(self.arrays, inputs, xp)))

    def probabilities(self, inputs: Any, xp: Any = np) -> Any:
        """Those of the two classes, from the columns."""
        p = self.favourable(inputs, xp)
        return xp.stack([1.0 - p, p], axis=-1)

    def predict_proba(self, frame: pd.DataFrame) -> Array:
        """Probabilities of the two classes."""
        return np.asarray(self.probabilities(self.columns.inputs(frame)))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """0 or 1."""
        return np.asarray(self.favourable(self.columns.inputs(frame)) > 0.5).astype(np.int64)
