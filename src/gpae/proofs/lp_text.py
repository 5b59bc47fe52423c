"""Programs as text in the LP format, which every solver reads: a proof can be checked without us."""

import math

from gpae.proofs.program import CONSTANT, Program, Sum

__all__ = ["lp_text"]

_WIDTH = 8
"""Terms on a line."""


def lp_text(program: Program, goal: Sum, needed: float, error: float = 0.0) -> str:
    """A program whose largest value, plus ``error``, is not above ``needed`` where a person has no plan.

    Examples
    --------
    >>> program = Program()
    >>> hours = program.variable(0.0, 60.0, whole=True)
    >>> program.between(20.0, {hours: 1.0}, 40.5)
    >>> print(lp_text(program, {hours: 0.1, CONSTANT: -5.0}, needed=0.0))
    \\ no plan: the largest value plus 0 is not above 0
    Maximize
     value: 0.1 x0 - 5 one
    Subject To
     r0: 1 x0 >= 20
     s0: 1 x0 <= 40.5
    Bounds
     0 <= x0 <= 60
     one = 1
    General
     x0
    End
    """
    lines = [f"\\ no plan: the largest value plus {_written(error)} is not above {_written(needed)}", "Maximize"]
    lines += [f" value: {_terms(goal)}", "Subject To"]
    for i, (row, low, high) in enumerate(program.rows):
        lines += [f" r{i}: {_terms(row)} >= {_written(low)}"] if math.isfinite(low) else []
        lines += [f" s{i}: {_terms(row)} <= {_written(high)}"] if math.isfinite(high) else []
    lines += ["Bounds"]
    bounds = zip(program.lower, program.upper, strict=True)
    lines += [f" {_written(low)} <= x{v} <= {_written(high)}" for v, (low, high) in enumerate(bounds)]
    lines += [" one = 1", "General"]
    lines += [f" x{v}" for v, whole in enumerate(program.whole) if whole]
    return "\n".join([*lines, "End"])


def _written(number: float) -> str:
    """A number without loss, as short as can be."""
    return repr(float(number)).removesuffix(".0")


def _terms(expression: Sum) -> str:
    """A sum, a few terms a line; the constant is a multiple of the variable ``one``."""
    named = [(weight, "one" if v == CONSTANT else f"x{v}") for v, weight in expression.items()] or [(0.0, "one")]
    words = [f"{'-' if weight < 0 else '+'} {_written(abs(weight))} {name}" for weight, name in named]
    parts = [" ".join(words[i : i + _WIDTH]) for i in range(0, len(words), _WIDTH)]
    return "\n  ".join(parts).removeprefix("+ ")
