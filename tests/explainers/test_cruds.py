"""CRUDS: the search in the label's subspace ends where brute force and a closed form say."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from tests.explainers.linear_boundary import plane_classifier, square

from gpae.errors import InputError
from gpae.explainers.cruds import CRUDS
from gpae.models.autoencoder_training import CollapsedLatentWarning
from gpae.models.conditional_vae import ConditionalVAE
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema

Rows = NDArray[np.float64]
SLOPE, OFFSET = np.array([8.0, 4.0]), 6.0
PERSONS = np.array([[0.2, 0.3], [0.5, 0.35], [0.55, 0.2], [0.1, 0.5]])
SHEAR = np.array([[0.1, 0.02], [-0.03, 0.08]])
SLOW = {"step_size": 0.03, "n_iterations": 700, "patience": None}


def by_hand(start: tuple[float, float] = (3.0, 2.0), shear: Rows = SHEAR) -> ConditionalVAE:
    """z = x and decode(z, w) = z + w S: pairs of ReLUs make the hidden layers linear."""
    vae = ConditionalVAE(rest_dim=2, label_dim=2, width=8)
    vae.fixed_, vae.losses_, vae.latent_variance_ = np.zeros(2, dtype=np.bool_), [0.0], 1.0
    network = vae._network = vae._new_network(torch.Generator())
    network.eval().requires_grad_(False)
    for parameter in network.parameters():
        parameter.zero_()
    for part, inward, outward in (
        (network.rest_encoder, np.eye(2), np.eye(2)),
        (network.decoder, np.eye(4), np.vstack([np.eye(2), shear])),
    ):
        n_in, n_out = outward.shape
        pairs = np.hstack([inward, -inward])  # relu(v) - relu(-v) = v
        part[0].weight[: 2 * n_in] = torch.as_tensor(pairs.T, dtype=torch.float32)
        both = np.vstack([outward, -outward]).T
        part[2].weight[:n_out, : 2 * n_in] = torch.as_tensor(both, dtype=torch.float32)
    network.label_prior[2].bias[:2] = torch.tensor(start)
    return vae


def loss(u: Rows, x: Rows, weight: float, sign: float = 1.0) -> Rows:
    g = sign * np.sin(0.1 * (u @ SLOPE - OFFSET)) / 0.1
    return np.log1p(np.exp(-g)) + weight * ((u - x) ** 2).sum(axis=1)


@pytest.fixture(scope="module")
def rows() -> tuple[Rows, Layout]:
    return square(300)


@pytest.fixture(scope="module")
def make(rows: tuple[Rows, Layout]) -> Callable[..., CRUDS]:
    def fitted(**options: object) -> CRUDS:
        model = plane_classifier(list(SLOPE), OFFSET)
        given = {"classifier": model, "autoencoder": by_hand()} | options
        method = CRUDS(**given)  # type: ignore[arg-type]
        method.fit(rows[0], (rows[0] @ SLOPE > OFFSET).astype(np.int64), layout=rows[1])
        return method

    return fitted


@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_the_answer_has_the_least_loss_of_all_w(make: Callable[..., CRUDS], weight: float) -> None:
    """On a fine grid of w, inside the unit square and on the target's side."""
    answer = make(distance_weight=weight, **SLOW).explain(PERSONS)
    assert answer.found.all()
    w = np.stack(np.meshgrid(*2 * [np.linspace(-8, 8, 400)]), axis=-1).reshape(-1, 2)
    for x, reached in zip(PERSONS, answer.counterfactual, strict=True):
        grid = np.clip(x + w @ SHEAR, *make().layout_.box(x[None]))
        least = loss(grid[grid @ SLOPE > OFFSET], x, weight).min()
        assert loss(reached[None], x, weight)[0] <= least + 2e-3


