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
from gpae.results import Counterfactuals
from gpae.table.codec import Codec
from gpae.table.schema import Schema
from tests.conftest import SMALL, loans

assert FILLED is EXPLAINERS
METHODS = sorted(EXPLAINERS)

SETTINGS: dict[str, dict[str, object]] = {
    "counternet": {"max_epochs": 30},
    "gpae": {"beta_grid": (0.0, 0.3)},
    "gpae-inducing": {"beta_grid": (0.0, 0.3), "n_inducing": 24, "hidden_dim": 5, "max_steps": 40},
    "wachter": {"rounds": 4},
}
"""Of methods whose defaults would take long; an odd number of hidden units is the harder case for bit equality."""

ALONE = {"gpae": 4, "gpae-inducing": 4}
"""Refused rows that are asked about one by one, where a question costs much (else 8)."""


def made(name: str, **classifier: object) -> Explainer:
    options = SMALL | classifier
    return EXPLAINERS[name](classifier=GPAEClassifier(**options, random_state=0), **SETTINGS.get(name, {}))


@pytest.fixture(scope="module")
def codec() -> Codec:
    frame = loans()
    return Codec.fit(frame, Schema.infer(frame, label="granted", favourable="yes", immutable=("age",)))


@pytest.fixture(scope="module", params=METHODS)
def method(request: pytest.FixtureRequest, codec: Codec) -> Explainer:
    frame = loans()
    return made(request.param).fit(codec.encode(frame).rows, codec.labels(frame), layout=codec.layout)


@pytest.fixture(scope="module")
def X(codec: Codec) -> NDArray[np.float64]:
    return codec.encode(loans(160, seed=5)).rows


@pytest.fixture(scope="module")
def answer(method: Explainer, X: NDArray[np.float64]) -> Counterfactuals:
    """One plan for each row, searched once for all tests that look at it."""
    return method.explain(X)


@pytest.fixture(scope="module")
def plans(method: Explainer, X: NDArray[np.float64]) -> Counterfactuals:
    """Up to two plans for each row."""
    return method.explain(X, k=2)


def test_every_row_has_an_entry_and_found_agrees_with_the_classifier(
    method: Explainer, X: NDArray[np.float64], answer: Counterfactuals
) -> None:
    assert sorted(set(answer.row)) == list(range(len(X)))
    good = answer.counterfactual[answer.found]
    assert (method.classifier_.predict_proba(good)[:, 1] > 0.5).all()
    assert np.isnan(answer.counterfactual[~answer.found]).all()
    np.testing.assert_array_equal(answer.found, answer.status == "found")


def test_nearly_every_refused_row_is_answered(answer: Counterfactuals) -> None:
    assert (answer.status == "not_found").sum() <= 0.02 * len(answer)
    assert (answer.status == "found").any()


def test_rows_already_in_the_target_class_are_left_alone(
    method: Explainer, X: NDArray[np.float64], answer: Counterfactuals
) -> None:
    there = method.classifier_.predict_proba(X)[:, 1] > 0.5
    np.testing.assert_array_equal(answer.status[answer.plan == 0] == "already_favourable", there)


def test_every_answer_is_a_row_that_the_person_may_become(method: Explainer, X: NDArray[np.float64]) -> None:
    layout = method.layout_
    fixed = layout.named(("job", "income"))
    answer = method.explain(X[:60], fixed=fixed)
    u, x = answer.counterfactual[answer.found], answer.factual[answer.found]
    assert layout.is_allowed(u, x, *layout.box(x, fixed)).all()
    for feature, kept in zip(layout.features, fixed, strict=True):
        if kept or feature.name == "age":
            np.testing.assert_array_equal(u[:, feature.columns], x[:, feature.columns])


def test_the_same_row_gets_the_same_bits_in_any_batch_and_in_any_order(
    method: Explainer, X: NDArray[np.float64], plans: Counterfactuals
) -> None:
    order = np.random.default_rng(0).permutation(len(X))
    mixed = method.explain(X[order], k=2)
    for i in range(len(X)):
        a, b = plans.row == i, mixed.row == np.flatnonzero(order == i)[0]
        np.testing.assert_array_equal(plans.counterfactual[a], mixed.counterfactual[b])


