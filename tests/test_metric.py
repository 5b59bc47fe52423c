"""The contract of a metric: which answers it sees, and what becomes of their numbers."""

import numpy as np

from gpae.metric import Metric, judged
from gpae.results import Counterfactuals
from tests.metrics.made_answers import answers, reference

FIRST = Metric("First", "lower", lambda reference: None, lambda made, _: made.counterfactual[:, 0])


def test_only_the_first_plan_of_each_query_is_judged() -> None:
    made = Counterfactuals(
        row=np.array([0, 0, 1]),
        plan=np.array([0, 1, 0]),
        factual=np.zeros((3, 1)),
        counterfactual=np.array([[1.0], [100.0], [3.0]]),
        target=np.ones(3, dtype=np.int64),
        found=np.ones(3, dtype=bool),
        status=np.array(["found"] * 3),
    )
    assert FIRST(made, None).value == 2
    assert FIRST(made, None, np.array([False, True])).value == 3
    np.testing.assert_array_equal(judged(made).row, [0, 1])


def test_numbers_that_are_not_there_do_not_count_and_none_at_all_is_nan() -> None:
    made = answers(np.zeros((3, 1)), [[2.0], [np.nan], [4.0]])
    assert (FIRST(made, None).value, FIRST(made, None).n_rows) == (3, 2)
    nobody = FIRST(made, None, np.array([False, True, False]))
    assert np.isnan(nobody.value)
    assert nobody.n_rows == 0


def test_what_is_dear_to_make_is_made_once() -> None:
    against, calls = reference(), []
    for _ in range(3):
        assert against.once("thing", lambda: calls.append(1) or "made") == "made"
    assert len(calls) == 1