def test_where_w_reaches_every_row_the_answer_has_a_closed_form(make: Callable[..., CRUDS]) -> None:
    """The way to the plane, up to softplus'(-g) |v| = 2 lambda t at the distance t."""
    weight, steepness = 4.0, float(np.linalg.norm(SLOPE))
    answer = make(distance_weight=weight, **SLOW).explain(PERSONS[1:3])
    for x, reached in zip(PERSONS[1:3], answer.counterfactual, strict=True):

        def slope(t: float, x: Rows = x) -> float:
            g = np.sin(0.1 * (x @ SLOPE - OFFSET + steepness * t)) / 0.1
            return float(steepness * np.cos(np.arcsin(0.1 * g)) / (1 + np.exp(g)) - 2 * weight * t)

        exact = x + brentq(slope, 0.0, 1.0) * SLOPE / steepness
        np.testing.assert_allclose(reached, exact, atol=0.01)


def test_class_zero_can_be_the_target(make: Callable[..., CRUDS]) -> None:
    people = 1 - PERSONS
    answer = make(autoencoder=by_hand(start=(-3.0, -2.0)), distance_weight=4.0, **SLOW).explain(people, 0)
    assert answer.found.all()
    least = loss(PERSONS, people, 4.0, -1.0)
    assert (loss(answer.counterfactual, people, 4.0, -1.0) < least).all()
    assert (answer.counterfactual @ SLOPE < OFFSET).all()


def test_a_feature_fixed_at_the_call_is_kept_and_the_other_makes_up_for_it(make: Callable[..., CRUDS]) -> None:
    answer = make(distance_weight=4.0, **SLOW).explain(PERSONS[:3], fixed=np.array([True, False]))
    assert not answer.found[0]  # the second column alone cannot reach the plane
    assert answer.found[1:].all()
    np.testing.assert_array_equal(answer.counterfactual[1:, 0], PERSONS[1:3, 0])
    a = PERSONS[1:3, 0]
    b = np.linspace(0, 1, 2001)
    for x, reached in zip(PERSONS[1:3], answer.counterfactual[1:], strict=True):
        line = np.column_stack([np.full_like(b, x[0]), b])
        line = line[line @ SLOPE > OFFSET]
        assert loss(reached[None], x, 4.0)[0] <= loss(line, x, 4.0).min() + 2e-3
    assert (8 * a + 4 * answer.counterfactual[1:, 1] > OFFSET).all()


def test_a_second_round_without_distance_finds_what_a_heavy_distance_forbids(make: Callable[..., CRUDS]) -> None:
    options = {"autoencoder": by_hand(start=(0.1, 0.1)), "distance_weight": 500.0}
    assert not make(**options, second_round=False).explain(PERSONS).found.any()
    answer = make(**options).explain(PERSONS)
    assert answer.found.all()
    # the first row beyond the plane, not one deep in the class
    assert (answer.counterfactual @ SLOPE - OFFSET < 0.5).all()


def test_a_start_drawn_for_a_row_is_its_own_in_any_batch_and_another_for_another_seed(
    make: Callable[..., CRUDS],
) -> None:
    method = make(w_init="uniform", n_iterations=20)
    X = np.repeat(PERSONS, 50, axis=0) + np.linspace(0, 0.05, 200)[:, None]
    whole = method.explain(X)
    assert whole.found.any()
    np.testing.assert_array_equal(method.explain(X[::-1]).counterfactual[::-1], whole.counterfactual)
    np.testing.assert_array_equal(method.explain(X[7:8]).counterfactual, whole.counterfactual[7:8])
    assert not np.array_equal(method.explain(X, seed=1).counterfactual, whole.counterfactual, equal_nan=True)


def test_w_is_about_the_classifiers_label_unless_the_datas_is_asked_for(rows: tuple[Rows, Layout]) -> None:
    X, layout = rows
    model, y = plane_classifier(list(SLOPE), OFFSET), np.arange(300) % 2
    quick = ConditionalVAE(max_epochs=3)
    seen = []

    class Spy(ConditionalVAE):
        def fit(self, X: Rows, y: NDArray[np.int64], **others: object) -> "ConditionalVAE":
            seen.append(y)
            return super().fit(X, y, **others)  # type: ignore[arg-type]

    for labels in ("model", "data"):
        spy = Spy(**quick.get_params())
        CRUDS(classifier=model, autoencoder=spy, labels=labels).fit(X, y, layout=layout)  # type: ignore[arg-type]
    np.testing.assert_array_equal(seen[0], X @ SLOPE > OFFSET)
    np.testing.assert_array_equal(seen[1], y)


