import numpy as np
import pandas as pd
import pytest

from gpae.metrics.found import FOUND
from gpae.metrics.validity import VALIDITY
from gpae.metrics.validity_self import VALIDITY_SELF
from gpae.metrics.violations import VIOLATIONS
from tests.metrics.made_answers import Threshold, answers, layout_of, reference, two_numbers_and_a_level

NOTHING = [np.nan]


def test_validity_is_a_share_of_all_queries_and_nothing_is_valid_on_the_boundary() -> None:
    """0.7 is accepted, 0.4 and the boundary's 0.5 are not, and two queries have no answer."""
    made = answers([[0.1]] * 5, [[0.7], [0.4], [0.5], NOTHING, NOTHING])
    score = VALIDITY(made, VALIDITY.prepare(reference(classifier=Threshold(0.5))))
    assert score.value == pytest.approx(1 / 5)
    assert score.n_rows == 5


def test_validity_looks_at_each_querys_own_target() -> None:
    made = answers([[0.1]] * 4, [[0.7], [0.4], [0.5], NOTHING], target=0)
    assert VALIDITY(made, Threshold(0.5)).value == pytest.approx(1 / 4)
    mixed = answers([[0.1], [0.9]], [[0.7], [0.2]], target=[1, 0])
    assert VALIDITY(mixed, Threshold(0.5)).value == 1


def test_validity_asks_the_explained_classifier_and_not_the_methods_own() -> None:
    """All are found as far as the method's own classifier goes; the explained one accepts from 0.65."""
    made = answers([[0.1]] * 2, [[0.7], [0.6]])
    assert VALIDITY(made, Threshold(0.65)).value == 0.5
    assert VALIDITY_SELF(made, None).value == 1


def test_found_is_a_share_of_all_queries_whoever_accepts_the_answer() -> None:
    score = FOUND(answers([[0.1]] * 4, [[0.7], [0.4], NOTHING, [0.2]]), None)
    assert (score.value, score.n_rows) == (0.75, 4)


def test_whom_the_own_classifier_favours_already_is_no_query_of_it() -> None:
    status = np.array(["", "not_found", "already_favourable"])
    made = answers([[0.1]] * 3, [[0.7], NOTHING, NOTHING], status=status)
    assert (VALIDITY_SELF(made, None).value, VALIDITY_SELF(made, None).n_rows) == (0.5, 2)
    assert FOUND(made, None).value == pytest.approx(1 / 3)
    assert VALIDITY(made, Threshold(0.5)).value == pytest.approx(1 / 3)


def test_violations_are_the_answers_that_are_no_rows_for_that_person() -> None:
    """Allowed; two levels at once; out of range; no answer."""
    x = [[0.5, 0.5, 1, 0, 0]] * 4
    u = [[0.6, 0.5, 0, 1, 0], [0.6, 0.5, 1, 1, 0], [1.2, 0.5, 1, 0, 0], [np.nan] * 5]
    score = VIOLATIONS(answers(x, u), VIOLATIONS.prepare(reference()))
    assert score.value == pytest.approx(2 / 3)
    assert score.n_rows == 3


def test_a_lock_of_the_study_or_of_the_schema_is_a_constraint() -> None:
    made = answers([[0.5, 0.5, 1, 0, 0]] * 2, [[0.6, 0.5, 1, 0, 0], [0.5, 0.6, 1, 0, 0]])
    locked = reference(fixed=two_numbers_and_a_level().named(("a",)))
    assert VIOLATIONS(made, reference()).value == 0
    assert VIOLATIONS(made, locked).value == 0.5
    ab = np.random.default_rng(0).random((20, 2))
    schema_lock = layout_of(pd.DataFrame({"a": ab[:, 0], "b": ab[:, 1]}), immutable=("b",))
    moved = answers([[0.5, 0.5]] * 3, [[0.6, 0.5], [0.5, 0.6], [0.6, 0.6]])
    assert VIOLATIONS(moved, reference(schema_lock)).value == pytest.approx(2 / 3)
