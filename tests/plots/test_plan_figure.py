import numpy as np
import pytest

from gpae.plots.plan import plan
from gpae.plots.plan_view import LevelChange, NumberChange, PlanView
from gpae.plots.style import to_png, to_svg

QUANTILES = np.linspace(10.0, 80.0, 101)
HOURS = NumberChange("hours", 40.0, 46.0, QUANTILES, 0)
DEBT = NumberChange("debt", 900.5, 120.25, QUANTILES)
JOB = LevelChange("job", "Craft", "Manager", {"Manager": 0.5, "Sales": 0.3, "Craft": 0.1, "Farm": 0.06, "Army": 0.04})


def view(*changes: NumberChange | LevelChange, unchanged: tuple[str, ...] = ("age", "race")) -> PlanView:
    return PlanView("income >50K", changes, unchanged, 0.21, 0.52, 63.0)


def test_one_change_is_drawn_from_and_to_with_its_values(words):
    figure = plan(view(HOURS))
    said = words(figure)
    assert "1 change takes the probability of income >50K from 21 % to 52 %" in said
    assert "More plausible than 63 % of the favourable training rows" in said
    assert "Unchanged: age, race" in said
    assert {"hours", "40", "46", "10", "80"} <= set(said.split("\n"))
    assert to_png(figure, 40)


def test_levels_are_drawn_with_their_shares_and_rare_others_left_out(words):
    said = words(plan(view(JOB)))
    assert {"Craft", "Manager", "Sales", "Farm", "10 % of the favourable rows", "50 %"} <= set(said.split("\n"))
    assert "Army" not in said
    assert "middle 50 %" not in said


def test_a_plan_without_changes_says_so(words):
    figure = plan(PlanView("income >50K", (), ("age",), 0.7, 0.7))
    assert "Nothing changes: the probability of income >50K is 70 %" in words(figure)
    assert "plausible" not in words(figure)
    assert to_png(figure, 40)


def test_every_change_gets_its_own_strip():
    assert len(plan(view(HOURS, DEBT, JOB)).axes) == 3


@pytest.mark.parametrize(("before", "after"), [(None, 12.5), (12.5, None), (float("nan"), 12.5)])
def test_a_missing_value_is_named(words, before, after):
    change = NumberChange("debt", before, after, QUANTILES)
    assert "missing" in " ".join(change.texts)
    assert "missing" in words(plan(view(change)))


def test_a_reference_without_rows_or_without_spread_is_drawn():
    empty, constant = (NumberChange("x", 1.0, 2.0, values) for values in (np.empty(0), np.full(101, 2.0)))
    assert to_png(plan(view(empty, constant, LevelChange("y", "a", "b"))), 40)


@pytest.mark.parametrize("name", ["price $a_1 in $", "<b>&", "年収", "x" * 300, "two\nlines"])
def test_names_are_text_whatever_they_contain(name):
    odd = view(NumberChange(name, 1.0, 2.0, QUANTILES), LevelChange(name, name, "b", {name: 1.0}), unchanged=(name,))
    assert to_svg(plan(odd))


def test_untitled_leaves_out_what_the_plan_achieves(words):
    assert "probability" not in words(plan(view(HOURS), titled=False))


def test_sentences_are_instructions():
    assert HOURS.sentence == "Raise hours from 40 to 46."
    assert DEBT.sentence == "Lower debt from 900.5 to 120.25."
    assert JOB.sentence == "Change job from Craft to Manager."