def lenders(n: int = 600) -> tuple[Rows, NDArray[np.int64], Layout]:
    """Four numbers and a fixed one; the first two decide."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((n, 5)), columns=list("abcde"))
    frame["y"] = (8 * frame.a + 4 * frame.b > OFFSET).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1, immutable=("e",)))
    return codec.encode(frame).rows, codec.labels(frame), codec.layout


def test_people_keep_what_is_their_own_and_with_the_preset_all_become_one() -> None:
    X, y, layout = lenders(3500)
    model = plane_classifier([8.0, 4.0, 0.0, 0.0, 0.0], OFFSET)
    refused = X[X[:, :2] @ SLOPE < OFFSET][:100]
    method = CRUDS(classifier=model, autoencoder=ConditionalVAE(max_epochs=15)).fit(X, y, layout=layout)
    with pytest.warns(CollapsedLatentWarning):
        preset = CRUDS(classifier=model, preset="carla").fit(X, y, layout=layout)
    own, one = method.explain(refused), preset.explain(refused)
    assert own.found.mean() > 0.98
    assert own.counterfactual[own.found][:, 2:4].std(axis=0).min() > 0.1
    assert one.found.all()
    assert one.counterfactual[:, :4].std(axis=0).max() < 0.05
    for answer in (own, one):
        np.testing.assert_array_equal(answer.counterfactual[answer.found, 4], refused[answer.found, 4])


def test_a_feature_fixed_by_the_schema_is_given_to_the_decoder_and_not_encoded() -> None:
    X, y, layout = lenders()
    quick = ConditionalVAE(max_epochs=1)
    method = CRUDS(classifier=plane_classifier([8.0, 4.0, 0, 0, 0], OFFSET), autoencoder=quick)
    method.fit(X, y, layout=layout)
    np.testing.assert_array_equal(method.autoencoder_.fixed_, [False, False, False, False, True])
    assert not hasattr(quick, "losses_")


def test_the_preset_decides_what_it_names_and_leaves_the_parameters_alone() -> None:
    method = CRUDS(preset="carla", distance_weight=7.0)
    settings = method._settings()
    assert (settings["w_init"], settings["distance_weight"], settings["n_iterations"]) == ("uniform", 0.001, 2000)
    assert method.distance_weight == 7.0
    assert ConditionalVAE.carla().get_params()["objective"] == "carla"


def test_where_every_feature_is_fixed_by_the_schema_nothing_is_found() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((60, 2)), columns=["a", "b"])
    frame["y"] = (frame.a > 0.5).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1, immutable=("a", "b")))
    X = codec.encode(frame).rows
    method = CRUDS(classifier=plane_classifier(list(SLOPE), OFFSET), autoencoder=ConditionalVAE(max_epochs=1))
    assert not method.fit(X, codec.labels(frame), layout=codec.layout).explain(X).found.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "paper"}, "preset='paper' is not known"),
        ({"labels": "true"}, "labels='true' is not known"),
        ({"w_init": "zero"}, "w_init='zero' is not known"),
        ({"n_iterations": 0}, "n_iterations=0 must be a whole number"),
        ({"distance_weight": -1.0}, "distance_weight=-1.0 must be a number of at least 0"),
    ],
)
def test_a_parameter_that_cannot_be_searched_with_is_refused(
    make: Callable[..., CRUDS], options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)


def test_an_auto_encoder_of_other_columns_is_refused() -> None:
    X, y, layout = lenders()
    method = CRUDS(classifier=plane_classifier([8.0, 4.0, 0, 0, 0], OFFSET), autoencoder=by_hand())
    with pytest.raises(InputError, match="fitted to 2 columns, these rows have 5"):
        method.fit(X, y, layout=layout)
