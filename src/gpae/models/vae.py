"""A variational auto-encoder of encoded rows, conditioned on the columns that nobody may change."""

from collections.abc import Sequence
from numbers import Integral
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from sklearn.base import BaseEstimator
from torch import Tensor

from gpae.arrays import Mask, Rows
from gpae.artefact import State
from gpae.errors import InputError, one_of
from gpae.models.autoencoder_training import check_autoencoder, in_batches, warn_if_collapsed
from gpae.models.held_out import held_out_tenth
from gpae.models.network import NetworkSchedule, arrays_of, load_arrays, train_network
from gpae.models.vae_network import Likelihood, Objective, VAELoss, VAENetwork
from gpae.numerics.tiles import in_tiles

__all__ = ["VAE"]

_KL_WEIGHTS: dict[str, float] = {"balanced": 0.03, "carla": 0.3, "carla_legacy": 1.0}
_LARGEST_BATCH = 256


class VAE(BaseEstimator):  # type: ignore[misc]
    """Rows to a few latents and back, with a standard normal prior.

    **Objective.** With u a row's mutable columns scaled to [0, 1] and c its fixed ones, q(z | u) = N(mu(u), sigma^2(u))
    and u^ = decode(z, c), minimise over mini-batches

        mean_i [ sum_j BCE(u_ij, u^_ij) + kl_weight / 2 sum_k (mu_ik^2 + sigma_ik^2 - log sigma_ik^2 - 1) ].

    Both terms are means over rows and sums within a row. The weight is below 1 because the cross-entropy of a value
    inside [0, 1] is flat: a direction of variance v around 1/2 pays for a latent only if v > kl_weight / 4. The number
    of epochs is chosen by the objective on validation rows.

    Parameters
    ----------
    latent_dim, hidden
        Latents, and the sizes of the encoder's hidden layers; the decoder has them in reverse.
    objective
        ``"balanced"``: as above. ``"carla"``: sums over the batch, the weight rising with the epoch e of E as
        kl_weight e / E. ``"carla_legacy"``: its version 0.0.4, the *mean* squared error plus the divergence *summed*
        over the batch, with batch normalisation; it collapses, and is here to show that.
    likelihood
        ``"bernoulli"``: the cross-entropy above; ``"gaussian"``: with a variance learnt for each column.
    kl_weight
        None: 0.03, 0.3 and 1 for the three objectives.
    learning_rate, weight_decay, batch_size, max_epochs, patience
        Adam; ``batch_size`` None: 256, or fewer, so that an epoch has 32 batches, of 16 rows at least (few rows are
        gone through more than once). ``patience`` None: all epochs, the last weights.
    random_state
        Seed of the weights, the batches and the draws.

    Attributes
    ----------
    latent_variance_
        Of mu over the training rows, the mean over latents; below 0.01 a warning is given.
    reconstruction_error_
        Share of the training rows' variance that is lost from u to decode(mu(u), c): 1 is as bad as a constant.
    losses_
        The objective on the validation rows, epoch by epoch.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> vae = VAE(latent_dim=2, max_epochs=30).fit(rng.random((500, 2)))
    >>> vae.latents(np.array([[0.2, 0.8]])).shape
    (1, 2)
    """

    latent_variance_: float
    reconstruction_error_: float
    losses_: list[float]
    fixed_: Mask

    def __init__(
        self,
        *,
        latent_dim: int = 8,
        hidden: Sequence[int] = (128, 64),
        objective: Objective = "balanced",
        likelihood: Likelihood = "bernoulli",
        kl_weight: float | None = None,
        learning_rate: float = 3e-3,
        weight_decay: float = 1e-6,
        batch_size: int | None = None,
        max_epochs: int = 60,
        patience: int | None = 6,
        random_state: int = 0,
    ) -> None:
        self.latent_dim = latent_dim
        self.hidden = hidden
        self.objective = objective
        self.likelihood = likelihood
        self.kl_weight = kl_weight
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.random_state = random_state

    @classmethod
    def carla(cls, objective: Literal["carla", "carla_legacy"] = "carla", random_state: int = 0) -> "VAE":
        """The auto-encoder with the sizes and the schedule of the reference implementation."""
        return cls(
            hidden=(512, 256),
            objective=objective,
            learning_rate=1e-3,
            batch_size=32,
            max_epochs=5,
            patience=None,
            random_state=random_state,
        )

    def fit(self, X: Rows, *, fixed: Mask | None = None, validation: Rows | None = None) -> "VAE":
        """Learn from encoded rows; columns that are ``fixed`` (D) condition the decoder and are not encoded.

        ``validation`` None: a tenth of the rows decides when to stop.
        """
        self._check_parameters()
        self.fixed_ = np.zeros(X.shape[1], dtype=np.bool_) if fixed is None else np.array(fixed, dtype=np.bool_)
        generator = torch.Generator().manual_seed(self.random_state)
        learn, watch = _split(X, validation, generator)
        network = self._network = self._new_network(generator)
        network.learn_range(torch.as_tensor(X, dtype=torch.float32))
        rows, batch = in_batches((learn,), self.batch_size, _LARGEST_BATCH)
        objective = VAELoss(network, self.objective, self.likelihood, self._weight(), self.max_epochs, generator)
        self.losses_ = train_network(
            network,
            rows,
            objective,
            NetworkSchedule(self.learning_rate, batch, self.max_epochs, self.patience, self.weight_decay),
            generator,
            validation=(watch,),
            stage="training the auto-encoder",
        )
        self._judge(X)
        return self

    def _check_parameters(self) -> None:
        one_of("objective", self.objective, get_args(Objective))
        one_of("likelihood", self.likelihood, get_args(Likelihood))
        check_autoencoder(self.get_params(), ("latent_dim",), rates=("kl_weight",), weights=("weight_decay",))
        if not self.hidden or not all(isinstance(size, Integral) and size >= 1 for size in self.hidden):
            raise InputError(f"hidden={self.hidden!r} must be made of whole numbers of at least 1")

    def _weight(self) -> float:
        return _KL_WEIGHTS[self.objective] if self.kl_weight is None else self.kl_weight

    def _new_network(self, generator: torch.Generator) -> VAENetwork:
        normalised = self.objective == "carla_legacy"
        return VAENetwork(self.fixed_, self.hidden, self.latent_dim, generator, normalised=normalised)

    def _judge(self, X: Rows) -> None:
        """Measure what the latents keep of the training rows, and warn if it is nothing."""
        mutable = ~self.fixed_
        latents = self.latents(X)
        self.latent_variance_ = float(latents.var(axis=0).mean())
        (back,) = in_tiles(
            lambda z, x: (self.decode(z, x),),
            (torch.as_tensor(latents, dtype=torch.float32), torch.as_tensor(X, dtype=torch.float32)),
        )
        lost = ((back.numpy() - X)[:, mutable] ** 2).mean(axis=0).sum()
        self.reconstruction_error_ = float(lost / max(X[:, mutable].var(axis=0).sum(), 1e-12))
        if mutable.any():
            remedy = f"lower kl_weight (now {self._weight():g}) or use objective='balanced' (now {self.objective!r})"
            warn_if_collapsed(self.latent_variance_, remedy)

    def encode(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B k"]:
        """mu(u) of rows in single precision; to be called in tiles."""
        return self._network.mean(x)

    def decode(
        self, z: Float[Tensor, "B k"], x: Float[Tensor, "B D"], straight: Bool[Tensor, " D"] | None = None
    ) -> Float[Tensor, "B D"]:
        """The rows of latents: mutable columns decoded, fixed ones copied from the persons x.

        Gradients pass the columns that are ``straight`` as if the sigmoid were a line of its steepest slope, 1/4.
        """
        return self._network.rows(z, x, straight)

    def latents(self, X: Rows) -> Rows:
        """mu(u) of encoded rows."""
        (z,) = in_tiles(lambda x: (self.encode(x),), (torch.as_tensor(X, dtype=torch.float32),))
        return np.asarray(z.numpy(), dtype=np.float64)

    def state(self) -> State:
        """What has to be saved to encode and decode again."""
        values = {
            "parameters": self.get_params() | {"hidden": [int(size) for size in self.hidden]},
            "latent_variance": self.latent_variance_,
            "reconstruction_error": self.reconstruction_error_,
            "losses": self.losses_,
        }
        arrays = {f"network.{name}": array for name, array in arrays_of(self._network).items()}
        return State({**arrays, "fixed": self.fixed_}, values)

    @classmethod
    def from_state(cls, state: State) -> "VAE":
        """Rebuild a fitted auto-encoder from :meth:`state`."""
        parameters = state.values["parameters"]
        vae = cls(**parameters | {"hidden": tuple(parameters["hidden"])})
        vae.fixed_ = np.array(state.arrays["fixed"], dtype=np.bool_)
        vae._network = vae._new_network(torch.Generator())
        named = {k.removeprefix("network."): v for k, v in state.arrays.items() if k.startswith("network.")}
        load_arrays(vae._network, named)
        vae.latent_variance_ = state.values["latent_variance"]
        vae.reconstruction_error_ = state.values["reconstruction_error"]
        vae.losses_ = list(state.values["losses"])
        return vae

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "losses_")


def _split(X: Rows, validation: Rows | None, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows to learn from and rows to watch."""
    rows = torch.as_tensor(X, dtype=torch.float32)
    if validation is not None and len(validation):
        return rows, torch.as_tensor(validation, dtype=torch.float32)
    (learn,), (watch,) = held_out_tenth((rows,), generator)
    return learn, watch
