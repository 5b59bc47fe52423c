"""What every metric promises, walked over the registry: a new metric is tested by existing."""

import numpy as np
import pytest

from gpae.metric import METRICS, Metric, Reference, judged
from gpae.metrics import METRICS as FILLED
from gpae.models.class_autoencoders import ClassAutoencoders, Schedule
from gpae.results import Counterfactuals
from tests.metrics.made_answers import Threshold, answers, two_numbers_and_a_level

assert FILLED is METRICS
NAMES = sorted(METRICS)
SHARES = {"Validity", "ValiditySelf", "Found"}
"""Of all queries, whether they have an answer or not."""


@pytest.fixture(scope="module")
def reference() -> Reference:
    rng = np.random.default_rng(0)
    rows = rng.random((120, 5))
    labels = (rows[:, 0] > 0.5).astype(np.int64)
    made = ClassAutoencoders.fit(rows, labels, schedule=Schedule(max_epochs=3))
    return Reference(
        rows, labels, rows[:60], two_numbers_and_a_level(), Threshold(0.5), made={"class_autoencoders": made}
    )


@pytest.fixture(params=NAMES)
def metric(request: pytest.FixtureRequest) -> Metric:
    return METRICS[request.param]


def some_answers(reference: Reference, n: int = 30) -> Counterfactuals:
    rng = np.random.default_rng(1)
    u = rng.random((n, 5))
    u[rng.random(n) < 0.3] = np.nan
    return answers(reference.test[:n], u, target=rng.integers(0, 2, n))


def test_the_names_are_those_of_the_records() -> None:
    assert {metric.name for metric in METRICS.values()} == {
        "L2", "L2Norm", "Diversity", "MeanPairwise", "Instability", "DiscriminativePower", "IM1", "IM1Median", "IM2",
        "IM2Median", "Validity", "ValiditySelf", "Found", "Violations",
    }  # fmt: skip
    assert all(METRICS[metric.name] is metric and metric.better in ("higher", "lower") for metric in METRICS.values())
    assert all(METRICS.paper_name(name) == METRICS[name].name for name in METRICS)


def test_there_is_one_number_an_answer_and_none_where_nothing_was_found(metric: Metric, reference: Reference) -> None:
    made = some_answers(reference)
    scores = metric.score(made, metric.prepare(reference))
    assert scores.shape == (len(made),)
    assert scores.dtype == np.float64
    if metric.name not in SHARES:
        assert np.isnan(scores[~made.found]).all()
        assert not np.isnan(scores[made.found]).all()


def test_a_mask_of_rows_is_the_same_as_not_having_asked_the_others(metric: Metric, reference: Reference) -> None:
    made, prepared = some_answers(reference), metric.prepare(reference)
    rows = np.arange(30) % 3 != 0
    fewer = answers(made.factual[rows], made.counterfactual[rows], made.target[rows])
    assert metric(made, prepared, rows) == metric(fewer, prepared)


def test_the_order_of_the_queries_does_not_matter(metric: Metric, reference: Reference) -> None:
    made, prepared = some_answers(reference), metric.prepare(reference)
    order = np.random.default_rng(2).permutation(30)
    mixed = answers(made.factual[order], made.counterfactual[order], made.target[order])
    one, other = metric(made, prepared), metric(mixed, prepared)
    assert other.value == pytest.approx(one.value)
    assert other.n_rows == one.n_rows


def test_a_method_that_answers_nobody_scores_nan_or_a_share_of_zero(metric: Metric, reference: Reference) -> None:
    nothing = answers(reference.test[:8], np.full((8, 5), np.nan))
    score = metric(nothing, metric.prepare(reference))
    if metric.name in SHARES:
        assert (score.value, score.n_rows) == (0.0, 8)
    else:
        assert np.isnan(score.value)
        assert score.n_rows == 0
    assert metric(judged(nothing, np.zeros(8, dtype=bool)), metric.prepare(reference)).n_rows == 0


def test_answers_are_left_as_they_are(metric: Metric, reference: Reference) -> None:
    made = some_answers(reference)
    before = made.factual.copy(), made.counterfactual.copy()
    metric(made, metric.prepare(reference))
    np.testing.assert_array_equal(made.factual, before[0])
    np.testing.assert_array_equal(made.counterfactual, before[1])
