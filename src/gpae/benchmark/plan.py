"""What a study consists of: cells, the smallest pieces that are run, kept and counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from gpae.dataset import Dataset

__all__ = ["Bench", "Cell", "Kind", "Plan"]

Kind = Literal["free", "masked", "classifier"]

PAPER_ROWS = 1000
"""Test rows of each data set in the paper."""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One method on one data set with one seed: a search, free or masked, or a classifier of the table."""

    dataset: str
    seed: int
    kind: Kind
    method: str
    preset: str = ""
    """Of the method; empty for its sound defaults, and for a method that has no presets."""
    rows: int = PAPER_ROWS

    @property
    def name(self) -> str:
        """A file name; cells of a quick try are not taken for those of the study."""
        rows = f"rows{self.rows}" if self.rows != PAPER_ROWS else ""
        parts = [self.dataset, str(self.seed), self.kind, self.method.lower().replace(" ", "_"), self.preset, rows]
        return "-".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, order=True)
class Bench:
    """The cells of one data set and one seed share their rows, their classifier and the metrics' helpers."""

    dataset: str
    seed: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The cells of a study, chosen by data sets, methods and seeds.

    Parameters
    ----------
    rows
        At most so many test rows of each data set are looked at.
    small
        Whether the shared classifier is a small one, to be done soon.
    """

    cells: tuple[Cell, ...]
    rows: int
    small: bool = False

    @classmethod
    def of(
        cls,
        datasets: Sequence[Dataset],
        seeds: int,
        *,
        free: Sequence[str],
        masked: Sequence[str],
        classifiers: Sequence[str],
        rows: int,
        presets: Mapping[str, str] | None = None,
        small: bool = False,
    ) -> "Plan":
        """Every method free on every data set, the masked ones where the data set has a mask, and the classifiers.

        ``presets`` names those of the methods that have one.
        """
        preset = presets or {}
        cells = []
        for dataset in datasets:
            kinds: list[tuple[Kind, Sequence[str]]] = [("free", free), ("classifier", classifiers)]
            kinds += [("masked", masked)] if dataset.masked else []
            for kind, methods in kinds:
                cells += [
                    Cell(dataset.name, seed, kind, method, preset.get(method, ""), rows)
                    for seed in range(seeds)
                    for method in methods
                ]
        return cls(tuple(sorted(cells)), rows, small)

    def by_bench(self, cells: Sequence[Cell]) -> dict[Bench, list[Cell]]:
        """Group cells that share a bench."""
        ordered = sorted(cells)
        return {Bench(*key): list(group) for key, group in groupby(ordered, key=lambda c: (c.dataset, c.seed))}
