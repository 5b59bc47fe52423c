"""CFNOW, run by its own Python: ``python cfnow_worker.py FOLDER``; answers as :mod:`plain.serving` says.

Everything is as the library has it by default. It has no word for what must not change: a person's immutables are left
out of what it sees, and the model puts them back.
"""

import random
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cfnow import find_tabular
from plain.model import PlainModel
from plain.serving import serve

warnings.filterwarnings("ignore")


class Spread:
    """A row as the library wants it: numbers, then a 0 or 1 for each level; without the immutables."""

    def __init__(self, model: PlainModel) -> None:
        self.model, self.columns = model, model.columns
        self.n = len(self.columns.numbers)
        # levels of one feature are told by what stands before the underscore
        names = [f"number{i}" for i in range(self.n)]
        owners = list(self.columns.numbers)
        for i, (name, levels) in enumerate(self.columns.levels.items()):
            names += [f"level{i}_{place}" for place in range(len(levels))]
            owners += [name] * len(levels)
        self.free = np.array([owner not in self.columns.immutable for owner in owners])
        self.names = [name for name, free in zip(names, self.free, strict=True) if free]
        self.types = {name: "cat" if "_" in name else "num" for name in self.names}
        self.mean, self.std = np.zeros(len(names)), np.ones(len(names))
        self.mean[: self.n], self.std[: self.n] = self.columns.mean, self.columns.std

    def row(self, one: pd.DataFrame) -> Any:
        """All columns of a person, numbers in their own units."""
        return (self.columns.inputs(one) * self.std + self.mean)[0]

    def whole(self, own: Any, free: Any) -> Any:
        """Rows with the person's immutables back in their places."""
        rows = np.repeat(own[None], len(free), axis=0)
        rows[:, self.free] = free
        return rows

    def spelled(self, row: Any, names: list[str]) -> Any:
        """One row in the table's units."""
        codes, start = [], self.n
        for levels in self.columns.levels.values():
            codes.append(int(row[start : start + len(levels)].argmax()))
            start += len(levels)
        return self.columns.spelled(row[None, : self.n], np.array([codes], dtype=np.intp), names)[0]


def main(folder: Path) -> None:
    """Serve ``greedy``."""
    model = PlainModel.read(folder)
    spread = Spread(model)

    def answer(method: str, rows: pd.DataFrame) -> tuple[list[Any], float]:
        answers, seconds = [], 0.0
        for place in range(len(rows)):
            own = spread.row(rows.iloc[[place]])
            random.seed(place)
            np.random.seed(place)  # noqa: NPY002 (what the library draws from)
            started = time.perf_counter()
            found = _found(spread, own, method)
            seconds += time.perf_counter() - started
            answers.append(None if found is None else spread.spelled(found, list(rows.columns)))
        return answers, seconds

    serve(model.columns.table(folder / "queries.csv"), answer)


def _found(spread: Spread, own: Any, method: str) -> Any:
    """The nearest of what the library returns, where it returns anything."""

    def favourable(free: Any) -> Any:
        rows = spread.whole(own, np.asarray(free, dtype=float))
        return spread.model.favourable((rows - spread.mean) / spread.std)[:, None]

    person = pd.Series(own[spread.free], index=spread.names)
    try:
        made = find_tabular(person, favourable, feat_types=spread.types, cf_strategy=method, has_ohe=True)
    except ValueError as error:  # for some people the library joins an empty list to a table; they get no answer
        print(f"no answer: {error}", file=sys.stderr)
        return None
    return spread.whole(own, made.cfs[:1])[0] if len(made.cfs) else None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