def test_who_asks_for_the_other_class_changes_nobodys_answer(
    method: Explainer, X: NDArray[np.float64], answer: Counterfactuals
) -> None:
    """People with different targets in one call: each is answered as among people with the same target."""
    some = X[:60]
    target = np.arange(len(some)) % 3 == 0
    mixed = method.explain(some, np.where(target, 0, 1))
    for i in np.flatnonzero(~target):
        np.testing.assert_array_equal(mixed.counterfactual[mixed.row == i], answer.counterfactual[answer.row == i])
    asked = mixed.status != "already_favourable"
    assert mixed.found[asked & (mixed.target == 0)].any()


@pytest.fixture(scope="module", params=METHODS)
def method_without_steps(request: pytest.FixtureRequest) -> tuple[Explainer, NDArray[np.float64]]:
    """Odd numbers of columns and latents, and columns that no rounding hides differences in."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((400, 7)), columns=list("abcdefg"))
    frame["y"] = (frame.a - frame.b + 0.5 * np.sin(5 * frame.c) + 0.2 * rng.normal(size=400) > 0.4).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    X = codec.encode(frame).rows
    return made(request.param, latent_dim=5).fit(X, codec.labels(frame), layout=codec.layout), X[:150]


def test_every_row_alone_gets_the_bits_it_gets_in_a_batch(
    method: Explainer, X: NDArray[np.float64], plans: Counterfactuals, request: pytest.FixtureRequest
) -> None:
    _alone_as_in_a_batch(method, X, plans, ALONE.get(_name(request), 8))


def test_every_row_alone_gets_the_bits_it_gets_in_a_batch_where_no_rounding_hides_differences(
    method_without_steps: tuple[Explainer, NDArray[np.float64]], request: pytest.FixtureRequest
) -> None:
    explainer, X = method_without_steps
    _alone_as_in_a_batch(explainer, X, explainer.explain(X, k=2), ALONE.get(_name(request), 8))


def _name(request: pytest.FixtureRequest) -> str:
    """The method's, of a test that is asked of every method."""
    return str(request.node.callspec.id)


def _alone_as_in_a_batch(explainer: Explainer, X: NDArray[np.float64], whole: Counterfactuals, n_rows: int) -> None:
    """The first refused rows and the last, which stand in different tiles and at different places in them."""
    refused = np.unique(whole.row[whole.status != "already_favourable"])
    for i in [*refused[: n_rows // 2], *refused[-(n_rows // 2) :]]:
        alone = explainer.explain(X[i : i + 1], k=2)
        np.testing.assert_array_equal(alone.counterfactual, whole.counterfactual[whole.row == i])


def test_plans_of_one_person_differ(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X[:60], k=3)
    for i in set(answer.row[answer.found]):
        plans = answer.counterfactual[(answer.row == i) & answer.found]
        assert len(np.unique(plans, axis=0)) == len(plans) <= 3


def test_inputs_and_global_random_state_are_left_untouched(method: Explainer, X: NDArray[np.float64]) -> None:
    before, numpy_state, torch_state = X.copy(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    method.explain(X[:60])
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_a_restored_method_answers_with_the_same_bits(
    method: Explainer, X: NDArray[np.float64], answer: Counterfactuals
) -> None:
    state = method.state()
    copy = type(method)()
    copy.restore(State({k: v.copy() for k, v in state.arrays.items()}, state.values), method.layout_)
    np.testing.assert_array_equal(copy.explain(X).counterfactual, answer.counterfactual)


def test_where_nothing_may_change_nothing_is_found(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X, fixed=np.ones(len(method.layout_.features), dtype=bool))
    assert not answer.found.any()
    assert set(answer.status) == {"already_favourable", "infeasible"}


def test_rows_that_may_not_change_leave_the_others_as_they_are(
    method: Explainer, X: NDArray[np.float64], answer: Counterfactuals
) -> None:
    stuck = np.arange(60) % 2 == 0
    mixed = method.explain(X[:60], fixed=np.repeat(stuck[:, None], len(method.layout_.features), axis=1))
    np.testing.assert_array_equal(mixed.row, np.arange(60))
    np.testing.assert_array_equal(mixed.counterfactual[~stuck], answer.counterfactual[:60][~stuck])
    np.testing.assert_array_equal(mixed.status[~stuck], answer.status[:60][~stuck])
    assert set(mixed.status[stuck]) == {"already_favourable", "infeasible"}


def test_the_other_class_can_be_the_target(method: Explainer, X: NDArray[np.float64]) -> None:
    answer = method.explain(X[:60], 0)
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
