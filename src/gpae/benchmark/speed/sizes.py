"""How cost grows with the size of the problem: columns D, features S, latents d, plans k."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpae.benchmark.paper_size import PAPER_SIZE, fitted
from gpae.benchmark.speed.growth import exponent, seconds_of
from gpae.benchmark.speed.subject import Subject, refused
from gpae.dataset import Dataset
from gpae.progress import report

__all__ = ["SIZES", "by_sizes"]

SIZES: dict[str, tuple[float, ...]] = {
    "S": (250, 500, 1000, 2000, 4000),
    "d": (1, 2, 4, 8, 16),
    "D": (0.25, 0.5, 0.75, 1.0),
    "k": (1, 2, 4, 8),
}
"""What is varied, and over which values; columns are shares of the data set's features."""
_QUICK = {"max_epochs": 5, "density_features": 500}
"""Trained for as long as it takes to be a surface like others: what is timed is the search on it."""


def by_sizes(
    dataset: Dataset, n_rows: int = 2000, sizes: dict[str, tuple[float, ...]] | None = None, seed: int = 0
) -> pd.DataFrame:
    """Seconds of a plan against each size, the others as in the paper, and the exponent that fits.

    Plans by the method itself on encoded rows; against k by the search for several, which can search for one too.
    """
    tables = [
        _line_up(dataset, name, values, n_rows, seed) for name, values in (SIZES if sizes is None else sizes).items()
    ]
    return pd.concat(tables, ignore_index=True)


def _line_up(dataset: Dataset, name: str, values: Sequence[float], n_rows: int, seed: int) -> pd.DataFrame:
    lines = []
    for number, (size, subject, k) in enumerate(_subjects(dataset, name, values, seed)):
        report(f"{name} = {size:g} on {dataset.name}", number / len(values))
        seconds = seconds_of(lambda subject=subject, k=k: _search(subject, n_rows, k))  # type: ignore[misc]
        lines.append({"dataset": dataset.name, "varied": name, "size": size, "rows": n_rows, **seconds})
    table = pd.DataFrame(lines)
    return table.assign(us_per_row=1e6 * table["seconds"] / n_rows, exponent=exponent(table["size"], table["seconds"]))


def _subjects(
    dataset: Dataset, name: str, values: Sequence[float], seed: int
) -> Iterator[tuple[float, Subject, int | None]]:
    """For each value the size it stands for, an explainer of that size, and how many plans it is asked for, if that."""
    whole = _subject(dataset, seed) if name == "k" else None
    for value in values:
        if whole is not None:
            yield value, whole, int(value)
            continue
        settings: dict[str, Any] = {"S": {"n_features": int(value)}, "d": {"latent_dim": int(value)}}.get(name, {})
        kept = None if name != "D" else _some(dataset.features, value)
        subject = _subject(dataset, seed, kept, **settings)
        yield (subject.explainer.learnt_.codec.layout.width if name == "D" else value), subject, None


def _some(features: Sequence[str], share: float) -> tuple[str, ...]:
    """A share of the features, from the first to the last."""
    places = np.linspace(0, len(features) - 1, max(2, round(share * len(features)))).astype(int)
    return tuple(features[place] for place in places)


def _subject(dataset: Dataset, seed: int, features: tuple[str, ...] | None = None, **settings: Any) -> Subject:
    explainer = fitted(dataset, seed, features, **(PAPER_SIZE | _QUICK | settings))
    return Subject(dataset.name, explainer, refused(explainer, dataset, seed))


def _search(subject: Subject, n_rows: int, k: int | None) -> None:
    if k is None:
        subject.explainer.method_.explain(subject.encoded(n_rows), 1)
    else:
        subject.explainer.explain(subject.rows(n_rows), k=k, prefer="plausible")
