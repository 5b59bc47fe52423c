import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from gpae.metrics.discriminative_power import DISCRIMINATIVE_POWER
from tests.metrics.made_answers import Threshold, answers, reference


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


REFUSED, ACCEPTED = (0.4, 0.35, 0.3, 0.2, 0.1, 0.0), (0.55, 0.7, 0.8, 0.9, 1.0)


def test_it_is_the_share_of_neighbours_that_person_and_answer_sort_rightly() -> None:
    """With the answer at 0.6 the cut is at 0.5 and all ten are right; at 0.9 the cut is at 0.65 and 0.55 is wrong."""
    pool = DISCRIMINATIVE_POWER.prepare(reference(test=column(*REFUSED, *ACCEPTED)))
    assert DISCRIMINATIVE_POWER(answers(column(0.4), column(0.6)), pool).value == 1.0
    assert DISCRIMINATIVE_POWER(answers(column(0.4), column(0.9)), pool).value == pytest.approx(0.9)


def test_the_person_is_not_among_the_own_neighbours() -> None:
    """The fifth refused neighbour lies beyond the accepted interval, at 0.9, and is taken for accepted."""
    test = column(0.4, 0.39, 0.38, 0.37, 0.36, 0.9, 0.6, 0.61, 0.62, 0.63, 0.64)
    pool = DISCRIMINATIVE_POWER.prepare(reference(test=test, classifier=Threshold(0.5, 0.7)))
    assert DISCRIMINATIVE_POWER(answers(column(0.4), column(0.6)), pool).value == pytest.approx(0.9)


def test_an_answer_that_is_not_valid_gives_one_half() -> None:
    pool = DISCRIMINATIVE_POWER.prepare(reference(test=column(*REFUSED, *ACCEPTED)))
    assert DISCRIMINATIVE_POWER(answers(column(0.4), column(0.45)), pool).value == 0.5


def test_five_neighbours_of_each_class_and_no_more_decide() -> None:
    """A sixth accepted row at 0.51 is nearer than the others and pushes 1.0 out; wrong for an answer at 0.9."""
    pool = DISCRIMINATIVE_POWER.prepare(reference(test=column(*REFUSED, *ACCEPTED, 0.51)))
    assert DISCRIMINATIVE_POWER(answers(column(0.4), column(0.9)), pool).value == pytest.approx(0.8)


def test_a_tie_goes_to_the_person_and_a_class_that_is_short_of_rows_counts_with_what_it_has() -> None:
    pool = DISCRIMINATIVE_POWER.prepare(reference(test=column(0.25, 0.75), classifier=Threshold(0.5)))
    assert DISCRIMINATIVE_POWER(answers(column(0.5 - 0.25), column(1.25)), pool).value == 0.0  # 0.75 is as near to both
    assert DISCRIMINATIVE_POWER(answers(column(0.25), column(0.8)), pool).value == 1.0


def test_it_equals_the_one_nearest_neighbour_rule_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    test = rng.random((200, 3))
    classifier = Threshold(0.6)
    x = test[test[:, 0] < 0.6][:50]
    u = rng.random((50, 3))
    u[::7] = np.nan
    pool = DISCRIMINATIVE_POWER.prepare(reference(test=test, classifier=classifier))
    labels = test[:, 0] > 0.6
    expected = []
    for person, answer in zip(x, u, strict=True):
        if np.isnan(answer).any():
            continue
        distance = np.linalg.norm(test - person, axis=1)
        near = [i for side in (False, True) for i in np.argsort(distance) if labels[i] == side and distance[i] > 0]
        near = [i for i in near if not labels[i]][:5] + [i for i in near if labels[i]][:5]
        if answer[0] > 0.6:
            rule = KNeighborsClassifier(1).fit([person, answer], [False, True])
            expected.append(rule.score(test[near], labels[near]))
        else:
            expected.append(0.5)
    score = DISCRIMINATIVE_POWER(answers(x, u), pool)
    assert score.value == pytest.approx(np.mean(expected))
    assert score.n_rows == len(expected)
