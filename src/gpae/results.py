"""What a search returns: one frozen table of arrays, several entries a row allowed."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gpae.arrays import Labels, Mask, Rows

__all__ = ["Counterfactuals", "Status", "left_out"]


class Status(StrEnum):
    """How a row ended."""

    FOUND = "found"
    ALREADY_FAVOURABLE = "already_favourable"
    INFEASIBLE = "infeasible"
    """Proved: no allowed row is favourable."""
    NOT_FOUND = "not_found"
    """Searched, none found, not proved."""
    TIMEOUT = "timeout"
    BAD_INPUT = "bad_input"


@dataclass(frozen=True, slots=True, eq=False)
class Counterfactuals:
    """Long form, sorted by ``row`` and ``plan``; every query row has at least one entry.

    ``found`` is what the classifier says of the row as it stands, not what the method claims. Where it is False the
    counterfactual is NaN throughout.
    """

    row: Labels
    plan: Labels
    factual: Rows
    counterfactual: Rows
    target: Labels
    found: Mask
    status: NDArray[np.str_]
    cost: NDArray[np.float64] | None = None
    """What the search was to keep small, where it says so; NaN where nothing was found."""

    def __len__(self) -> int:
        return len(self.row)


def left_out(n: int, row: NDArray[np.intp]) -> NDArray[np.intp]:
    """Which of n rows are not among these."""
    there = np.zeros(n, dtype=np.bool_)
    there[row] = True
    return np.flatnonzero(~there)
