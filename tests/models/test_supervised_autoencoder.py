"""The SAE as an estimator: what it learns, keeps and refuses."""

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from gpae.artefact import State
from gpae.errors import InputError
from gpae.models.column_kinds import ColumnKinds
from gpae.models.sae_network import SAENetwork
from gpae.models.supervised_autoencoder import SupervisedAutoencoder
from gpae.numerics import probit
from gpae.table.codec import Codec
from gpae.table.schema import Schema

NORMAL = np.array([1.0, -0.8, 0.4])
"""The true boundary of the linear data: NORMAL'x = OFFSET."""
OFFSET = 0.3


def linear(n: int = 800, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X = np.random.default_rng(seed).random((n, 3))
    return X, (X @ NORMAL > OFFSET).astype(np.int64)


@pytest.fixture(scope="module")
def model() -> SupervisedAutoencoder:
    return SupervisedAutoencoder(3, max_epochs=40, batch_size=128, random_state=0).fit(*linear())


def test_a_known_linear_boundary_is_found(model: SupervisedAutoencoder) -> None:
    X, y = linear(2000, seed=1)
    assert model.score(X, y) > 0.96
    clear = np.abs(X @ NORMAL - OFFSET) > 0.1
    assert (model.predict(X)[clear] == y[clear]).mean() > 0.995


def test_rows_survive_the_way_through_the_latents(model: SupervisedAutoencoder) -> None:
    X, _ = linear(500, seed=1)
    error = np.square(model.inverse_transform(model.transform(X)) - X).mean()
    assert error < 0.15 * X.var(axis=0).mean()


def test_the_mirrored_latent_decodes_to_the_other_side_of_the_known_boundary(model: SupervisedAutoencoder) -> None:
    X, y = linear(500, seed=2)
    latent = model.transform(X)
    mirrored = model.inverse_transform(model.stepped(latent, 2.0))
    clear = np.abs(X @ NORMAL - OFFSET) > 0.15
    assert ((mirrored @ NORMAL > OFFSET) != (y == 1))[clear].mean() > 0.95


def test_the_probability_is_above_one_half_on_the_second_class_side(model: SupervisedAutoencoder) -> None:
    X, _ = linear(300, seed=3)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(p[:, 1] > 0.5, model.decision_function(X) > 0)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_the_coefficients_rest_on_the_latents_of_the_training_rows(model: SupervisedAutoencoder) -> None:
    X, y = linear()
    latent, sign = torch.as_tensor(model.transform(X)), torch.as_tensor(2.0 * y - 1.0)
    q, start = model.network_.coefficients, model.network_.prior
    again = probit.sweep(q, latent, sign, start)
    gain = probit.bound(again, latent, sign, start) - probit.bound(q, latent, sign, start)
    assert 0 <= float(gain) < 0.05
    assert float(probit.bound(q, latent, sign, start)) > float(probit.bound(start, latent, sign, start)) + 100


def test_the_latent_of_a_row_is_the_draw_without_noise(model: SupervisedAutoencoder) -> None:
    x = torch.as_tensor(linear(20, seed=4)[0])
    drawn, _ = model.network_.draw(x, torch.zeros(20, 3).double())
    np.testing.assert_allclose(model.transform(x.numpy()), drawn.numpy(), atol=1e-12)


def test_the_density_of_a_draw_is_that_of_a_gaussian_pushed_through_the_flow(model: SupervisedAutoencoder) -> None:
    """The density times the Jacobian's determinant by the noise is the density of the noise."""
    x, noise = torch.as_tensor(linear(5, seed=4)[0]), torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    noise = noise.double()
    _, log_density = model.network_.draw(x, noise)
    for i in range(5):
        full = torch.autograd.functional.jacobian(
            lambda e, i=i: model.network_.draw(x[i : i + 1], e.unsqueeze(0))[0][0], noise[i]
        )
        normal = torch.distributions.Normal(0.0, 1.0).log_prob(noise[i]).sum()
        assert float(log_density[i]) == pytest.approx(float(normal - torch.linalg.slogdet(full)[1]), rel=1e-6)


def mixed_network() -> SAENetwork:
    """Numbers in columns 0 and 5, yes or no in 1, a level of three in 2 to 4; coefficients that have seen labels."""
    columns = ColumnKinds.named(torch.tensor([-1, -2, 0, 0, 0, -1]))
    generator = torch.Generator().manual_seed(0)
    network = SAENetwork(columns, 2, (8,), 3, 1, 4, 10.0, generator).double().requires_grad_(False)
    network.centre[[0, 5]], network.scale[[0, 5]] = torch.tensor([[0.4, -1.0], [0.2, 3.0]], dtype=torch.float64)
    latent = torch.randn(30, 2, generator=generator).double()
    network.settle(latent, torch.where(latent @ torch.tensor([1.0, -2.0]).double() > 0.5, 1.0, -1.0), 50)
    return network


def row_by_row_bound(
    network: SAENetwork, X: NDArray[np.float64], y: NDArray[np.float64], latent: torch.Tensor, log_q: torch.Tensor
) -> list[float]:
    """log p(x|l) + log p(l) - log q(l|x) + w (log Phi(y xi) - (l' Sigma l + v_0) / 2), with a noise 0.3 and w = 4."""
    q, bounds = network.coefficients, []
    sigma, bias_variance = np.linalg.inv(q.precision.numpy()), 1 / float(q.bias_precision)
    mu, mu_0 = sigma @ q.moment.numpy(), bias_variance * float(q.bias_moment)
    for x, sign, at, density, out in zip(
        X, y, latent.numpy(), log_q.numpy(), network.decoder(latent).numpy(), strict=True
    ):
        numbers = np.clip([(x[0] - 0.4) / 0.2, (x[5] + 1.0) / 3.0], -5, 5)
        rebuilt = norm.logpdf(numbers, loc=out[[0, 5]], scale=np.sqrt(0.3)).sum()
        yes = 1 / (1 + np.exp(-out[1]))
        rebuilt += np.log(yes if x[1] == 1 else 1 - yes)
        levels = np.exp(out[2:5]) / np.exp(out[2:5]).sum()
        rebuilt += np.log(levels[x[2:5].argmax()])
        label = norm.logcdf(sign * (mu @ at + mu_0)) - 0.5 * (at @ sigma @ at + bias_variance)
        bounds.append(rebuilt + norm.logpdf(at).sum() - density + 4.0 * label)
    return bounds


def test_the_bound_of_a_row_is_the_one_written_out() -> None:
    network = mixed_network()
    X = np.array(
        [
            [0.3, 1.0, 0.0, 1.0, 0.0, 2.0],
            [0.7, 0.0, 1.0, 0.0, 0.0, -4.0],
            [9.9, 1.0, 0.0, 0.0, 1.0, 0.5],  # a number that is cut off
        ]
    )
    x, y = torch.as_tensor(X), np.array([1.0, -1.0, 1.0])
    latent, log_q = network.draw(x, torch.randn(3, 2, generator=torch.Generator().manual_seed(1)).double())
    bound = network.bound(x, torch.as_tensor(y), latent, log_q, 0.3, 4.0)
    np.testing.assert_allclose(bound.numpy(), row_by_row_bound(network, X, y, latent, log_q), rtol=1e-9)


def test_a_row_has_the_same_bits_alone_and_in_a_batch(model: SupervisedAutoencoder) -> None:
    X, _ = linear(150, seed=5)
    whole = model.predict_proba(X)
    for i in (0, 7, 149):
        np.testing.assert_array_equal(model.predict_proba(X[i : i + 1])[0], whole[i])


def test_a_restored_model_has_the_same_bits(model: SupervisedAutoencoder) -> None:
    X, _ = linear(60, seed=5)
    state = model.state()
    copy = SupervisedAutoencoder.from_state(State({k: v.copy() for k, v in state.arrays.items()}, state.values))
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(
        copy.inverse_transform(copy.transform(X)), model.inverse_transform(model.transform(X))
    )


def test_the_seed_decides_and_the_global_one_does_not() -> None:
    X, y = linear(120)
    before = torch.get_rng_state()
    torch.manual_seed(1)
    one = SupervisedAutoencoder(2, max_epochs=2, random_state=0).fit(X, y)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    two = SupervisedAutoencoder(2, max_epochs=2, random_state=0).fit(X, y)
    assert torch.equal(torch.get_rng_state(), state)
    torch.set_rng_state(before)
    other = SupervisedAutoencoder(2, max_epochs=2, random_state=1).fit(X, y)
    np.testing.assert_array_equal(one.transform(X), two.transform(X))
    assert not np.array_equal(one.transform(X), other.transform(X))


def test_levels_are_decoded_to_probabilities_and_numbers_to_numbers() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.random(200), "job": rng.choice(list("xyz"), 200), "own": rng.choice(["n", "y"], 200)}
    )
    frame["label"] = (frame.a + (frame.job == "x") > 0.8).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="label", favourable=1))
    X, y = codec.encode(frame).rows, codec.labels(frame)
    model = SupervisedAutoencoder(2, max_epochs=3, random_state=0).fit(X, y, layout=codec.layout)
    decoded = model.inverse_transform(np.random.default_rng(1).normal(size=(50, 2)))
    (group,) = codec.layout.groups
    np.testing.assert_allclose(decoded[:, group].sum(axis=1), 1.0)
    assert (decoded[:, codec.layout.discrete] > 0).all()
    assert (decoded[:, codec.layout.discrete] < 1).all()


def test_any_two_labels_will_do_but_not_one() -> None:
    X, y = linear(120)
    model = SupervisedAutoencoder(2, max_epochs=5, random_state=0).fit(X, np.where(y == 1, "yes", "no"))
    assert set(model.predict(X)) <= {"no", "yes"}
    with pytest.raises(InputError, match="1 classes; two are needed"):
        SupervisedAutoencoder(2).fit(X, np.zeros(120))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"latent_dim": 0}, "latent_dim=0 must be a whole number of at least 1"),
        ({"n_flows": -1}, "n_flows=-1 must be a whole number of at least 0"),
        ({"noise": 0.0}, "noise=0.0 must be a number above 0"),
        ({"label_weight": float("inf")}, "label_weight=inf must be a number above 0"),
        ({"hidden": ()}, r"hidden=\(\) must hold at least one whole number"),
    ],
)
def test_parameters_that_cannot_be_fitted_with_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SupervisedAutoencoder(**options).fit(*linear(60))
