"""LogReg against its closed form, and against every row there is."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.conftest import SMALL, loans

from gpae.errors import InputError
from gpae.explainers.logistic import Logistic
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.table.codec import Codec
from gpae.table.schema import Schema


def numbers(n: int = 300) -> tuple[Codec, np.ndarray, np.ndarray]:
    """Free numbers; the people in the middle can be mirrored without leaving the range."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((n, 3)), columns=list("abc"))
    frame["y"] = (frame.a + 0.5 * frame.b - 0.2 * frame.c + 0.1 * rng.normal(size=n) > 0.7).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    return codec, codec.encode(frame).rows, codec.labels(frame)


@pytest.fixture(scope="module")
def middle() -> tuple[Logistic, np.ndarray]:
    codec, X, y = numbers()
    method = Logistic(rounds=1).fit(X, y, layout=codec.layout)
    people = np.array([[0.5, 0.4, 0.5], [0.45, 0.5, 0.6], [0.55, 0.3, 0.4]])
    assert (method.classifier_.predict_proba(people)[:, 1] < 0.5).all()
    return method, people


def test_the_mirror_point_has_the_opposite_logit_and_lies_straight_across(middle) -> None:
    method, people = middle
    answer = method.explain(people)
    model, step = method.logistic_, answer.counterfactual - people
    np.testing.assert_allclose(
        model.decision_function(answer.counterfactual), -model.decision_function(people), rtol=1e-9
    )
    cosine = step @ model.weights / np.linalg.norm(step, axis=1) / np.linalg.norm(model.weights)
    np.testing.assert_allclose(cosine, 1)


def test_a_lock_turns_the_step_into_the_open_columns(middle) -> None:
    method, people = middle
    answer = method.explain(people, fixed=np.array([False, True, False]))
    model, step = method.logistic_, answer.counterfactual - people
    np.testing.assert_array_equal(step[:, 1], 0)
    np.testing.assert_allclose(
        model.decision_function(answer.counterfactual), -model.decision_function(people), rtol=1e-9
    )
    np.testing.assert_allclose(step[:, 0] / step[:, 2], model.weights[0] / model.weights[2])


def test_a_step_of_one_and_a_half_goes_half_as_far_beyond(middle) -> None:
    method, people = middle
    shorter = Logistic(step=1.5, rounds=1)
    shorter.restore(method.state(), method.layout_)
    model = method.logistic_
    logit = model.decision_function(shorter.explain(people).counterfactual)
    np.testing.assert_allclose(logit, -0.5 * model.decision_function(people), rtol=1e-9)


def test_nothing_is_missed_that_the_own_model_would_accept() -> None:
    """Levels only, so that every row there is can be asked about."""
    rng = np.random.default_rng(1)
    levels = {"job": ["a", "b", "c", "d"], "home": ["own", "rent", "none"], "sex": ["f", "m"]}
    frame = pd.DataFrame({name: rng.choice(values, 400) for name, values in levels.items()})
    worth = frame.job.map({"a": -1.0, "b": 0, "c": 0.4, "d": 1}) + (frame.home == "own") + 1.2 * (frame.sex == "m")
    frame["y"] = (worth + 0.3 * rng.normal(size=400) > 1.5).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1, immutable=("sex",)))
    X, y = codec.encode(frame).rows, codec.labels(frame)
    method = Logistic().fit(X, y, layout=codec.layout)
    every = pd.DataFrame(product(*levels.values()), columns=list(levels))
    accepted = method.classifier_.predict_proba(codec.encode(every).rows)[:, 1] > 0.5
    answer = method.explain(codec.encode(every).rows, fixed=codec.layout.named(("home",)))
    possible = [
        bool(accepted[(every.sex == person.sex) & (every.home == person.home)].any()) for person in every.itertuples()
    ]
    np.testing.assert_array_equal(answer.found | accepted, possible)
    assert 0 < answer.found.sum() < (~accepted).sum()


def test_longer_steps_answer_where_the_range_and_the_levels_cut_the_first_one() -> None:
    frame = loans()
    codec = Codec.fit(frame, Schema.infer(frame, label="granted", favourable="yes", immutable=("age",)))
    X, y = codec.encode(frame).rows, codec.labels(frame)
    lock = codec.layout.named(("income", "score"))
    once, often = (Logistic(rounds=rounds).fit(X, y, layout=codec.layout) for rounds in (1, 40))
    one, many = (method.explain(X, fixed=lock) for method in (once, often))
    assert 0 < one.found.sum() < many.found.sum()
    np.testing.assert_array_equal(many.counterfactual[one.found], one.counterfactual[one.found])


def test_post_hoc_the_direction_is_that_of_a_model_of_the_explained_labels() -> None:
    frame = loans()
    codec = Codec.fit(frame, Schema.infer(frame, label="granted", favourable="yes"))
    X, y = codec.encode(frame).rows, codec.labels(frame)
    explained = GPAEClassifier(**SMALL, random_state=0).fit(X, y)
    method = Logistic(classifier=explained, mode="posthoc").fit(X, y, layout=codec.layout)
    assert method.classifier_ is explained
    said = explained.predict(X)
    assert ((method.logistic_.decision_function(X) > 0) == said).mean() > 0.9
    answer = method.explain(X)
    assert answer.found[said == 0].mean() > 0.98
    assert (explained.predict(answer.counterfactual[answer.found]) == 1).all()
    copy = Logistic(mode="posthoc")
    copy.restore(method.state(), codec.layout)
    np.testing.assert_array_equal(copy.explain(X[:20]).counterfactual, method.explain(X[:20]).counterfactual)


def test_whom_only_the_explained_classifier_refuses_is_moved_to_the_right_side() -> None:
    """The logistic model favours the person already; going to its hyperplane would be the wrong way."""
    codec, X, y = numbers()
    explained = GPAEClassifier(**SMALL, random_state=0).fit(X, y)
    method = Logistic(classifier=explained, mode="posthoc").fit(X, y, layout=codec.layout)
    torn = X[(explained.predict(X) == 0) & (method.logistic_.decision_function(X) > 0)]
    assert len(torn)
    answer = method.explain(torn)
    step = answer.counterfactual[answer.found] - answer.factual[answer.found]
    assert answer.found.any()
    assert (step @ method.logistic_.weights > 0).all()


@pytest.mark.parametrize("wrong", [{"mode": "x"}, {"step": 0.5}, {"growth": float("nan")}, {"rounds": 0}])
def test_a_setting_that_makes_no_sense_is_refused_at_fit(wrong: dict[str, Any]) -> None:
    codec, X, y = numbers(50)
    with pytest.raises(InputError, match=next(iter(wrong))):
        Logistic(**wrong).fit(X, y, layout=codec.layout)
