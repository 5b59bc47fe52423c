"""What every method promises, walked over the registry: a new method is tested by existing."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from gpae.artefact import State
from gpae.errors import InputError
from gpae.explainer import EXPLAINERS, Explainer
from gpae.explainers import EXPLAINERS as FILLED
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.table.codec import Codec
from gpae.table.schema import Schema
from tests.conftest import SMALL, loans

assert FILLED is EXPLAINERS
METHODS = sorted(EXPLAINERS)


@pytest.fixture(scope="module")
def codec() -> Codec:
    frame = loans()
    return Codec.fit(frame, Schema.infer(frame, label="granted", favourable="yes", immutable=("age",)))


@pytest.fixture(scope="module", params=METHODS)
def method(request: pytest.FixtureRequest, codec: Codec) -> Explainer:
    frame = loans()
    made = EXPLAINERS[request.param](classifier=GPAEClassifier(**SMALL, random_state=0))
    return made.fit(codec.encode(frame).rows, codec.labels(frame), layout=codec.layout)


@pytest.fixture(scope="module")
def X(codec: Codec) -> NDArray[np.float64]:
    return codec.encode(loans(160, seed=5)).rows


def test_every_row_has_an_entry_and_found_agrees_with_the_classifier(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X)
    assert sorted(set(answer.row)) == list(range(len(X)))
    good = answer.counterfactual[answer.found]
    assert (method.classifier_.predict_proba(good)[:, 1] > 0.5).all()
    assert np.isnan(answer.counterfactual[~answer.found]).all()
    np.testing.assert_array_equal(answer.found, answer.status == "found")


def test_nearly_every_refused_row_is_answered(method: Explainer, X: NDArray[np.float64]) -> None:
    status = method.explain(X).status
    assert (status == "not_found").sum() <= 0.02 * len(X)
    assert (status == "found").any()


def test_rows_already_in_the_target_class_are_left_alone(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X)
    there = method.classifier_.predict_proba(X)[:, 1] > 0.5
    np.testing.assert_array_equal(answer.status[answer.plan == 0] == "already_favourable", there)


def test_every_answer_is_a_row_that_the_person_may_become(method: Explainer, X: NDArray[np.float64]) -> None:
    layout = method.layout_
    fixed = layout.named(("job", "income"))
    answer = method.explain(X, fixed=fixed)
    u, x = answer.counterfactual[answer.found], answer.factual[answer.found]
    assert layout.is_allowed(u, x, *layout.box(x, fixed)).all()
    for feature, kept in zip(layout.features, fixed, strict=True):
        if kept or feature.name == "age":
            np.testing.assert_array_equal(u[:, feature.columns], x[:, feature.columns])


def test_the_same_row_gets_the_same_bits_alone_in_any_batch_and_in_any_order(
    method: Explainer, X: NDArray[np.float64]
) -> None:
    whole = method.explain(X, k=2)
    order = np.random.default_rng(0).permutation(len(X))
    mixed = method.explain(X[order], k=2)
    for i in range(len(X)):
        a, b = whole.row == i, mixed.row == np.flatnonzero(order == i)[0]
        np.testing.assert_array_equal(whole.counterfactual[a], mixed.counterfactual[b])
    alone = method.explain(X[7:8], k=2)
    np.testing.assert_array_equal(alone.counterfactual, whole.counterfactual[whole.row == 7])


@pytest.fixture(scope="module", params=METHODS)
def method_without_steps(request: pytest.FixtureRequest) -> tuple[Explainer, NDArray[np.float64]]:
    """Odd numbers of columns and latents, and columns that no rounding hides differences in."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((400, 7)), columns=list("abcdefg"))
    frame["y"] = (frame.a - frame.b + 0.5 * np.sin(5 * frame.c) + 0.2 * rng.normal(size=400) > 0.4).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    X = codec.encode(frame).rows
    made = EXPLAINERS[request.param](classifier=GPAEClassifier(**(SMALL | {"latent_dim": 5}), random_state=0))
    return made.fit(X, codec.labels(frame), layout=codec.layout), X


def test_every_row_alone_gets_the_bits_it_gets_in_a_batch(
    method: Explainer, X: NDArray[np.float64], method_without_steps: tuple[Explainer, NDArray[np.float64]]
) -> None:
    for explainer, rows in ((method, X), method_without_steps):
        rows = rows[:12]
        whole = explainer.explain(rows, k=3)
        for i in range(len(rows)):
            alone = explainer.explain(rows[i : i + 1], k=3)
            np.testing.assert_array_equal(alone.counterfactual, whole.counterfactual[whole.row == i])


def test_plans_of_one_person_differ(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X, k=3)
    for i in set(answer.row[answer.found]):
        plans = answer.counterfactual[(answer.row == i) & answer.found]
        assert len(np.unique(plans, axis=0)) == len(plans) <= 3


def test_inputs_and_global_random_state_are_left_untouched(method: Explainer, X: NDArray[np.float64]) -> None:
    before, numpy_state, torch_state = X.copy(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    method.explain(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_a_restored_method_answers_with_the_same_bits(method: Explainer, X: NDArray[np.float64]) -> None:
    state = method.state()
    copy = type(method)()
    copy.restore(State({k: v.copy() for k, v in state.arrays.items()}, state.values), method.layout_)
    np.testing.assert_array_equal(copy.explain(X).counterfactual, method.explain(X).counterfactual)


def test_where_nothing_may_change_nothing_is_found(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X, fixed=np.ones(len(method.layout_.features), dtype=bool))
    assert not answer.found.any()
    assert set(answer.status) == {"already_favourable", "infeasible"}


def test_the_other_class_can_be_the_target(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X, 0)
    assert (method.classifier_.predict_proba(answer.counterfactual[answer.found])[:, 1] < 0.5).all()
    assert answer.found.any()


def test_no_row_gives_no_entry_and_no_plan_is_refused(method: Explainer, X: NDArray[np.float64]) -> None:
    assert len(method.explain(X[:0])) == 0
    with pytest.raises(InputError, match="at least one plan"):
        method.explain(X, k=0)


def test_each_method_says_its_objective_and_how_it_differs_from_the_paper() -> None:
    for name in METHODS:
        text = EXPLAINERS[name].__doc__ or ""
        assert "**Objective.**" in text, name
        assert "**Differs from the paper.**" in text, name
