"""What every contender is given: one model, its training rows, and people whom it refuses, as files of a folder."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from gpae.benchmark.paper_size import PAPER_SIZE, fitted
from gpae.benchmark.peers.gpae_model import plain_gpae
from gpae.benchmark.peers.perceptron import trained_perceptron
from gpae.benchmark.peers.plain.columns import UNKNOWN
from gpae.benchmark.peers.plain.model import PlainModel
from gpae.dataset import Dataset
from gpae.errors import InputError
from gpae.files import written_whole
from gpae.progress import report

__all__ = ["EXPLAINER", "Case", "Learn", "gpae_classifier", "perceptron"]

EXPLAINER = "explainer.gpae"
"""The file of our own explainer, where the model is the classifier that it fitted."""

Learn: TypeAlias = Callable[[Path, pd.DataFrame, Dataset, int], PlainModel]
"""(folder, training rows as the data set has them, data set, seed) -> a model; it may leave files of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The files of a folder, read."""

    folder: Path
    model: PlainModel
    train: pd.DataFrame
    """Features, then the label: 1 for the favourable one."""
    queries: pd.DataFrame
    """Features of the held-out people whom the model refuses."""

    @classmethod
    def of(cls, folder: Path, dataset: Dataset, seed: int, learn: Learn | None = None) -> "Case":
        """Read the files of a folder; where there are none yet, learn a model (a perceptron) and write them."""
        if not (folder / "model.json").is_file():
            _make(folder, dataset, seed, learn or perceptron)
        model = PlainModel.read(folder)
        train, queries = (model.columns.table(folder / f"{part}.csv") for part in ("train", "queries"))
        return cls(folder, model, train, queries)

    def first(self, rows: int) -> pd.DataFrame:
        """The people whose answers are compared."""
        if len(self.queries) < rows:
            raise InputError(
                f"--rows {rows}: the model refuses only {len(self.queries)} held-out people; ask for fewer"
            )
        return self.queries.iloc[:rows]


def perceptron(folder: Path, train: pd.DataFrame, dataset: Dataset, seed: int) -> PlainModel:
    """A small network."""
    return trained_perceptron(_without_gaps(train, dataset), dataset, seed)


def gpae_classifier(folder: Path, train: pd.DataFrame, dataset: Dataset, seed: int) -> PlainModel:
    """A GPAE classifier of the paper's size, and the explainer that fitted it as a file.

    On the CPU, like everybody.
    """
    report(f"fitting GPAE on {dataset.name}", 0.0)
    # ways are measured in standard deviations, as everybody's answers will be
    explainer = fitted(dataset, seed, None, **PAPER_SIZE, device="cpu", units="deviations")
    explainer.save(folder / EXPLAINER)
    return plain_gpae(explainer, train)


def _make(folder: Path, dataset: Dataset, seed: int, learn: Learn) -> None:
    """Write the files; the last one is the sign that all are there."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = dataset.split(seed=seed)
    model = learn(folder, parts[0], dataset, seed)
    train, valid, test = (_without_gaps(part, dataset) for part in parts)
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
    text = {name: part[name].astype(object).where(part[name].notna(), UNKNOWN).astype(str) for name in levels}
    return part.assign(**text, **{dataset.label: (part[dataset.label] == dataset.favourable).astype(np.int64)})
