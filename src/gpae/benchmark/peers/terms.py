"""The terms under which contenders meet."""

from dataclasses import dataclass

import numpy as np

from gpae.errors import InputError

__all__ = ["Terms"]


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which the contenders meet.

    Parameters
    ----------
    rows
        People whose answers are compared.
    rounds
        Each of a share of these people, whom every method answers in turn; rows per second are those of a round.
    seed
        Of the split and of the model.
    threads
        Of everybody's mathematics.
    """

    rows: int = 200
    rounds: int = 5
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if self.rows < self.rounds:
            raise InputError(f"--rows {self.rows} is less than --rounds {self.rounds}; every round needs a row")

    def block(self, number: int) -> list[int]:
        """The people of a round, by their positions among the queries."""
        return [int(row) for row in np.array_split(np.arange(self.rows), self.rounds)[number]]

    @property
    def words(self) -> str:
        """The terms in a file's name."""
        return f"rows{self.rows}-seed{self.seed}-threads{self.threads}"

    def file(self, number: int) -> str:
        """The name of a round's file; rounds under other terms are not taken for these."""
        return f"{self.words}-round{number + 1}of{self.rounds}.json"
