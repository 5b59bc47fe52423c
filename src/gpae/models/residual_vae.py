"""The VAE of CLUE: residual blocks with batch normalisation, and a Gaussian decoder of known noise."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, softplus

from gpae.arrays import Rows
from gpae.artefact import State
from gpae.models.autoencoder_training import check_autoencoder, in_batches, warn_if_collapsed
from gpae.models.held_out import held_out_tenth
from gpae.models.network import AlignedLinear, NetworkSchedule, arrays_of, load_arrays, train_network
from gpae.numerics.gaussian import Gaussian
from gpae.numerics.tiles import in_tiles

__all__ = ["ResidualVAE"]

_LEAST_STD = 1e-3
_SHARE_OF_NOISE, _LEAST_SPREAD, _USUAL_SPREAD = 0.4, 2.5e-3, 0.2
_LARGEST_BATCH = 512

_LEARNT = ("noise_", "latent_variance_", "losses_", "n_columns_")


class ResidualVAE(BaseEstimator):  # type: ignore[misc]
    """Rows to a few latents and back, with a standard normal prior.

    **Objective.** With q(z|x) = N(mu(x), sigma^2(x)) and p(x|z) = N(decode(z), noise^2 I), minimise

        mean_i [ |x - decode(z)|^2 / (2 noise^2) + KL(q(z|x) | N(0, I)) ].

    A direction of the data pays for a latent only if its variance is above noise^2: rows in [0, 1] need a noise well
    below 1. Levels are columns like the others. Rows that vary little are stretched for the network, to a mean variance
    of 1/25, so that they are learnt like others; a noise that is given leaves them as they are.

    Parameters
    ----------
    latent_dim, width, depth
        Latents; units of a hidden layer; hidden layers of the encoder and of the decoder, all but the first of them
        residual blocks (leaky ReLU, batch normalisation, linear).
    noise
        Of the decoder, in encoded units; None: 0.4 times the square root of the columns' mean variance.
    learning_rate, batch_size, max_epochs, patience
        Adam; ``batch_size`` None: 512, or fewer, so that an epoch has 32 batches, of 16 rows at least (few rows are
        gone through more than once). ``patience`` None: all epochs, the last weights.
    random_state
        Seed of the weights, the batches and the draws.

    Attributes
    ----------
    noise_
        The noise used.
    latent_variance_
        Of the means of q(z|x) over the training rows, averaged over latents; below 0.01 a warning is given.
    losses_
        The objective on the validation rows, epoch by epoch.

    Examples
    --------
    >>> vae = ResidualVAE(latent_dim=2, max_epochs=5).fit(np.random.default_rng(0).random((300, 3)))
    >>> tuple(vae.decode(vae.encode(torch.zeros(4, 3))).shape)
    (4, 3)
    """

    noise_: float
    latent_variance_: float
    losses_: list[float]
    n_columns_: int

    def __init__(
        self,
        *,
        latent_dim: int = 8,
        width: int = 64,
        depth: int = 3,
        noise: float | None = None,
        learning_rate: float = 3e-3,
        batch_size: int | None = None,
        max_epochs: int = 50,
        patience: int | None = 6,
        random_state: int = 0,
    ) -> None:
        self.latent_dim = latent_dim
        self.width = width
        self.depth = depth
        self.noise = noise
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.random_state = random_state

    @classmethod
    def carla(cls, random_state: int = 0) -> "ResidualVAE":
        """The sizes, the noise and the schedule of the reference implementation."""
        return cls(
            latent_dim=12,
            width=10,
            noise=1.0,
            learning_rate=1e-3,
            batch_size=64,
            max_epochs=10,
            patience=None,
            random_state=random_state,
        )

    def fit(self, X: Rows, *, validation: Rows | None = None) -> "ResidualVAE":
        """Learn from encoded rows; ``validation`` None: a tenth of the rows decides when to stop."""
        self._check_parameters()
        self.n_columns_ = X.shape[1]
        generator = torch.Generator().manual_seed(self.random_state)
        network = self._network = self._new_network(generator)
        rows: tuple[Tensor, ...] = (torch.as_tensor(X, dtype=torch.float32),)
        if validation is None:
            rows, watched = held_out_tenth(rows, generator)
        else:
            watched = (torch.as_tensor(validation, dtype=torch.float32),)
        rows, batch_size = in_batches(rows, self.batch_size, _LARGEST_BATCH)
        self.noise_ = self._stretched_noise(X)
        loss = _Loss(network, self.noise_, generator, int(torch.randint(2**31, (), generator=generator)))
        schedule = NetworkSchedule(self.learning_rate, batch_size, self.max_epochs, self.patience)
        self.losses_ = train_network(
            network, rows, loss, schedule, generator, validation=watched, stage="training the auto-encoder"
        )
        self.latent_variance_ = float(self.latents(X).var(axis=0).mean())
        warn_if_collapsed(self.latent_variance_, f"lower its noise (now {self.noise_:g})")
        return self

    def _check_parameters(self) -> None:
        check_autoencoder(self.get_params(), ("latent_dim", "width", "depth"), rates=("noise",))

    def _stretched_noise(self, X: Rows) -> float:
        """The noise; the network is told how far to stretch rows where the noise follows from them."""
        if self.noise is not None:
            return float(self.noise)
        spread = max(math.sqrt(X.var(axis=0).mean()), _LEAST_SPREAD)
        self._network.unit = torch.tensor(min(1.0, spread / _USUAL_SPREAD), dtype=torch.float32)
        return _SHARE_OF_NOISE * spread

    def _new_network(self, generator: torch.Generator) -> "_Network":
        return _Network(self.n_columns_, self.latent_dim, self.width, self.depth, generator)

    def encode(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
        """The mean of q(z|x), in single precision; to be called in tiles, like :meth:`decode`."""
        return self._network.posterior(x).mean

    def decode(self, z: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
        """The mean of p(x|z)."""
        return self._network.row(z)

    def latents(self, X: Rows) -> Rows:
        """The means of q(z|x) of encoded rows."""
        (z,) = in_tiles(lambda x: (self.encode(x),), (torch.as_tensor(X, dtype=torch.float32),))
        return np.asarray(z.numpy(), dtype=np.float64)

    def state(self) -> State:
        """What has to be saved to encode and decode again."""
        learnt = {name: getattr(self, name) for name in _LEARNT}
        return State(arrays_of(self._network), {"parameters": self.get_params(), **learnt})

    @classmethod
    def from_state(cls, state: State) -> "ResidualVAE":
        """Rebuild a fitted auto-encoder from :meth:`state`."""
        vae = cls(**state.values["parameters"])
        for name in _LEARNT:
            setattr(vae, name, state.values[name])
        vae._network = vae._new_network(torch.Generator())
        load_arrays(vae._network, state.arrays)
        return vae


class _Normed(nn.Module):
    """Leaky ReLU, then batch normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, h: Tensor) -> Tensor:
        return self.norm(leaky_relu(h))


