"""Who is timed: an explainer fitted at the paper's size, and people whom it refuses."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpae.benchmark.paper_size import PAPER_SIZE, fitted
from gpae.dataset import Dataset
from gpae.tabular import TabularExplainer

__all__ = ["Subject", "refused"]

_ENOUGH = 10_000
"""Rows of a data set among which the refused are looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A fitted explainer, and a table of people whom its classifier refuses."""

    name: str
    explainer: TabularExplainer
    people: pd.DataFrame

    @classmethod
    def of(cls, folder: Path, dataset: Dataset, seed: int = 0) -> "Subject":
        """Fit to a data set's training rows, or read what was fitted before."""
        place = folder / f"{dataset.name}-{seed}.gpae"
        if not place.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            fitted(dataset, seed, None, **PAPER_SIZE).save(place)
        explainer = TabularExplainer.load(place)
        return cls(dataset.name, explainer, refused(explainer, dataset, seed))

    def rows(self, n: int, first: int = 0) -> pd.DataFrame:
        """N rows from some place on, the same people over and over."""
        return self.people.iloc[np.arange(first, first + n) % len(self.people)].reset_index(drop=True)

    def encoded(self, n: int) -> Any:
        """The same as the method sees them."""
        return self.explainer.learnt_.codec.encode(self.rows(n)).rows


def refused(explainer: TabularExplainer, dataset: Dataset, seed: int = 0) -> pd.DataFrame:
    """People of a data set whom an explainer's classifier refuses; those of the test rows come first."""
    parts = dataset.split(seed=seed)
    people = pd.concat(parts[::-1], ignore_index=True)[list(explainer.schema_.names)].iloc[:_ENOUGH]
    return people[explainer.predict_proba(people)[:, 1] < 0.5]
