"""REVISE: the descent through latent space ends where brute force says."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from tests.explainers.linear_boundary import plane_classifier, square

from gpae.errors import InputError
from gpae.explainers.revise import REVISE
from gpae.models.vae import VAE
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema

Rows = NDArray[np.float64]
SLOPE = np.array([8.0, 4.0])
PERSONS = np.array([[0.2, 0.3], [0.4, 0.6], [0.5, 0.2], [0.1, 0.9]])


@pytest.fixture(scope="module")
def rows() -> tuple[Rows, Layout]:
    return square(400)


@pytest.fixture(scope="module")
def vae(rows: tuple[Rows, Layout]) -> VAE:
    """Two latents for two numbers: next to the identity."""
    made = VAE(latent_dim=2, hidden=(32,), kl_weight=1e-3, max_epochs=80).fit(rows[0])
    assert made.reconstruction_error_ < 0.02
    return made


@pytest.fixture(scope="module")
def make(rows: tuple[Rows, Layout], vae: VAE) -> Callable[..., REVISE]:
    def fitted(**options: object) -> REVISE:
        model = plane_classifier(list(SLOPE), 6.0)
        method = REVISE(**({"classifier": model, "autoencoder": vae} | options))  # type: ignore[arg-type]
        method.fit(rows[0], np.arange(400) % 2, layout=rows[1])
        return method

    return fitted


def objective(method: REVISE, u: Rows, x: Rows, weight: float) -> Rows:
    g = method.classifier_.decision_function(u)
    return np.log1p(np.exp(-g)) + weight * np.abs(u - x).sum(axis=1)


def least_by_brute_force(method: REVISE, x: Rows, weight: float) -> float:
    """The least objective of the favourable rows on a fine grid over all latents in use."""
    z = method.autoencoder_.latents(square(400)[0])
    low, high = z.min(axis=0) - 1, z.max(axis=0) + 1
    grid = np.stack(np.meshgrid(*np.linspace(low, high, 200).T), axis=-1).reshape(-1, 2)
    person = torch.as_tensor(x, dtype=torch.float32).expand(len(grid), 2)
    row = method.autoencoder_.decode(torch.as_tensor(grid, dtype=torch.float32), person).numpy().astype(np.float64)
    row = row[method.classifier_.decision_function(row) > 0]
    return float(objective(method, row, x, weight).min())


@pytest.mark.parametrize("weight", [0.1, 0.5, 2.0])
def test_the_answer_has_the_least_objective_of_all_latents(make: Callable[..., REVISE], weight: float) -> None:
    method = make(distance_weight=weight)
    answer = method.explain(PERSONS)
    assert answer.found.all()
    reached = objective(method, answer.counterfactual, PERSONS, weight)
    least = [least_by_brute_force(method, x, weight) for x in PERSONS]
    np.testing.assert_allclose(reached, least, atol=0.02)


def test_where_the_decoder_is_near_the_identity_the_answer_has_a_closed_form(make: Callable[..., REVISE]) -> None:
    """The 1-norm moves only the steeper column, until softplus'(-g) 8 = lambda."""
    answer = make(distance_weight=2.0).explain(PERSONS)
    g = np.log(8 / 2.0 - 1)
    exact = np.column_stack([(6 + g - 4 * PERSONS[:, 1]) / 8, PERSONS[:, 1]])
    np.testing.assert_allclose(answer.counterfactual, exact, atol=0.03)


def test_a_dearer_distance_gives_a_smaller_change(make: Callable[..., REVISE]) -> None:
    near, far = (
        np.abs(make(distance_weight=w).explain(PERSONS).counterfactual - PERSONS).sum(axis=1) for w in (2.0, 0.05)
    )
    assert (near < far).all()


def test_the_other_class_is_reached_likewise(make: Callable[..., REVISE]) -> None:
    answer = make().explain(np.array([[0.9, 0.8], [0.6, 0.7]]), 0)
    assert answer.found.all()
    assert (answer.counterfactual @ SLOPE < 6).all()


def test_a_feature_fixed_at_the_call_is_left_to_the_person(make: Callable[..., REVISE]) -> None:
    answer = make().explain(PERSONS, fixed=np.array([False, True]))
    assert answer.found.all()
    np.testing.assert_array_equal(answer.counterfactual[:, 1], PERSONS[:, 1])


def test_a_category_changes_where_nothing_else_can_help() -> None:
    """Rounding has no gradient of its own: without one passed through it, the level would never change."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 600)
    frame = pd.DataFrame({"n": rng.random(600), "job": np.array(list("abc"))[level]})
    frame["y"] = (level == 2).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    X = codec.encode(frame).rows
    method = REVISE(classifier=plane_classifier([0.0, 0.0, 0.0, 4.0], 2.0), autoencoder=VAE(latent_dim=2))
    method.fit(X, codec.labels(frame), layout=codec.layout)
    refused = X[level < 2][:50]
    answer = method.explain(refused)
    assert answer.found.mean() > 0.9
    np.testing.assert_array_equal(
        answer.counterfactual[answer.found][:, 1:], np.eye(3)[[2]].repeat(answer.found.sum(), 0)
    )


def steps_of(method: REVISE, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a search decodes."""
    calls = []
    decode = VAE.decode

    def counted(self: VAE, *given: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return decode(self, *given)

    monkeypatch.setattr(VAE, "decode", counted)
    method.explain(PERSONS)
    monkeypatch.setattr(VAE, "decode", decode)
    return len(calls)


def test_the_search_ends_when_nothing_has_been_gained_for_long(
    make: Callable[..., REVISE], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert steps_of(make(patience=None, n_iterations=400), monkeypatch) == 401
    assert 20 < steps_of(make(patience=20, n_iterations=400), monkeypatch) < 300


def test_the_preset_decides_about_the_search_and_the_auto_encoder(make: Callable[..., REVISE]) -> None:
    preset = make(preset="carla", autoencoder=None, n_iterations=5, distance_weight=9.0)
    assert (preset.autoencoder_.objective, len(preset.autoencoder_.losses_)) == ("carla", 5)
    assert preset._settings()["distance_weight"] == 0.5
    assert preset._settings()["n_iterations"] == 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "clara"}, "preset='clara' is not known"),
        ({"objective": "old"}, "objective='old' is not known"),
        ({"n_iterations": 0}, "n_iterations=0 must be a whole number"),
        ({"patience": 2.5}, "patience=2.5 must be a whole number"),
        ({"distance_weight": -1.0}, "distance_weight=-1.0 must be a number of at least 0"),
        ({"step_size": 0.0}, "step_size=0.0 must be"),
    ],
)
def test_what_cannot_be_searched_with_is_refused(
    make: Callable[..., REVISE], options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)
