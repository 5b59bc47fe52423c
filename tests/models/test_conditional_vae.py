"""The conditional-subspace VAE: its game, what its codes hold, and the collapse that it is kept from."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn.functional import one_hot

from gpae.errors import InputError
from gpae.models.autoencoder_training import CollapsedLatentWarning
from gpae.models.conditional_vae import ConditionalVAE, _Loss, _Weights

Rows = NDArray[np.float64]


def people(n: int = 700, seed: int = 0) -> tuple[Rows, NDArray[np.int64]]:
    """Two columns that say the label, two that have nothing to do with it, two that repeat these."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    about = np.clip(0.3 + 0.4 * y[:, None] + 0.05 * rng.normal(size=(n, 2)), 0, 1)
    rest = rng.random((n, 2))
    return np.hstack([about, rest, 1 - rest]), y


@pytest.fixture(scope="module")
def vae() -> ConditionalVAE:
    return ConditionalVAE(rest_dim=3).fit(*people())


def tensor(X: Rows) -> torch.Tensor:
    return torch.as_tensor(X, dtype=torch.float32)


def test_the_other_label_changes_what_is_about_the_label_and_little_else(vae: ConditionalVAE) -> None:
    X, y = people(200, seed=1)
    x, label = tensor(X), torch.as_tensor(y)
    z = vae.rest(x)
    same, other = vae.decode(z, vae.prior(label), x), vae.decode(z, vae.prior(1 - label), x)
    assert (same - x).abs().mean() < 0.06
    moved = ((other - same) * (1 - 2 * label.unsqueeze(1))).mean(0)
    torch.testing.assert_close(moved, torch.tensor([0.4, 0.4, 0.0, 0.0, 0.0, 0.0]), atol=0.1, rtol=0.0)


def test_the_codes_hold_the_row_with_weights_per_row_and_nothing_with_the_collapsing_ones(vae: ConditionalVAE) -> None:
    X, y = people()
    with pytest.warns(CollapsedLatentWarning, match="objective='balanced'"):
        collapsed = ConditionalVAE.carla().fit(X, y)
    x, w = tensor(X), vae.prior(torch.ones(len(X)))
    spread = vae.decode(vae.rest(x), w, x)[:, 2:].std(0)
    assert (spread > 0.2).all()  # of 0.29 in the data
    assert collapsed.decode(collapsed.rest(x), w, x).std(0).max() < 0.01
    assert vae.latent_variance_ > 0.1 > collapsed.latent_variance_


def test_the_reference_has_these_sizes_and_this_schedule() -> None:
    assert ConditionalVAE.carla(random_state=7).get_params() == {
        "rest_dim": 8,
        "label_dim": 2,
        "width": 16,
        "c_x": 40.0,
        "c_z": 0.2,
        "c_w": 1.0,
        "c_h": 5.0,  # of the balanced objective; the reference's is below
        "objective": "carla",
        "learning_rate": 5e-4,
        "batch_size": 32,
        "max_epochs": 5,
        "patience": None,
        "random_state": 7,
    }


def test_the_reference_weighs_the_mean_over_the_free_columns_and_the_sums_over_the_batch() -> None:
    vae = ConditionalVAE.carla()
    vae.fixed_ = np.array([False, False, False, False, False, True])
    for variance in (0.1, 9.0):
        assert vae._weights(variance, 32) == _Weights(40 / 5, 0.2 * 32, 32.0, 110.0)
    assert vae._weights(0.1, 20) == _Weights(8.0, 4.0, 20.0, 110.0)


def test_the_loss_of_the_reference_is_the_one_written_out() -> None:
    X, y = people(20)
    vae = ConditionalVAE.carla()
    vae.fixed_ = np.arange(6) == 5
    network = vae._new_network(torch.Generator().manual_seed(0)).eval().requires_grad_(False)
    free, given, label = network.parts(X, y)
    draws = torch.Generator().manual_seed(3)
    rest, own, prior = network.rest(free), network.label_part(free, label), network.prior(label)
    z = rest.mean + rest.std * torch.randn(20, 8, generator=draws)
    w = own.mean + own.std * torch.randn(20, 2, generator=draws)
    error = (free - network.decode(z, w, given)).square().mean()
    of_rest = 0.5 * (rest.mean**2 + rest.std**2 - 2 * rest.std.log() - 1).sum()
    ratio = (own.std / prior.std) ** 2
    of_label = 0.5 * (((own.mean - prior.mean) / prior.std) ** 2 + ratio - ratio.log() - 1).sum()
    loss = _Loss(network, vae._weights(1.0, 20), torch.Generator(), seed=3)((free, given, label), 1.0)
    torch.testing.assert_close(loss, 40 * error + 0.2 * of_rest + 1.0 * of_label)


