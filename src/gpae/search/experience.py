"""Where to begin: the ways of people searched for before, taken by those whose latents are nearest to theirs."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from gpae.kernels.cosines import latents
from gpae.kernels.neighbours import nearest
from gpae.numerics.autoencoder import AutoEncoder
from gpae.search import newton
from gpae.search.problem import ASTRAY, Problem, Surface

__all__ = ["Experience"]


@dataclass(frozen=True, slots=True, eq=False)
class Experience:
    """Latents of some people, and the way of each over the boundary.

    A start from there takes about half of the steps, and ends in a poor minimum less often than one that meets the
    boundary head-on. It is the same for a person in whatever company: nothing is learnt from those who ask.
    """

    latents: Float[Tensor, "n d"]
    ways: Float[Tensor, "n D"]

    @classmethod
    def of(cls, surface: Surface, problem: Problem) -> "Experience | None":
        """Search for some people; None where nobody gets there, or the encoder is not a plain one."""
        if not isinstance(surface.model, AutoEncoder):
            return None
        solution = newton.solve(surface, problem)
        there = solution.violation <= ASTRAY * problem.margin
        if not bool(there.any()):
            return None
        return cls(latents(surface.model, problem.x[there]), (solution.u - problem.x)[there])

    def start(self, surface: Surface, problem: Problem) -> Float[Tensor, "B D"]:
        """Each person's start: their own values, moved the way of the one who is nearest."""
        assert isinstance(surface.model, AutoEncoder)
        here, there = (part.numpy().astype(np.float32) for part in (latents(surface.model, problem.x), self.latents))
        way = self.ways[torch.from_numpy(nearest(there, here, 1)[:, 0])]
        return (problem.x + way).clamp(problem.lower, problem.upper)
