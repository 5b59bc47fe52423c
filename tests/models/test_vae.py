"""The auto-encoder of CCHVAE and REVISE: what it keeps of a row, what it is told, and when it collapses."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from tests.conftest import loans

from gpae.artefact import State
from gpae.errors import InputError
from gpae.models.autoencoder_training import CollapsedLatentWarning
from gpae.models.searched_autoencoder import fitted_vae, fixed_columns
from gpae.models.vae import VAE
from gpae.models.vae_network import VAELoss, VAENetwork
from gpae.table.codec import Codec
from gpae.table.schema import Schema

Rows = NDArray[np.float64]
SHORT = {"hidden": (32, 16), "max_epochs": 5, "latent_dim": 3}


def people(n: int = 400, seed: int = 0) -> Rows:
    """Four numbers and a category of three levels that all follow two hidden traits."""
    rng = np.random.default_rng(seed)
    traits = rng.normal(size=(n, 2))
    effects = np.array([[2.0, -1.0, 0.5, 0.0], [0.0, 1.0, -2.0, 1.5]])
    numbers = 1 / (1 + np.exp(-traits @ effects - 0.1 * rng.normal(size=(n, 4))))
    level = np.digitize(traits[:, 0], [-0.5, 0.5])
    return np.column_stack([numbers, np.eye(3)[level]])


def decoded(vae: VAE, X: Rows) -> Rows:
    x = torch.as_tensor(X, dtype=torch.float32)
    return vae.decode(vae.encode(x), x).numpy()


@pytest.fixture(scope="module")
def vae() -> VAE:
    return VAE(latent_dim=3).fit(people())


def test_the_defaults_keep_rows_apart(vae: VAE) -> None:
    assert vae.latent_variance_ > 0.1
    assert vae.reconstruction_error_ < 0.15
    assert vae.latents(people()).var(axis=0).mean() == pytest.approx(vae.latent_variance_)
    lost = ((decoded(vae, people()) - people()) ** 2).sum() / ((people() - people().mean(axis=0)) ** 2).sum()
    assert lost == pytest.approx(vae.reconstruction_error_, rel=1e-4)


def test_rows_that_were_not_seen_are_kept_as_well(vae: VAE) -> None:
    fresh = people(300, seed=9)
    assert ((decoded(vae, fresh) - fresh) ** 2).mean(axis=0).sum() < 0.2 * fresh.var(axis=0).sum()


def test_the_legacy_objective_collapses_and_the_user_is_warned() -> None:
    legacy = VAE.carla("carla_legacy")
    with pytest.warns(CollapsedLatentWarning, match="has collapsed.*use objective='balanced'"):
        legacy.fit(people())
    assert legacy.latent_variance_ < 1e-2
    # one and the same row for everybody
    assert decoded(legacy, people()).var(axis=0).sum() < 0.02 * people().var(axis=0).sum()


def test_with_the_same_schedule_the_reference_objective_of_today_does_not_collapse() -> None:
    assert VAE.carla("carla").fit(people()).latent_variance_ > 0.1


def test_the_gaussian_likelihood_keeps_rows_apart_too() -> None:
    gaussian = VAE(latent_dim=3, likelihood="gaussian", kl_weight=1.0).fit(people())
    assert gaussian.latent_variance_ > 0.1
    assert gaussian.reconstruction_error_ < 0.25


def one_row_loss(network: VAENetwork, row: Rows, noise: Rows, weight: float) -> float:
    """The balanced objective of one row, written out."""
    mean, log_variance = np.split(network.encoder(torch.as_tensor(row[None], dtype=torch.float32))[0].numpy(), 2)
    z = torch.as_tensor(mean + np.exp(log_variance / 2) * noise)
    u = 1 / (1 + np.exp(-network.decoder(z[None])[0].numpy()))
    misfit = -sum(a * np.log(b) + (1 - a) * np.log(1 - b) for a, b in zip(row, u, strict=True))
    divergence = sum(0.5 * (m * m + np.exp(v) - v - 1) for m, v in zip(mean, log_variance, strict=True))
    return misfit + weight * divergence


def test_both_terms_are_means_over_rows_and_sums_within_a_row() -> None:
    network = VAENetwork(np.zeros(7, bool), (8,), 3, torch.Generator().manual_seed(0), normalised=False)
    network.eval().requires_grad_(False)
    rows = people(5)
    noise = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).numpy()
    by_hand = [one_row_loss(network, row, e, 0.3) for row, e in zip(rows, noise, strict=True)]
    batch = (torch.as_tensor(rows, dtype=torch.float32),)
    losses = {
        objective: float(VAELoss(network, objective, "bernoulli", 0.3, 60, torch.Generator())(batch, 1.0))
        for objective in ("balanced", "carla")
    }
    assert losses["balanced"] == pytest.approx(np.mean(by_hand), rel=1e-5)
    assert losses["carla"] == pytest.approx(np.sum(by_hand), rel=1e-5)


def test_the_divergence_gains_weight_with_the_epochs() -> None:
    network = VAENetwork(np.zeros(7, bool), (8,), 3, torch.Generator(), normalised=False)

    def weights(objective: str, shares: list[float]) -> list[float]:
        loss = VAELoss(network, objective, "bernoulli", 0.3, 60, torch.Generator())  # type: ignore[arg-type]
        return [loss._annealed(share) for share in shares]

    assert weights("carla", [0.0, 0.2, 0.8]) == pytest.approx([0.0, 0.06, 0.24])
    assert weights("balanced", [0.0, 1 / 60, 3 / 60, 0.9]) == pytest.approx([0.0, 0.1, 0.3, 0.3])


@pytest.mark.parametrize("objective", ["carla", "carla_legacy"])
def test_the_reference_has_these_sizes_and_this_schedule(objective: Any) -> None:
    assert VAE.carla(objective, random_state=7).get_params() == {
        "latent_dim": 8,
        "hidden": (512, 256),
        "objective": objective,
        "likelihood": "bernoulli",
        "kl_weight": None,
        "learning_rate": 1e-3,
        "weight_decay": 1e-6,
        "batch_size": 32,
        "max_epochs": 5,
        "patience": None,
        "random_state": 7,
    }
    assert VAE.carla().objective == "carla"


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_the_five_epochs_of_the_reference_never_reach_its_whole_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[float] = []
    annealed = VAELoss._annealed

    def watched(loss: VAELoss, share: float) -> float:
        weight = annealed(loss, share)
        if loss.network.training:
            used.append(weight)
        return weight

    monkeypatch.setattr(VAELoss, "_annealed", watched)
    VAE.carla().fit(people(64), validation=people(8, seed=1))
    assert used == pytest.approx(np.repeat([0.0, 0.06, 0.12, 0.18, 0.24], 2))


def test_the_legacy_reference_weighs_the_divergence_summed_over_the_batch_by_one() -> None:
    network = VAENetwork(np.zeros(7, bool), (8,), 3, torch.Generator().manual_seed(0), normalised=True)
    network.eval().requires_grad_(False)
    x = torch.as_tensor(people(5), dtype=torch.float32)
    mean, log_variance = network.encoder(x).chunk(2, dim=1)
    noise = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    u = network.decoder(mean + (log_variance / 2).exp() * noise).sigmoid()
    by_hand = (u - x).square().mean() + 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum()
    legacy = VAE.carla("carla_legacy")
    loss = VAELoss(network, legacy.objective, legacy.likelihood, legacy._weight(), 5, torch.Generator())((x,), 0.0)
    torch.testing.assert_close(loss, by_hand)


@pytest.fixture(scope="module")
def conditioned() -> VAE:
    """The first number follows the second, which nobody may change."""
    X = people()
    X[:, 0] = 0.9 * X[:, 1] + 0.05
    return VAE(**SHORT, kl_weight=0.3).fit(X, fixed=np.arange(7) == 1)


def test_fixed_columns_are_told_to_the_decoder_and_copied(conditioned: VAE) -> None:
    x = torch.as_tensor(people(50, seed=3), dtype=torch.float32)
    other = x.clone()
    other[:, 1] = 1 - x[:, 1]
    z = conditioned.encode(x)
    assert torch.equal(z, conditioned.encode(other))
    here, there = conditioned.decode(z, x), conditioned.decode(z, other)
    assert torch.equal(here[:, 1], x[:, 1])
    assert torch.equal(there[:, 1], other[:, 1])
    follows = np.corrcoef((there - here)[:, 0].numpy(), (other - x)[:, 1].numpy())[0, 1]
    assert follows > 0.9


def test_a_column_that_never_varies_comes_back_as_it_is_and_others_in_their_own_range() -> None:
    X = people()
    X[:, 2] = 0.3
    X[:, 3] = 5 + 10 * X[:, 3]
    back = decoded(VAE(**(SHORT | {"max_epochs": 25})).fit(X), X)
    np.testing.assert_array_equal(back[:, 2], np.float32(0.3))
    assert np.corrcoef(back[:, 3], X[:, 3])[0, 1] > 0.8
    assert 5 <= back[:, 3].min() < back[:, 3].max() <= 15


def test_what_lies_outside_of_the_training_range_is_seen_at_its_end(vae: VAE) -> None:
    top = people().max(axis=0)
    np.testing.assert_array_equal(vae.latents(np.array([top])), vae.latents(np.array([top + 0.5])))


def test_training_stops_when_held_out_rows_no_longer_gain_and_the_best_weights_stay() -> None:
    X, watched = people(120), people(200, seed=1)
    vae = VAE(latent_dim=3, learning_rate=0.03, max_epochs=200, patience=3).fit(X, validation=watched)
    best = int(np.argmin(vae.losses_))
    assert len(vae.losses_) == best + 4 < 200
    loss = VAELoss(vae._network, "balanced", "bernoulli", 0.03, 200, torch.Generator())
    kept = float(loss((torch.as_tensor(watched, dtype=torch.float32),), 1.0))
    assert kept == pytest.approx(vae.losses_[best], rel=1e-6)


def test_the_number_of_epochs_can_be_given() -> None:
    assert len(VAE(**(SHORT | {"max_epochs": 4}), patience=None).fit(people(300)).losses_) == 4


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
@pytest.mark.parametrize("objective", ["balanced", "carla_legacy"])
@pytest.mark.parametrize("n", [5, 72])
def test_any_number_of_rows_can_be_learnt_from(n: int, objective: str) -> None:
    """72 rows less a tenth are 65 = 2 * 32 + 1: batch normalisation cannot take the last batch as it is."""
    X = people(n)
    for batch_size in (None, 32):
        vae = VAE(**SHORT, objective=objective, batch_size=batch_size).fit(X)  # type: ignore[arg-type]
        assert np.isfinite(vae.latents(X)).all()


def test_gradients_pass_a_straight_column_however_flat_the_sigmoid_is_there(vae: VAE) -> None:
    x = torch.as_tensor(people(20), dtype=torch.float32)
    z = vae.encode(x).requires_grad_()
    straight = torch.arange(7) >= 4
    plain, rows = vae.decode(z, x), vae.decode(z, x, straight)
    assert torch.equal(plain, rows)
    scores = vae._network.scores(z, vae._network.unit(x))
    for j, by_hand in ((0, plain[:, 0]), (5, scores[:, 5] / 4)):
        (expected,) = torch.autograd.grad(by_hand.sum(), z, retain_graph=True)
        (gradient,) = torch.autograd.grad(rows[:, j].sum(), z, retain_graph=True)
        torch.testing.assert_close(gradient, expected)


def test_a_row_has_the_same_latents_wherever_it_stands(vae: VAE) -> None:
    X = people(300, seed=4)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(vae.latents(X[order]), vae.latents(X)[order])
    np.testing.assert_array_equal(vae.latents(X[7:8]), vae.latents(X)[7:8])


def test_the_seed_decides_and_nothing_global_is_read_or_set() -> None:
    before = torch.get_rng_state()
    first = VAE(**SHORT, random_state=3).fit(people(100))
    torch.rand(3)
    again, other = (VAE(**SHORT, random_state=seed).fit(people(100)) for seed in (3, 4))
    torch.set_rng_state(before)
    np.testing.assert_array_equal(first.latents(people(20)), again.latents(people(20)))
    assert not np.allclose(first.latents(people(20)), other.latents(people(20)))


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
@pytest.mark.parametrize("objective", ["balanced", "carla", "carla_legacy"])
def test_a_restored_one_encodes_and_decodes_with_the_same_bits(objective: str) -> None:
    X = people(100)
    made = VAE(**(SHORT | {"max_epochs": 3}), objective=objective).fit(X, fixed=np.arange(7) == 2)  # type: ignore[arg-type]
    state = made.state()
    copy = VAE.from_state(State({k: v.copy() for k, v in state.arrays.items()}, state.values))
    np.testing.assert_array_equal(copy.latents(X), made.latents(X))
    np.testing.assert_array_equal(decoded(copy, X), decoded(made, X))
    assert copy.get_params() == made.get_params()
    assert (copy.latent_variance_, copy.losses_) == (made.latent_variance_, made.losses_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "carla_old"}, "objective='carla_old' is not known"),
        ({"likelihood": "cauchy"}, "likelihood='cauchy' is not known"),
        ({"latent_dim": 0}, "latent_dim=0 must"),
        ({"hidden": (8, 0)}, "hidden=\\(8, 0\\) must"),
        ({"hidden": ()}, "hidden=\\(\\) must"),
        ({"patience": 0}, "patience=0 must"),
        ({"kl_weight": -1.0}, "kl_weight=-1.0 must be a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate=nan must"),
    ],
)
def test_what_cannot_be_fitted_with_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        VAE(**options).fit(people(60))  # type: ignore[arg-type]


def test_features_that_the_schema_fixes_are_not_encoded() -> None:
    frame = loans(100)
    schema = Schema.infer(frame, label="granted", favourable="yes", immutable=("job", "age"))
    layout = Codec.fit(frame, schema).layout
    fixed = np.array(layout.column_names)[fixed_columns(layout)]
    assert list(fixed) == ["job=clerk", "job=cook", "job=nurse", "job=owner", "age"]


def test_a_fitted_one_is_used_as_it_is_and_another_is_fitted_as_a_copy() -> None:
    frame = loans(300)
    codec = Codec.fit(frame, Schema.infer(frame, label="granted", favourable="yes", immutable=("age",)))
    X, layout = codec.encode(frame).rows, codec.layout
    plain = VAE(**SHORT)
    made = fitted_vae(plain, X, layout, None, objective="balanced", preset=None, seed=0)
    assert made is not plain
    assert not hasattr(plain, "losses_")
    np.testing.assert_array_equal(made.fixed_, fixed_columns(layout))
    assert fitted_vae(made, X, layout, None, objective="balanced", preset=None, seed=0) is made
    narrow = clone(plain).fit(people(300))
    with pytest.raises(InputError, match="fitted to 7 columns, these rows have"):
        fitted_vae(narrow, X, layout, None, objective="balanced", preset=None, seed=0)