def test_each_player_is_moved_by_its_own_loss_only() -> None:
    X, y = people(50)
    vae = ConditionalVAE()
    vae.fixed_ = np.zeros(6, dtype=np.bool_)

    def gradients(ignorance: float) -> dict[str, torch.Tensor]:
        network = vae._new_network(torch.Generator().manual_seed(0))
        loss = _Loss(network, _Weights(1.0, 1.0, 1.0, ignorance), torch.Generator().manual_seed(1), 0)
        free, given, label = network.parts(X, y)
        z = network.rest(free).draw(torch.Generator().manual_seed(2))
        loss.contest(z, given, label).backward()
        return {name: p.grad for name, p in network.named_parameters() if p.grad is not None}

    without, with_pay = gradients(0.0), gradients(50.0)
    for name, gradient in with_pay.items():
        if name.startswith("adversary"):
            assert torch.equal(gradient, without[name])
        else:
            assert name.startswith("rest_encoder")
            assert gradient.abs().max() > 0
            assert without[name].abs().max() == 0


def test_an_adversary_that_is_paid_for_makes_the_rest_forget_the_label() -> None:
    X, y = people()

    def readable(c_h: float) -> float:
        z = ConditionalVAE(rest_dim=3, c_h=c_h, max_epochs=20).fit(X, y).rest(tensor(X)).numpy()
        design = np.column_stack([z, np.ones(len(z))])
        fitted = design @ np.linalg.lstsq(design, y - y.mean(), rcond=None)[0]
        return float(np.corrcoef(fitted, y)[0, 1])

    assert readable(20.0) < 0.8 * readable(0.0)


def test_fixed_columns_are_given_to_the_decoder_and_copied() -> None:
    X, y = people()
    fixed = np.array([False, False, False, False, True, True])
    vae = ConditionalVAE(rest_dim=3, max_epochs=30).fit(X, y, fixed=fixed)
    x = tensor(X[:50])
    other = x.clone()
    other[:, 4:] = 1 - x[:, 4:]
    torch.testing.assert_close(vae.rest(x), vae.rest(other), atol=0.0, rtol=0.0)
    decoded = vae.decode(vae.rest(x), vae.prior(torch.as_tensor(y[:50])), other)
    assert torch.equal(decoded[:, 4:], other[:, 4:])
    # columns 2 and 3 are one less the given ones, which the decoder knows better than any code
    torch.testing.assert_close(decoded[:, 2:4], 1 - other[:, 4:], atol=0.3, rtol=0.0)


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_a_seed_decides_every_weight_and_saving_keeps_every_bit() -> None:
    X, y = people(120)
    one, same, other = (ConditionalVAE(max_epochs=2, random_state=s).fit(X, y) for s in (3, 3, 4))
    x = tensor(X)
    assert torch.equal(one.rest(x), same.rest(x))
    assert not torch.equal(one.rest(x), other.rest(x))
    restored = ConditionalVAE.from_state(one.state())
    w = one.prior(torch.as_tensor(y))
    assert torch.equal(restored.decode(restored.rest(x), w, x), one.decode(one.rest(x), w, x))
    assert restored.losses_ == one.losses_


def test_validation_rows_are_the_ones_that_are_watched() -> None:
    X, y = people(120)
    near = ConditionalVAE(max_epochs=3).fit(X, y, validation=(X, y))
    far = ConditionalVAE(max_epochs=3).fit(X, y, validation=(10 * X, y))
    assert min(far.losses_) > 10 * max(near.losses_)
    x = tensor(X)
    assert torch.equal(near.rest(x), far.rest(x))  # all epochs are run, so the rows that are watched decide nothing


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_labels_become_pairs() -> None:
    vae = ConditionalVAE(max_epochs=1).fit(*people(60))
    means = vae._network.prior(one_hot(torch.tensor([0, 1]), 2).float()).mean
    torch.testing.assert_close(vae.prior(torch.tensor([False, True])), means)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rest_dim": 0}, "rest_dim=0 must be a whole number"),
        ({"patience": 0}, "patience=0 must be a whole number"),
        ({"c_h": -1.0}, "c_h=-1.0 must be a number of at least 0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be a number above 0"),
        ({"objective": "elbo"}, "objective='elbo' is not known"),
    ],
)
def test_a_parameter_that_cannot_be_fitted_with_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ConditionalVAE(**options).fit(*people(60))  # type: ignore[arg-type]
