"""How a table becomes the columns that every plain model sees: standardised numbers, then one-hot levels."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["UNKNOWN", "Array", "Mask", "TableColumns"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
UNKNOWN = "?"
"""What is missing becomes a level, as in the file of the census: no peer takes missing values."""


class TableColumns:
    """The columns of a table.

    ``meta`` says what they are: ``numbers`` (names), ``levels`` (a list for each other name), ``label`` and
    ``immutable``; ``codes`` are the states among the numbers of a name (-9: no record), where it has any.
    """

    def __init__(self, meta: dict[str, Any], mean: Array, std: Array) -> None:
        self.mean, self.std = mean, std
        self.numbers: list[str] = meta["numbers"]
        self.levels = {name: pd.Index(levels) for name, levels in meta["levels"].items()}
        self.label: str = meta["label"]
        self.immutable: list[str] = meta["immutable"]
        self.states: dict[str, list[float]] = meta.get("codes", {})

    @property
    def width(self) -> int:
        """How many columns a model sees."""
        return len(self.numbers) + sum(len(levels) for levels in self.levels.values())

    def table(self, path: Path) -> pd.DataFrame:
        """A table from a file, its levels as categories: so nobody spends time on comparing text."""
        frame = pd.read_csv(path, keep_default_na=False, dtype=dict.fromkeys(self.levels, "str"))
        typed = {name: pd.Categorical(frame[name], categories=levels) for name, levels in self.levels.items()}
        return frame.assign(**typed)

    def codes(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        """The place of each level in its list, n x number of lists; -1 for a level that is not there."""
        places = [_places(frame[name], levels) for name, levels in self.levels.items()]
        return np.stack(places, axis=1) if places else np.zeros((len(frame), 0), dtype=np.intp)

    def encoded(self, numbers: Array, codes: NDArray[np.intp]) -> Array:
        """The columns from numbers and the places of levels."""
        inputs = np.zeros((len(numbers), self.width))
        inputs[:, : len(self.numbers)] = (numbers - self.mean) / self.std
        start = len(self.numbers)
        for place, levels in zip(codes.T, self.levels.values(), strict=True):
            known = np.flatnonzero(place >= 0)
            inputs[known, start + place[known]] = 1.0
            start += len(levels)
        return inputs

    def inputs(self, frame: pd.DataFrame) -> Array:
        """The columns from a table."""
        return self.encoded(frame[self.numbers].to_numpy(dtype=float), self.codes(frame))

    def spelled(self, numbers: Array, codes: NDArray[np.intp], names: list[str]) -> list[dict[str, Any]]:
        """Rows with the names of their levels, in the order of ``names``."""
        cells: dict[str, Any] = {name: numbers[:, i].tolist() for i, name in enumerate(self.numbers)}
        for place, (name, levels) in zip(codes.T, self.levels.items(), strict=True):
            cells[name] = levels.to_numpy()[place].tolist()
        return [dict(zip(names, row, strict=True)) for row in zip(*(cells[name] for name in names), strict=True)]


def _places(column: Any, levels: Any) -> NDArray[np.intp]:
    """Categories are looked up once, not once a row."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(levels.get_indexer(column))
    places = np.append(levels.get_indexer(column.cat.categories), -1)  # the last for what is missing
    return np.asarray(places[column.cat.codes.to_numpy()])
