"""A proof that no allowed row is favourable, with the figures that it rests on."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from gpae.table.constraint import Array, is_number
from gpae.table.freedom import Freedom

__all__ = ["Certificate", "Ground", "Prove", "plain_row"]

Ground: TypeAlias = Literal[
    "nothing may change", "no value left", "no row", "every row", "linear program", "tree program", "bounds"
]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Why a person has no plan.

    Parameters
    ----------
    ground
        What the proof is: nothing may change; a feature has no value left, or a rule is out of reach; no row obeys all
        the rules together; every row that the person may become was asked about; the largest score of a linear model
        or of trees over all of them; bounds on boxes that cover them.
    best
        What no allowed row's score exceeds: it is not above ``needed``. A logit, or what the model's trees add up to;
        minus infinity where there is no such row.
    needed
        The score beyond which a row is favourable.
    looked_at
        Rows asked about, or boxes bounded; 0 for a program.
    details
        What it takes to check it again, as plain values: ``best_row``, the allowed row of the largest score, where the
        proof knows it, and how it was found.
    program
        Writes the program down, where the proof is by one, for another solver to check.
    """

    ground: Ground
    best: float
    needed: float = 0.0
    looked_at: int = 0
    details: dict[str, Any] = field(default_factory=dict)
    program: Callable[[], str] | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain JSON values; without any row there is no ``best``."""
        plain = asdict(replace(self, program=None)) | {"best": self.best if math.isfinite(self.best) else None}
        plain.pop("program")
        return plain


def plain_row(person: Freedom, U: Array) -> dict[str, Any]:
    """One encoded row (1 x D) of a person in the user's units, by feature."""
    values = person.values(U, np.zeros(1, dtype=np.intp))[0]
    row: dict[str, Any] = {}
    for feature, value in zip(person.schema.features, values.tolist(), strict=True):
        if math.isnan(value):
            row[feature.name] = None
        elif is_number(feature):
            row[feature.name] = int(value) if feature.kind == "integer" and value.is_integer() else value
        else:
            row[feature.name] = feature.levels[int(value)]
    return row


Prove: TypeAlias = Callable[[Freedom, float, float], tuple[Certificate | None, Array | None]]
"""(one person, seconds, margin) -> a proof that there is no plan, or an allowed row that may be one, or neither."""
