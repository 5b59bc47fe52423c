"""Plans in short sentences, in the user's units: what to change, from what to what, and how far the answer holds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np
from numpy.typing import NDArray

from gpae.table.constraint import changed, is_number
from gpae.table.schema import Feature

__all__ = ["ChangeInWords", "change_sentence", "plan_in_words", "range_words", "written"]

_DIGITS, _ALL_DIGITS = 5, 17
"""Digits of a number without steps: so many as a rule, and never more than these, which tell any two apart."""


@dataclass(frozen=True, slots=True, eq=False)
class ChangeInWords:
    """One changed feature of a plan, and where it could lie as well; ranks for levels, NaN where missing."""

    feature: Feature
    before: float
    after: float
    low: float = np.nan
    high: float = np.nan
    """Between which values of a number the decision stays; NaN: not known."""
    lowest: float = -np.inf
    highest: float = np.inf
    """The least and the largest value that there is: a range that reaches so far has no end to speak of."""
    levels: NDArray[np.bool_] | None = None
    """For levels: which would do."""


def written(feature: Feature, value: float) -> str:
    """Write a value of a feature with its unit, and no more decimals than the column has, or five digits.

    Examples
    --------
    >>> from gpae.table.schema import Continuous
    >>> written(Continuous(name="income", minimum=0, maximum=9, step=0.01, unit="EUR"), 1234.5)
    '1,234.50 EUR'
    """
    if np.isnan(value):
        return "no value"
    if not is_number(feature):
        return str(feature.levels[int(value)])
    if value in feature.codes:
        return f"{value:g}"
    places = feature.decimals
    return _with_unit(feature, f"{value:,.{places}f}" if places is not None else _rounded(value, _DIGITS)[1])


def _with_unit(feature: Feature, number: str) -> str:
    return f"{number} {feature.unit}".rstrip()


def _rounded(value: float, digits: int, rounding: str = ROUND_HALF_EVEN) -> tuple[float, str]:
    """A number of so many digits, or more if it is larger than that, and how it is written."""
    exact = Decimal(repr(float(value)))
    short = Context(prec=max(digits, exact.adjusted() + 1), rounding=rounding).create_decimal(exact)
    text = f"{short:,f}"
    return float(short), text.rstrip("0").rstrip(".") if "." in text else text


def _between(feature: Feature, value: float, low: float, high: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Write a value so that what is written lies in a range too: five digits, or as many more as that takes."""
    if feature.decimals is not None or value in feature.codes or not low <= value <= high:
        return written(feature, value)
    texts = (_rounded(value, digits, rounding) for digits in range(_DIGITS, _ALL_DIGITS))
    short = next((text for number, text in texts if low <= number <= high), f"{Decimal(repr(float(value))):,f}")
    return _with_unit(feature, short)


def range_words(change: ChangeInWords) -> str:
    """Where the feature could lie as well with everything else as in the plan; empty if nowhere else."""
    feature = change.feature
    if change.levels is not None:
        would = [str(level) for level, fits in zip(feature.levels, change.levels, strict=True) if fits]
        others = [level for level in would if level != written(feature, change.after)]
        return f"or {' or '.join(others)}" if others else ""
    if np.isnan(change.low) or np.isnan(change.high):
        return ""
    # rounded inwards: who does as told is on the right side
    low = _between(feature, change.low, change.low, change.after, ROUND_CEILING)
    high = _between(feature, change.high, change.after, change.high, ROUND_FLOOR)
    open_below = change.low <= change.lowest or math.isclose(change.low, change.lowest)
    open_above = change.high >= change.highest or math.isclose(change.high, change.highest)
    if change.low == change.high:
        return f"exactly {low}"
    if open_below and open_above:
        return f"any other value{_in_steps(feature)}"
    if open_above:
        return f"at least {low}{_in_steps(feature)}"
    return (f"at most {high}" if open_below else f"{low} to {high}") + _in_steps(feature)


def _in_steps(feature: Feature) -> str:
    """Steps are worth a word where they are not those of the decimals that a number is written with."""
    step, places = getattr(feature, "step", None), feature.decimals
    if step is None or places is None or math.isclose(step, 10.0**-places):
        return ""
    return f", in steps of {_rounded(float(step), _DIGITS)[1]}"


def change_sentence(change: ChangeInWords) -> str:
    """One change as a sentence, by the feature's own template if it has one.

    Examples
    --------
    >>> from gpae.table.schema import Integer
    >>> hours = Integer(name="hours-per-week", minimum=1, maximum=99)
    >>> change_sentence(ChangeInWords(hours, 38, 45, 44, 99, 1, 99))
    'Raise hours-per-week from 38 to 45 (at least 44).'
    """
    feature, reach = change.feature, range_words(change)
    before, after = written(feature, change.before), _after(change)
    if feature.sentence is not None:
        told = feature.sentence.format(name=feature.name, before=before, after=after, range=reach)
        return told if reach else told.replace(" ()", "")
    behind = f" ({reach})" if reach else ""
    if np.isnan(change.before):
        return f"Give {feature.name}: {after}{behind}."
    verb = "Change"
    if is_number(feature) and not {change.before, change.after} & set(feature.codes):
        verb = "Raise" if change.after > change.before else "Lower"
    return f"{verb} {feature.name} from {before} to {after}{behind}."


def _after(change: ChangeInWords) -> str:
    """The new value, written so that it does what the plan's does."""
    if not is_number(change.feature) or np.isnan(change.after):
        return written(change.feature, change.after)
    known = not (np.isnan(change.low) or np.isnan(change.high))
    low, high = (change.low, change.high) if known else (change.after, change.after)
    # further rather than less far: all changes are rounded, and each range holds with the others as planned
    further = ROUND_FLOOR if change.after < change.before else ROUND_CEILING
    return _between(change.feature, change.after, low, high, further)


def plan_in_words(features: Sequence[Feature], before: NDArray[np.float64], after: NDArray[np.float64]) -> str:
    """A whole plan (F values before and after), one sentence a change."""
    moved = changed(before, after)
    told = [
        ChangeInWords(*change)
        for change, went in zip(zip(features, before, after, strict=True), moved, strict=True)
        if went
    ]
    return " ".join(map(change_sentence, told))
