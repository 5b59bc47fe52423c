"""What every part of the study of speed is given, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from gpae.benchmark.peers import terms
from gpae.benchmark.peers.conditions import Condition

__all__ = ["Outcome", "Part", "Terms"]


@dataclass(frozen=True, slots=True)
class Terms(terms.Terms):
    """Under which speed is measured: those of a comparison, and

    Parameters
    ----------
    limit
        Seconds for a method in a round, after which it begins no further call.
    environments
        Where the peers' virtual environments are, or are to be made; None: in gpae's cache.
    """

    threads: int = 2
    limit: float = 40.0
    environments: Path | None = None

    @property
    def words(self) -> str:
        """The terms in a file's name."""
        return f"rows{self.rows}-seed{self.seed}-threads{self.threads}-limit{self.limit:g}"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What came out of a part."""

    figures: pd.DataFrame
    shown: Mapping[str, str]
    """The columns that are printed, and what is written above them."""
    conditions: list[Condition] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)


Part: TypeAlias = Callable[[Path, Terms], Outcome]
"""(the study's folder, the terms) -> what came out; it keeps what is finished in ``cells`` and writes its own files."""
