"""Plans in words: units, decimals, states, open ends, and the sentences that people write themselves."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpae.table.schema import Binary, Categorical, Continuous, Feature, Integer, Ordinal
from gpae.words import ChangeInWords, change_sentence, plan_in_words, range_words, written

HOURS = Integer(name="hours", minimum=1, maximum=99, unit="h")
RECORD = Integer(name="record", minimum=0, maximum=40, codes=(-9.0, 99.5), unit="months")
WAGE = Continuous(name="wage", minimum=0, maximum=1e6, step=0.01, unit="EUR")
BMI = Continuous(name="bmi", minimum=16, maximum=48, step=0.5)
SHARE = Continuous(name="share", minimum=0, maximum=1)
WEALTH = Continuous(name="wealth", minimum=-1e9, maximum=1e9)
JOB = Categorical(name="job", levels=("cook", "clerk", "judge"), missing=True)
SCHOOL = Ordinal(name="school", levels=("none", "middle", "high"))
FLAG = Binary(name="flag", levels=(0, 1))


@pytest.mark.parametrize(
    ("feature", "value", "text"),
    [
        (HOURS, 38.0, "38 h"),
        (WAGE, 1234.5, "1,234.50 EUR"),
        (WAGE, 0.1 + 0.2, "0.30 EUR"),
        (BMI, 24.0, "24.0"),
        (SHARE, 1 / 3, "0.33333"),
        (WEALTH, 1234.5678, "1,234.6"),
        (WEALTH, 1234567.8, "1,234,568"),
        (WEALTH, -1234567.8, "-1,234,568"),
        (RECORD, -9.0, "-9"),
        (RECORD, 99.5, "99.5"),
        (RECORD, 12.0, "12 months"),
        (JOB, 2.0, "judge"),
        (SCHOOL, 0.0, "none"),
        (FLAG, 1.0, "1"),
        (HOURS, np.nan, "no value"),
        (JOB, np.nan, "no value"),
    ],
)
def test_a_value_is_written_as_its_column_has_it(feature: Feature, value: float, text: str) -> None:
    assert written(feature, value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (40.0, 60.0, "40 h to 60 h"),
        (40.0, 99.0, "at least 40 h"),
        (1.0, 60.0, "at most 60 h"),
        (1.0, 99.0, "any other value"),
        (45.0, 45.0, "exactly 45 h"),
        (99.0, 99.0, "exactly 99 h"),
        (np.nan, 60.0, ""),
        (40.0, np.nan, ""),
    ],
)
def test_a_range_that_reaches_what_is_allowed_is_open(low: float, high: float, text: str) -> None:
    assert range_words(ChangeInWords(HOURS, 38, 45, low, high, 1, 99)) == text


def test_without_known_limits_no_range_is_open() -> None:
    assert range_words(ChangeInWords(HOURS, 38, 45, 1, 99)) == "1 h to 99 h"


@pytest.mark.parametrize(
    ("would", "text"),
    [([False, True, True], "or judge"), ([True, True, True], "or cook or judge"), ([False, True, False], "")],
)
def test_levels_that_would_do_as_well_are_listed_without_the_plans(would: list[bool], text: str) -> None:
    assert range_words(ChangeInWords(JOB, 0, 1, levels=np.array(would))) == text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (ChangeInWords(HOURS, 38, 45, 44, 99, 1, 99), "Raise hours from 38 h to 45 h (at least 44 h)."),
        (ChangeInWords(HOURS, 38, 20), "Lower hours from 38 h to 20 h."),
        (ChangeInWords(HOURS, np.nan, 45, 40, 60, 1, 99), "Give hours: 45 h (40 h to 60 h)."),
        (ChangeInWords(RECORD, -9, 12), "Change record from -9 to 12 months."),
        (ChangeInWords(RECORD, 12, -9, -9, -9, 0, 40), "Change record from 12 months to -9 (exactly -9)."),
        (ChangeInWords(JOB, 0, 1, levels=np.array([False, True, True])), "Change job from cook to clerk (or judge)."),
        (ChangeInWords(JOB, np.nan, 2), "Give job: judge."),
        (ChangeInWords(SCHOOL, 2, 1), "Change school from high to middle."),
        (ChangeInWords(FLAG, 0, 1), "Change flag from 0 to 1."),
    ],
)
def test_a_change_is_one_sentence(change: ChangeInWords, sentence: str) -> None:
    assert change_sentence(change) == sentence


def test_a_column_may_bring_its_own_sentence() -> None:
    own = BMI.model_copy(update={"sentence": "Bring {name} from {before} to {after} ({range})!"})
    change = ChangeInWords(own, 31.5, 24, 16, 25.5, 16, 48)
    assert change_sentence(change) == "Bring bmi from 31.5 to 24.0 (at most 25.5, in steps of 0.5)!"
    job = JOB.model_copy(update={"sentence": "Become a {after}."})
    assert change_sentence(ChangeInWords(job, np.nan, 2)) == "Become a judge."


def test_a_sentence_that_cannot_be_filled_in_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\{name\}, \{before\}, \{after\} and \{range\}"):
        Integer(name="hours", minimum=1, maximum=99, sentence="Work {much} more.")


def test_a_plan_is_one_sentence_a_change_in_the_order_of_the_columns() -> None:
    features = (HOURS, WAGE, JOB, RECORD)
    before = np.array([38.0, 10.5, np.nan, np.nan])
    after = np.array([45.0, 10.5, 1.0, np.nan])
    assert plan_in_words(features, before, after) == "Raise hours from 38 h to 45 h. Give job: clerk."


def test_a_plan_without_a_change_says_nothing() -> None:
    values = np.array([38.0, np.nan])
    assert plan_in_words((HOURS, JOB), values, values) == ""


@settings(max_examples=300, deadline=None)
@given(
    ends=st.tuples(*[st.floats(-1e8, 1e8, allow_nan=False)] * 3),
    scale=st.sampled_from([1.0, 1e-3, 1e-7]),
)
def test_the_numbers_that_are_told_do_what_the_plan_does(ends: tuple[float, float, float], scale: float) -> None:
    """Read back, each lies between the ends of the range: nobody who does as told is refused for a lost digit."""
    low, after, high = sorted(1e6 + scale * end for end in ends)
    told = change_sentence(ChangeInWords(WEALTH, 0.0, after, low, high, -1e9, 1e9))
    plan, *reach = [
        float(number.replace(",", "")) for number in re.findall(r"-?[\d,]+(?:\.\d+)?", told.split(" to ", 1)[1])
    ]
    assert all(low <= number <= high for number in (plan, *reach))
    assert len(reach) == (1 if low == high else 2)


def test_a_range_is_rounded_inwards_and_no_longer_than_it_must_be() -> None:
    assert range_words(ChangeInWords(SHARE, 0.9, 0.5, 1 / 3, 2 / 3, 0, 1)) == "0.33334 to 0.66666"
    assert change_sentence(ChangeInWords(SHARE, 0.9, 0.33333401, 1 / 3, 0.333334011, 0, 1)) == (
        "Lower share from 0.9 to 0.333334 (0.333334 to 0.33333401)."
    )


def test_a_template_without_a_range_to_tell_has_no_empty_brackets() -> None:
    feature = HOURS.model_copy(update={"sentence": "Work {after} ({range})."})
    assert change_sentence(ChangeInWords(feature, 38, 45)) == "Work 45 h."
    assert change_sentence(ChangeInWords(feature, 38, 45, 44, 99, 1, 99)) == "Work 45 h (at least 44 h)."
