"""CLUE's VAE: what it keeps of a row, the collapse that it is kept from, the shape of its networks."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gpae.errors import InputError
from gpae.models.autoencoder_training import CollapsedLatentWarning
from gpae.models.residual_vae import ResidualVAE, _Block
from gpae.numerics.tiles import in_tiles

Rows = NDArray[np.float64]


def rows(n: int = 700, scale: float = 1.0) -> Rows:
    """Six columns in [0, scale] that two numbers decide."""
    a, b = np.random.default_rng(0).random((2, n))
    return scale * np.column_stack([a, 1 - a, b, 1 - b, (a + b) / 2, (a + 1 - b) / 2])


def lost(vae: ResidualVAE, X: Rows) -> float:
    """The share of the rows' variance that is lost on the way through the latents."""
    x = torch.as_tensor(X, dtype=torch.float32)
    again = vae.decode(vae.encode(x)).numpy()
    return float(((again - X) ** 2).mean(axis=0).sum() / X.var(axis=0).sum())


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_two_latents_hold_what_two_numbers_decide_on_any_scale(scale: float) -> None:
    X = rows(scale=scale)
    vae = ResidualVAE(latent_dim=2, width=32).fit(X)
    assert lost(vae, X) < 0.1
    assert vae.latent_variance_ > 0.5
    assert vae.noise_ == pytest.approx(0.4 * np.sqrt(X.var(axis=0).mean()))


def test_the_reference_has_these_sizes_this_noise_and_this_schedule() -> None:
    assert ResidualVAE.carla(random_state=7).get_params() == {
        "latent_dim": 12,
        "width": 10,
        "depth": 3,
        "noise": 1.0,
        "learning_rate": 1e-3,
        "batch_size": 64,
        "max_epochs": 10,
        "patience": None,
        "random_state": 7,
    }


def test_the_reference_noise_of_one_collapses() -> None:
    X = rows(4000)
    with pytest.warns(CollapsedLatentWarning, match=r"lower its noise \(now 1\)"):
        vae = ResidualVAE.carla().fit(X)
    assert lost(vae, X) > 0.9


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_a_row_has_the_same_bits_wherever_it_stands() -> None:
    vae = ResidualVAE(latent_dim=3, width=13, max_epochs=2, batch_size=32).fit(rows(100))
    x = torch.as_tensor(rows(40), dtype=torch.float32)

    def there_and_back(part: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        z = vae.encode(part)
        return z, vae.decode(z)

    whole = in_tiles(there_and_back, (x,))
    for i in (0, 7, 39):
        for together, alone in zip(whole, in_tiles(there_and_back, (x[i : i + 1],)), strict=True):
            assert torch.equal(together[i : i + 1], alone)


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_depth_counts_the_hidden_layers() -> None:
    for depth in (1, 3):
        vae = ResidualVAE(depth=depth, max_epochs=1).fit(rows(60))
        for half in (vae._network.encoder, vae._network.decoder):
            assert sum(isinstance(layer, _Block) for layer in half) == depth - 1


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_a_last_batch_of_one_row_is_no_obstacle() -> None:
    vae = ResidualVAE(max_epochs=1, batch_size=32)
    assert len(vae.fit(rows(97), validation=rows(10)).losses_) == 1


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_a_seed_decides_every_weight_and_saving_keeps_every_bit() -> None:
    X = rows(120)
    one, same, other = (ResidualVAE(max_epochs=2, random_state=s).fit(X) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.latents(X), same.latents(X))
    assert not np.array_equal(one.latents(X), other.latents(X))
    restored = ResidualVAE.from_state(one.state())
    np.testing.assert_array_equal(restored.latents(X), one.latents(X))
    z = torch.randn(5, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(restored.decode(z), one.decode(z))
    assert (restored.noise_, restored.losses_) == (one.noise_, one.losses_)


def test_training_stops_when_the_validation_rows_say_so() -> None:
    X = rows(200)
    vae = ResidualVAE(max_epochs=40, patience=2).fit(X, validation=3 - X)  # learning X makes these worse and worse
    assert len(vae.losses_) < 40
    assert int(np.argmin(vae.losses_)) == len(vae.losses_) - 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"latent_dim": 0}, "latent_dim=0 must be a whole number"),
        ({"depth": 1.5}, "depth=1.5 must be a whole number"),
        ({"noise": 0.0}, "noise=0.0 must be a number above 0"),
    ],
)
def test_a_parameter_that_cannot_be_fitted_with_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ResidualVAE(**options).fit(rows(60))  # type: ignore[arg-type]
