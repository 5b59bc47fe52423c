"""What a plan took, counted and not timed: a speed-up that is lost shows in it on any machine."""

from dataclasses import dataclass, fields

import torch
from jaxtyping import Int
from torch import Tensor

from gpae.search.problem import Problem, Solution, stalled

__all__ = ["Work"]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """Counts of each row, over all that was tried for its plan."""

    iterations: Int[Tensor, " B"]
    """Of all its relaxed problems, second starts among them."""
    stalled: Int[Tensor, " B"]
    """How many of its relaxed problems were left before it had arrived."""
    looks: Int[Tensor, " B"]
    """At how many points the polish evaluated the map."""

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> "Work":
        """Of one relaxed problem."""
        return cls(solution.iterations, stalled(problem, solution).long(), torch.zeros_like(solution.iterations))

    @classmethod
    def looked(cls, looks: Int[Tensor, " B"]) -> "Work":
        """Of one polish."""
        return cls(torch.zeros_like(looks), torch.zeros_like(looks), looks)

    def __add__(self, other: "Work") -> "Work":
        return Work(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def rows(self, index: Int[Tensor, " n"]) -> "Work":
        """Of some of the rows."""
        return Work(*(getattr(self, f.name)[index] for f in fields(self)))

    def at(self, index: Int[Tensor, " n"], n: int) -> "Work":
        """The same among n rows, of which the others did nothing."""
        nothing = torch.zeros(n, dtype=torch.int64)
        return Work(*(nothing.index_add(0, index, getattr(self, f.name)) for f in fields(self)))
