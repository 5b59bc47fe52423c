"""The kinds of constraints, one file each, and how lists of them are read."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from gpae.errors import InputError
from gpae.table.constraint import Constraint
from gpae.table.constraints.at_most import AtMost
from gpae.table.constraints.cost import Cost
from gpae.table.constraints.direction import Direction
from gpae.table.constraints.fixed import Fixed
from gpae.table.constraints.implies import Implies
from gpae.table.constraints.linear import Linear
from gpae.table.constraints.one_of import OneOf
from gpae.table.constraints.step import Step
from gpae.table.constraints.transitions import Transitions
from gpae.table.constraints.value_range import Range
from gpae.table.constraints.within import Within

__all__ = [
    "AnyConstraint",
    "AtMost",
    "Cost",
    "Direction",
    "Fixed",
    "Implies",
    "Linear",
    "OneOf",
    "Range",
    "Step",
    "Transitions",
    "Within",
    "read_constraints",
]

AnyConstraint: TypeAlias = Annotated[
    AtMost | Cost | Direction | Fixed | Implies | Linear | OneOf | Range | Step | Transitions | Within,
    Field(discriminator="kind"),
    BeforeValidator(lambda one: Linear.parse(one) if isinstance(one, str) else one),
]
"""Any of them; a text is read as a rule between numbers."""
_ADAPTER: TypeAdapter[Constraint] = TypeAdapter(AnyConstraint)


def read_constraints(given: "Sequence[Constraint | dict[str, Any] | str] | None") -> tuple[Constraint, ...]:
    """Read a list of constraints: objects, their plain JSON values, or rules between numbers as text."""
    if given is None:
        return ()
    if isinstance(given, str | dict | Constraint):
        raise InputError(f"constraints={given!r} must be a list of constraints, even if there is only one")
    return tuple(_read(number, one) for number, one in enumerate(given))


def _read(number: int, one: Any) -> Constraint:
    try:
        return _ADAPTER.validate_python(one)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in item['loc'][1:]) or 'entry'}: {item['msg'].removeprefix('Value error, ')}"
            for item in error.errors()
        )
        raise InputError(f"constraints[{number}] = {one!r} is no valid constraint: {problems}") from None