class _Block(nn.Module):
    """h + linear(normed(h))."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.normed = _Normed(width)
        self.linear = AlignedLinear(width, width, generator)

    def forward(self, h: Tensor) -> Tensor:
        return h + self.linear(self.normed(h))


class _Network(nn.Module):
    """Encoder and decoder, and the unit that they measure columns in."""

    unit: Tensor

    def __init__(self, n_columns: int, latent_dim: int, width: int, depth: int, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            AlignedLinear(n_columns, width, generator),
            *(_Block(width, generator) for _ in range(depth - 1)),
            _Normed(width),
            AlignedLinear(width, 2 * latent_dim, generator),
        )
        self.decoder = nn.Sequential(
            AlignedLinear(latent_dim, width, generator),
            _Normed(width),
            *(_Block(width, generator) for _ in range(depth - 1)),
            AlignedLinear(width, n_columns, generator),
        )
        self.register_buffer("unit", torch.ones(()))

    def posterior(self, x: Float[Tensor, "B D"]) -> Gaussian:
        """q(z|x)."""
        mean, raw = self.encoder(x / self.unit).chunk(2, 1)
        return Gaussian(mean.contiguous(), softplus(raw).clamp_min(_LEAST_STD))

    def row(self, z: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
        """The mean of p(x|z)."""
        return self.unit * self.decoder(z)


@dataclass(frozen=True, slots=True, eq=False)
class _Loss:
    """The objective of a batch; validation rows are judged with the same draws each time."""

    network: _Network
    noise: float
    generator: torch.Generator
    seed: int

    def __call__(self, batch: tuple[Tensor, ...], share: float) -> Tensor:
        generator = self.generator if self.network.training else torch.Generator().manual_seed(self.seed)
        posterior = self.network.posterior(batch[0])
        error = (batch[0] - self.network.row(posterior.draw(generator))).square().sum(1)
        return (error / (2 * self.noise**2) + posterior.divergence()).mean()
