"""The conditional-subspace VAE: what the label says about a row, kept apart from everything else about it."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import log_softmax, one_hot

from gpae.arrays import Labels, Mask, Rows
from gpae.artefact import State
from gpae.errors import one_of
from gpae.models.autoencoder_training import check_autoencoder, in_batches, warn_if_collapsed
from gpae.models.held_out import held_out_tenth
from gpae.models.network import NetworkSchedule, arrays_of, load_arrays, perceptron, train_network
from gpae.numerics.gaussian import Gaussian
from gpae.numerics.tiles import in_tiles

__all__ = ["ConditionalVAE"]

Objective = Literal["balanced", "carla"]

_LARGEST_LOG_STD = 5.0
_LEAST_VARIANCE = 1e-6
_LARGEST_BATCH = 512


class ConditionalVAE(BaseEstimator):  # type: ignore[misc]
    """Rows to two codes and back: w, what the label is about, and z, the rest.

    **Objective.** With q(z|x), q(w|x, y) and the learnt prior p(w|y) Gaussian and x^ = decode(z, w), the encoders, the
    prior and the decoder minimise

        mean_i [ c_x |x - x^|^2 / V + c_z KL(q(z|x) | N(0, I)) + c_w KL(q(w|x, y) | p(w|y)) - c_h H[a(.|z)] ]

    with V the rows' variance, summed over columns, and an adversary a(y|z) minimises mean_i [ -log a(y|z) ]. Each of
    the two losses moves its own player only. Columns that are fixed are not encoded: the decoder and the adversary are
    given them beside z.

    Parameters
    ----------
    rest_dim, label_dim, width
        Sizes of z and of w, and of the one hidden layer that each of the five networks has.
    c_x, c_z, c_w, c_h
        The weights above.
    objective
        ``"balanced"``: as above. ``"carla"``: c_x = 40 on the *mean* over the D columns, c_z = 0.2 and c_w = 1 on
        divergences *summed* over the batch, c_h = 110; it collapses (decoded rows hardly depend on z) and is here to
        show that. Its weight of 100 on the adversary's own loss is left out: Adam's steps do not depend on it.
    learning_rate, batch_size, max_epochs, patience
        Adam; ``batch_size`` None: 512, or fewer, so that an epoch has 32 batches, of 16 rows at least (few rows are
        gone through more than once). With a ``patience`` training stops when the loss of the validation rows, the
        adversary's part left out, has not fallen for so many epochs, and the best weights are kept. None: all epochs,
        the last weights, because the best are often those of an encoder that still gives the label away.
    random_state
        Seed of the weights, the batches and the draws.

    Attributes
    ----------
    latent_variance_
        Of the means of q(z|x) over the training rows, averaged over z; below 0.01 a warning is given.
    losses_
        Of the validation rows, epoch by epoch.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 3))
    >>> vae = ConditionalVAE(rest_dim=2, max_epochs=5).fit(X, (X[:, 0] > 0.5).astype(int))
    >>> tuple(vae.rest(torch.zeros(4, 3)).shape), tuple(vae.prior(torch.tensor([0, 1])).shape)
    ((4, 2), (2, 2))
    """

    latent_variance_: float
    losses_: list[float]
    fixed_: Mask

    def __init__(
        self,
        *,
        rest_dim: int = 8,
        label_dim: int = 2,
        width: int = 64,
        c_x: float = 40.0,
        c_z: float = 0.2,
        c_w: float = 1.0,
        c_h: float = 5.0,
        objective: Objective = "balanced",
        learning_rate: float = 3e-3,
        batch_size: int | None = None,
        max_epochs: int = 50,
        patience: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.rest_dim = rest_dim
        self.label_dim = label_dim
        self.width = width
        self.c_x = c_x
        self.c_z = c_z
        self.c_w = c_w
        self.c_h = c_h
        self.objective = objective
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.random_state = random_state

    @classmethod
    def carla(cls, random_state: int = 0) -> "ConditionalVAE":
        """The sizes, the weights and the schedule of the reference implementation."""
        return cls(
            width=16,
            objective="carla",
            learning_rate=5e-4,
            batch_size=32,
            max_epochs=5,
            patience=None,
            random_state=random_state,
        )

    def fit(
        self, X: Rows, y: Labels, *, fixed: Mask | None = None, validation: tuple[Rows, Labels] | None = None
    ) -> "ConditionalVAE":
        """Learn from encoded rows and their labels (0 or 1); columns that are ``fixed`` (D) are not encoded.

        ``validation`` None: a tenth of the rows decides when to stop.
        """
        self._check_parameters()
        self.fixed_ = np.zeros(X.shape[1], dtype=np.bool_) if fixed is None else np.array(fixed, dtype=np.bool_)
        generator = torch.Generator().manual_seed(self.random_state)
        network = self._network = self._new_network(generator)
        rows = network.parts(X, y)
        kept, watched = held_out_tenth(rows, generator) if validation is None else (rows, network.parts(*validation))
        kept, batch_size = in_batches(kept, self.batch_size, _LARGEST_BATCH)
        weights = self._weights(float(X[:, ~self.fixed_].var(axis=0).sum()), batch_size)
        loss = _Loss(network, weights, generator, int(torch.randint(2**31, (), generator=generator)))
        schedule = NetworkSchedule(self.learning_rate, batch_size, self.max_epochs, self.patience)
        self.losses_ = train_network(
            network, kept, loss, schedule, generator, validation=watched, stage="training the auto-encoder"
        )
        (means,) = in_tiles(lambda free: (network.rest(free).mean,), rows[:1])
        self.latent_variance_ = float(means.var(0).mean())
        if not self.fixed_.all():
            remedy = "use objective='balanced'" if self.objective == "carla" else f"lower c_z (now {self.c_z:g})"
            warn_if_collapsed(self.latent_variance_, remedy)
        return self

    def _check_parameters(self) -> None:
        one_of("objective", self.objective, get_args(Objective))
        check_autoencoder(self.get_params(), ("rest_dim", "label_dim", "width"), weights=("c_x", "c_z", "c_w", "c_h"))

    def _new_network(self, generator: torch.Generator) -> "_Network":
        return _Network(self.fixed_, self.rest_dim, self.label_dim, self.width, generator)

    def _weights(self, variance: float, batch_size: int) -> "_Weights":
        if self.objective == "carla":
            return _Weights(40.0 / max(int((~self.fixed_).sum()), 1), 0.2 * batch_size, 1.0 * batch_size, 110.0)
        return _Weights(self.c_x / max(variance, _LEAST_VARIANCE), self.c_z, self.c_w, self.c_h)

    def rest(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B z"]:
        """The mean of q(z|x), in single precision; to be called in tiles, like all that follow."""
        return self._network.rest(x[:, self._network.free]).mean

    def prior(self, label: Float[Tensor, " B"]) -> Float[Tensor, "B w"]:
        """The mean of p(w|y)."""
        return self._network.prior(one_hot(label.long(), 2).float()).mean

    def decode(self, z: Float[Tensor, "B z"], w: Float[Tensor, "B w"], x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """The rows of two codes: free columns decoded, fixed ones copied from the persons x."""
        network = self._network
        return x.index_copy(1, network.free, network.decode(z, w, x[:, network.given]))

    def state(self) -> State:
        """What has to be saved to encode and decode again."""
        arrays = {f"network.{name}": array for name, array in arrays_of(self._network).items()}
        values = {"latent_variance": self.latent_variance_, "losses": self.losses_, "parameters": self.get_params()}
        return State({**arrays, "fixed": self.fixed_}, values)

    @classmethod
    def from_state(cls, state: State) -> "ConditionalVAE":
        """Rebuild a fitted auto-encoder from :meth:`state`."""
        vae = cls(**state.values["parameters"])
        vae.fixed_ = np.array(state.arrays["fixed"], dtype=np.bool_)
        vae.latent_variance_, vae.losses_ = state.values["latent_variance"], list(state.values["losses"])
        vae._network = vae._new_network(torch.Generator())
        named = {k.removeprefix("network."): v for k, v in state.arrays.items() if k.startswith("network.")}
        load_arrays(vae._network, named)
        return vae


class _Network(nn.Module):
    """Two encoders, the prior of w, the decoder and the adversary."""

    def __init__(self, fixed: Mask, z: int, w: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.free, self.given = (torch.as_tensor(np.flatnonzero(columns)) for columns in (~fixed, fixed))
        n_free, n_given = len(self.free), len(self.given)
        self.rest_encoder = perceptron([n_free, width, 2 * z], generator)
        self.label_encoder = perceptron([n_free + 2, width, 2 * w], generator)
        self.label_prior = perceptron([2, width, 2 * w], generator)
        self.decoder = perceptron([z + w + n_given, width, n_free], generator)
        self.adversary = perceptron([z + n_given, width, 2], generator)

    def parts(self, X: Rows, y: Labels) -> tuple[Tensor, ...]:
        """The free columns, the given ones, and the labels as one-hot pairs."""
        x = torch.as_tensor(X, dtype=torch.float32)
        return x[:, self.free], x[:, self.given], one_hot(torch.as_tensor(y).long(), 2).float()

    def rest(self, free: Float[Tensor, "B f"]) -> Gaussian:
        """q(z|x)."""
        return _gaussian(self.rest_encoder(free))

    def label_part(self, free: Float[Tensor, "B f"], label: Float[Tensor, "B 2"]) -> Gaussian:
        """q(w|x, y)."""
        return _gaussian(self.label_encoder(torch.cat([free, label], 1)))

    def prior(self, label: Float[Tensor, "B 2"]) -> Gaussian:
        """p(w|y)."""
        return _gaussian(self.label_prior(label))

    def decode(
        self, z: Float[Tensor, "B z"], w: Float[Tensor, "B w"], given: Float[Tensor, "B g"]
    ) -> Float[Tensor, "B f"]:
        """The free columns."""
        return self.decoder(torch.cat([z, w, given], 1))


def _gaussian(halves: Tensor) -> Gaussian:
    mean, log_std = halves.chunk(2, 1)
    return Gaussian(mean.contiguous(), log_std.clamp(-_LARGEST_LOG_STD, _LARGEST_LOG_STD).exp())


@dataclass(frozen=True, slots=True)
class _Weights:
    """Of the terms, each a mean over rows of a sum over columns or dimensions."""

    reconstruction: float
    rest: float
    label: float
    ignorance: float


@dataclass(frozen=True, slots=True, eq=False)
class _Loss:
    """Both players' losses of a batch, to be minimised by one optimiser, because each reaches one player only.

    Validation rows are judged without the adversary, whose game has no least value, and with the same draws each time.
    """

    network: _Network
    weights: _Weights
    generator: torch.Generator
    seed: int

    def __call__(self, batch: tuple[Tensor, ...], share: float) -> Tensor:
        training = self.network.training
        generator = self.generator if training else torch.Generator().manual_seed(self.seed)
        free, given, label = batch
        rest, own = self.network.rest(free), self.network.label_part(free, label)
        z, w = rest.draw(generator), own.draw(generator)
        error = (free - self.network.decode(z, w, given)).square().sum(1)
        surprise = self.weights.rest * rest.divergence()
        surprise = surprise + self.weights.label * own.divergence(self.network.prior(label))
        bound = (self.weights.reconstruction * error + surprise).mean()
        return bound + self.contest(z, given, label) if training else bound

    def contest(self, z: Tensor, given: Tensor, label: Tensor) -> Tensor:
        """The adversary's loss, z detached, less the encoder's pay, through a frozen copy of the adversary."""
        adversary = self.network.adversary
        guess = log_softmax(adversary(torch.cat([z.detach(), given], 1)), 1)
        frozen = {name: value.detach() for name, value in adversary.named_parameters()}
        seen = log_softmax(functional_call(adversary, frozen, (torch.cat([z, given], 1),)), 1)
        entropy = -(seen.exp() * seen).sum(1)
        return -(label * guess).sum(1).mean() - self.weights.ignorance * entropy.mean()
