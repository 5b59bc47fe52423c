import sys

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import make_moons

from gpae import GPAEClassifier
from gpae.artefact import State
from gpae.errors import InputError
from gpae.models.inducing_autoencoder import InducingGPAEClassifier
from gpae.models.training import LossWeights, Rows
from gpae.numerics.density import log_density

TINY = {
    "n_inducing": 24, "hidden_dim": 4, "max_steps": 20, "density_features": 30, "density_draws": 500, "random_state": 0,
    "device": "cpu",
}  # fmt: skip


def moons(n: int = 400, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X, y = make_moons(n, noise=0.2, random_state=seed)
    return (X - X.min(0)) / (X.max(0) - X.min(0)), y


@pytest.fixture(scope="module")
def model() -> InducingGPAEClassifier:
    return InducingGPAEClassifier(2, **TINY).fit(*moons())


def test_it_bends_where_a_line_cannot(model: InducingGPAEClassifier) -> None:
    assert model.score(*moons(seed=1)) > 0.93


def test_it_reconstructs_what_it_encodes(model: InducingGPAEClassifier) -> None:
    X, _ = moons(seed=1)
    error = ((model.inverse_transform(model.transform(X)) - X) ** 2).sum(1).mean()
    assert error < 0.2 * X.var(0).sum()


def test_rows_are_denser_than_noise(model: InducingGPAEClassifier) -> None:
    X, _ = moons(seed=1)
    latents = torch.tensor(model.transform(X))
    far = (latents.mean(0) + 6 * latents.std(0)).unsqueeze(0)
    assert model.score_samples(X).mean() > float(log_density(model.density_, far)) + 3


def test_training_improves_on_the_start_and_keeps_the_best(model: InducingGPAEClassifier) -> None:
    trace = model.trace_
    total = np.array(trace.reconstruction) + model.classification_weight_ * np.array(trace.cross_entropy)
    assert total[trace.best] < total[0]
    assert total[trace.best] <= total.min() * 1.001


def test_the_other_reading_of_two_layers_fits_too() -> None:
    single = InducingGPAEClassifier(2, **TINY, layers_per_side=1).fit(*moons())
    assert len(single.model_.encoder) == len(single.model_.decoder) == 1
    assert single.score(*moons(seed=1)) > 0.9


def test_the_same_seed_gives_the_same_model_and_no_global_state_moves(model: InducingGPAEClassifier) -> None:
    X, y = moons()
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    again = InducingGPAEClassifier(2, **TINY).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


def test_two_calls_give_the_same_latents(model: InducingGPAEClassifier) -> None:
    X, _ = moons()
    np.testing.assert_array_equal(model.transform(X), model.transform(X))
    theirs, x = model.predictive_encoder(), torch.tensor(X)
    assert torch.equal(theirs.encode(x), theirs.encode(x))


def test_a_restored_model_answers_alike_and_needs_gpytorch_only_for_its_predictive_distribution(
    model: InducingGPAEClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = moons(50, seed=1)
    state = model.state()
    expected = model.predictive_encoder().encode(torch.tensor(X))
    copy = InducingGPAEClassifier.from_state(State({k: v.copy() for k, v in state.arrays.items()}, state.values))
    assert torch.equal(copy.predictive_encoder().encode(torch.tensor(X)), expected)
    hide_gpytorch(monkeypatch)
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(copy.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(
        copy.inverse_transform(copy.transform(X)), model.inverse_transform(model.transform(X))
    )
    with pytest.raises(InputError, match=r"pip install 'gpae\[inducing\]'"):
        copy.predictive_encoder()


def hide_gpytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were not installed."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "gpytorch" or n.startswith("gpae.models.inducing_")]:
        if name != "gpae.models.inducing_autoencoder":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gpytorch", None)


def test_without_gpytorch_fitting_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_gpytorch(monkeypatch)
    with pytest.raises(InputError, match=r"pip install 'gpae\[inducing\]'"):
        InducingGPAEClassifier(2, **TINY).fit(*moons(60))


def test_the_shared_settings_of_a_gpae_are_taken_over() -> None:
    given = GPAEClassifier(3, 77, density_features=11, class_weight="balanced", max_epochs=5, random_state=9)
    taken = InducingGPAEClassifier.like(given, max_steps=13)
    assert (taken.latent_dim, taken.density_features, taken.class_weight) == (3, 11, "balanced")
    assert (taken.max_epochs, taken.random_state, taken.max_steps) == (5, 9, 13)


def test_few_distinct_rows_get_as_many_inducing_points() -> None:
    X = np.repeat(np.random.default_rng(0).random((9, 3)), 4, axis=0)
    small = InducingGPAEClassifier(2, **(TINY | {"max_steps": 2})).fit(X, X[:, 0] > np.median(X[:, 0]))
    assert small.model_.encoder[0].points.shape[1] <= 9
    assert np.isfinite(small.decision_function(X)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers_per_side": 3}, "layers_per_side=3 is not known; use one of 1, 2"),
        ({"n_inducing": 0}, "n_inducing=0 must be a whole number of at least 1"),
        ({"max_steps": 2.5}, "max_steps=2.5 must be a whole number"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name_and_value(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        InducingGPAEClassifier(**options).fit(*moons(60))  # type: ignore[arg-type]


def test_the_divergence_is_that_of_gaussians_in_whitened_coordinates(model: InducingGPAEClassifier) -> None:
    arrays = {name: torch.from_numpy(np.array(a)).double() for name, a in model.network_.items()}
    total = torch.zeros((), dtype=torch.float64)
    for name, mean in arrays.items():
        if name.endswith("variational_mean"):
            factor = arrays[name.replace("variational_mean", "chol_variational_covar")].tril()
            log_volume = 2 * factor.diagonal(dim1=1, dim2=2).abs().log().sum()
            total += 0.5 * (mean.square().sum() + factor.square().sum() - mean.numel() - log_volume)
    network = model._network(2, 24)
    network.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in model.network_.items()})
    torch.testing.assert_close(network.divergence().double(), total, rtol=1e-4, atol=1e-2)


def test_the_loss_counts_the_expected_squared_error_in_closed_form(model: InducingGPAEClassifier) -> None:
    """Against draws: E|x - f|^2 = |x - m|^2 + sum v, for the same draw of what lies before the last layer."""
    from gpae.models.inducing_training import _loss

    X, y = moons(40, seed=2)
    batch = Rows(torch.tensor(X).float(), torch.tensor(y).float(), torch.ones(40))
    network = model._network(2, 24)
    network.load_state_dict({name: torch.from_numpy(np.array(a)) for name, a in model.network_.items()})
    with torch.no_grad():
        loss = _loss(network, batch, LossWeights(1.0, 0.0), 10**12, torch.Generator().manual_seed(5))
        g = torch.Generator().manual_seed(5)
        mean, variance = network.rebuilt(network.sampled_latent(batch.x, g), g)
    draws = mean + variance.sqrt() * torch.randn(20_000, *mean.shape, generator=g)
    torch.testing.assert_close(loss, (draws - batch.x).square().sum(2).mean(), rtol=1e-2, atol=1e-4)
