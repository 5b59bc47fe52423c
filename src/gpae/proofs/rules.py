"""Proof without a model: where no row at all obeys every rule, no model can favour one."""

from functools import partial

import numpy as np

from gpae.proofs.certificate import Certificate
from gpae.proofs.lp_text import lp_text
from gpae.proofs.program import AllowedRows
from gpae.table.constraint import Array
from gpae.table.constraints.at_most import AtMost
from gpae.table.constraints.implies import Implies
from gpae.table.constraints.linear import Linear
from gpae.table.freedom import Freedom

__all__ = ["by_rules"]


def by_rules(person: Freedom, seconds: float, margin: float = 0.0) -> tuple[Certificate | None, Array | None]:
    """Return a proof that the rules leave the one person no row, or neither a proof nor a row.

    Only rules that tie features together are looked at: what each feature may be on its own is known before.
    """
    if not any(isinstance(one, Linear | AtMost | Implies) for one in person.constraints):
        return None, None
    outcome = AllowedRows.of(person).program.largest({}, seconds)
    if outcome.proved and np.isneginf(outcome.bound):
        return Certificate("no row", -np.inf, margin, program=partial(_program, person, margin)), None
    return None, None


def _program(person: Freedom, margin: float) -> str:
    return lp_text(AllowedRows.of(person).program, {}, margin)
