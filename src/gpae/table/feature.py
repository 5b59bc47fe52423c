"""What a column of a table means: its kind, range, steps or levels, and which way it may change."""

from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, FiniteFloat, model_validator

from gpae.table.change import Change
from gpae.table.frozen import Frozen
from gpae.table.levels import Level, listed

__all__ = ["Binary", "Categorical", "Continuous", "Feature", "Integer", "Ordinal", "ScalingName"]

ScalingName: TypeAlias = Literal["minmax", "robust", "quantile"]

# Above this an integer multiple of a decimal step is no longer exact in float64.
_LARGEST_EXACT = 2.0**53


class _Column(Frozen):
    name: str = Field(min_length=1)
    change: Change = Change.any
    missing: bool = False
    unit: str = ""
    """Behind every value of it in sentences."""
    sentence: str | None = None
    """A change of it in words, instead of ours: {name}, {before}, {after} and {range} are filled in."""

    @model_validator(mode="after")
    def _sentence_can_be_filled(self) -> "_Column":
        if self.sentence is not None:
            try:
                self.sentence.format(name="", before="", after="", range="")
            except (KeyError, IndexError, ValueError) as error:
                known = "{name}, {before}, {after} and {range}"
                raise ValueError(f"sentence={self.sentence!r} cannot be filled in ({error}); use {known}") from None
        return self


def _decimals(*numbers: float) -> int:
    """Return how many decimal places all the numbers have when written out."""
    exponents = [Decimal(repr(float(number))).normalize().as_tuple().exponent for number in numbers]
    return max(0, *(-int(exponent) for exponent in exponents))


class _Number(_Column):
    codes: tuple[FiniteFloat, ...] = ()
    scaling: ScalingName | None = None

    @property
    def levels(self) -> tuple[Level, ...]:
        """A number has none."""
        return ()

    def _check_range(self, minimum: float, maximum: float) -> None:
        if minimum > maximum:
            raise ValueError(f"minimum {minimum!r} is above maximum {maximum!r}; swap them")
        inside = [code for code in self.codes if minimum <= code <= maximum]
        if inside:
            raise ValueError(f"the codes {listed(inside)} lie inside {minimum!r} to {maximum!r}; narrow it")


class Continuous(_Number):
    """A number with decimals.

    Allowed values are ``codes`` (special states such as -9) and ``minimum``, ``minimum + step``, ... up to
    ``maximum``; without a step, every number in between.
    """

    kind: Literal["continuous"] = "continuous"
    minimum: FiniteFloat
    maximum: FiniteFloat
    step: FiniteFloat | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _valid(self) -> "Continuous":
        self._check_range(self.minimum, self.maximum)
        return self

    @property
    def decimals(self) -> int | None:
        """Decimal places of the allowed values; None if the step is no short decimal."""
        if self.step is None:
            return None
        places = _decimals(self.step, self.minimum)
        largest = max(abs(self.minimum), abs(self.maximum))
        return places if places <= 15 and largest * 10.0**places < _LARGEST_EXACT else None


class Integer(_Number):
    """A whole number that moves in steps from ``minimum``; ``codes`` are special states beside the range."""

    kind: Literal["integer"] = "integer"
    minimum: int
    maximum: int
    step: int = Field(default=1, gt=0)

    @model_validator(mode="after")
    def _valid(self) -> "Integer":
        self._check_range(self.minimum, self.maximum)
        return self

    @property
    def decimals(self) -> int:
        """Whole numbers have no decimal places."""
        return 0


class _Levelled(_Column):
    levels: tuple[Level, ...] = Field(min_length=1)

    @property
    def codes(self) -> tuple[float, ...]:
        """Levels need none."""
        return ()

    @property
    def decimals(self) -> int | None:
        """Levels have none."""
        return None

    @property
    def minimum(self) -> int:
        """The lowest rank."""
        return 0

    @property
    def maximum(self) -> int:
        """The highest rank."""
        return len(self.levels) - 1

    @model_validator(mode="after")
    def _distinct(self) -> "_Levelled":
        twice = [level for i, level in enumerate(self.levels) if level in self.levels[:i]]
        if twice:
            raise ValueError(f"the level {twice[0]!r} is listed twice")
        return self


class Ordinal(_Levelled):
    """Levels in order, lowest first; ``up`` and ``down`` follow that order."""

    kind: Literal["ordinal"] = "ordinal"
    levels: tuple[Level, ...] = Field(min_length=2)


class Categorical(_Levelled):
    """Levels without an order; ``change`` is ``any`` or ``fixed``."""

    kind: Literal["categorical"] = "categorical"

    @model_validator(mode="after")
    def _unordered(self) -> "Categorical":
        if self.change in (Change.up, Change.down):
            raise ValueError(
                f"change={self.change.value!r} needs an order, which a categorical column lacks; "
                "use 'any' or 'fixed', or make the column ordinal"
            )
        return self


class Binary(_Levelled):
    """Two levels; ``up`` allows only the change from the first to the second."""

    kind: Literal["binary"] = "binary"
    levels: tuple[Level, ...] = Field(min_length=2, max_length=2)


Feature: TypeAlias = Annotated[Continuous | Integer | Ordinal | Categorical | Binary, Field(discriminator="kind")]
