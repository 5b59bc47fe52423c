"""Ways in other units: a search among columns that are stretched is the plain search on a surface that is."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from jaxtyping import Float
from torch import Tensor

from gpae.numerics.autoencoder import AutoEncoder
from gpae.search.problem import Problem, Solution, Surface

__all__ = ["solved_in_units"]


def solved_in_units(
    solve: Callable[..., Solution],
    surface: Surface,
    problem: Problem,
    start: Float[Tensor, "B D"] | None,
    **asked: Any,
) -> Solution:
    """Stretch the columns by the surface's units, solve, and go back; the objective is the one in these units."""
    units = surface.units
    assert units is not None
    model: Any = surface.model  # the same object at every call: what is made of it is looked up
    plain = replace(surface, model=_stretched(model, units), units=None)
    x, lower, upper = (part * units for part in (problem.x, problem.lower, problem.upper))
    there = replace(problem, x=x, lower=lower, upper=upper)
    found = solve(plain, there, start=None if start is None else start * units, **asked)
    return replace(found, u=(found.u / units).clamp(problem.lower, problem.upper))


@lru_cache(maxsize=8)
def _stretched(model: Any, units: Float[Tensor, " D"]) -> AutoEncoder:
    """The encoder of stretched columns; made once, for what is compiled is packed for it."""
    if not isinstance(model, AutoEncoder):
        raise TypeError(f"{type(model).__name__} cannot be searched in other units")
    return model.stretched(units)
