"""SAE: a variational auto-encoder whose latents a probit regression classifies, as an estimator."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from gpae.artefact import State
from gpae.errors import InputError
from gpae.models.budget import batches_and_epochs
from gpae.models.column_kinds import ColumnKinds
from gpae.models.held_out import held_out_tenth
from gpae.models.network import NetworkSchedule, arrays_of, load_arrays, train_network
from gpae.models.sae_network import SAENetwork
from gpae.numerics import probit
from gpae.numerics.tiles import in_tiles
from gpae.table.layout import Layout

__all__ = ["SupervisedAutoencoder"]

_SWEEPS = 200
_TAIL = 0.01
"""Share of a column's values on either side that have no say in its standard units."""


class SupervisedAutoencoder(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that decides by the side of a hyperplane in the latent space of a variational auto-encoder.

    **Objective.** The evidence lower bound of rows and labels,

        sum_i E_q [log p(x_i | lambda_i) + log p(lambda_i) - log q(lambda_i | x_i)]
        + w sum_i E_q [log Phi(y_i xi_i) - lambda_i' Sigma lambda_i / 2] - KL(q(theta)) - KL(q(theta_0)),

    with xi = mu' lambda + mu_0; q(lambda | x) is a Gaussian pushed through gated inverse autoregressive flows, q(theta)
    = N(mu, Sigma) and q(theta_0) are updated in closed form before each gradient step of encoder and decoder.

    **Differs from the paper.** The bound counts each term once (E21), the updates by mini-batches are scaled to all
    rows and averaged (E22). Sizes, noise and weights are not given there; with a noise as large as the data's own
    variance, or the label's term at weight 1, the latents collapse or forget the label. Numbers are in standard units
    inside. Levels have a categorical likelihood, yes/no columns a Bernoulli one. After training the coefficients are
    settled on the latents that stand for the training rows, which are those that it predicts from.

    Parameters
    ----------
    latent_dim
        d.
    hidden
        Hidden layers of the encoder; the decoder's in reverse.
    n_flows, flow_hidden, context_dim
        Steps of the flow, hidden units of each, and what the encoder tells them of the row.
    noise
        Variance of a number around its reconstruction, in units of its own variance.
    label_weight
        w.
    bias_variance
        Of the prior of theta_0.
    learning_rate, batch_size
        Of Adam; a small table is split into eight batches.
    max_epochs, max_updates, patience
        Training stops after so many epochs, after so many updates, or when held-out rows have seen no progress for
        ``patience`` epochs; then it goes on with a tenth of the rate until the same happens again.
    random_state
        Seed of every draw; nothing global is read or set.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((300, 2)); y = (X[:, 0] + X[:, 1] > 1).astype(int)
    >>> model = SupervisedAutoencoder(2, max_epochs=20, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.inverse_transform(model.transform(X)).shape
    (True, (300, 2))
    """

    classes_: NDArray[Any]
    network_: SAENetwork
    losses_: list[float]
    n_features_in_: int

    def __init__(
        self,
        latent_dim: int = 4,
        *,
        hidden: tuple[int, ...] = (128, 64),
        n_flows: int = 2,
        flow_hidden: int = 64,
        context_dim: int = 16,
        noise: float = 0.1,
        label_weight: float = 30.0,
        bias_variance: float = 10.0,
        learning_rate: float = 3e-3,
        batch_size: int = 512,
        max_epochs: int = 60,
        max_updates: int = 2500,
        patience: int = 10,
        random_state: int | None = None,
    ) -> None:
        self.latent_dim = latent_dim
        self.hidden = hidden
        self.n_flows = n_flows
        self.flow_hidden = flow_hidden
        self.context_dim = context_dim
        self.noise = noise
        self.label_weight = label_weight
        self.bias_variance = bias_variance
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_updates = max_updates
        self.patience = patience
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        layout: Layout | None = None,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> "SupervisedAutoencoder":
        """Fit; ``layout`` tells levels from numbers, ``validation`` rows when to stop (None: a tenth of the rows)."""
        self._check_parameters()
        given, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            raise InputError(f"the labels hold {len(self.classes_)} classes; two are needed")
        columns = ColumnKinds.all_numbers(given.shape[1]) if layout is None else ColumnKinds.of(layout)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        rows = self._tensors(given, y)
        learnt, watched = held_out_tenth(rows, generator) if validation is None else (rows, self._tensors(*validation))
        self.network_ = self._new_network(columns, generator)
        self._standardise(given)
        self._train(learnt, watched, generator)
        self.network_.double()
        self.network_.settle(self._encoded(given), rows[1], _SWEEPS)
        return self

    def _check_parameters(self) -> None:
        least = {"n_flows": 0}
        for name in (
            "latent_dim",
            "n_flows",
            "flow_hidden",
            "context_dim",
            "batch_size",
            "max_epochs",
            "max_updates",
            "patience",
        ):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least.get(name, 1):
                raise InputError(f"{name}={value!r} must be a whole number of at least {least.get(name, 1)}")
        for name in ("noise", "label_weight", "bias_variance", "learning_rate"):
            value = getattr(self, name)
            if not (isinstance(value, Real) and 0 < float(value) < np.inf):
                raise InputError(f"{name}={value!r} must be a number above 0")
        if not self.hidden or not all(isinstance(size, Integral) and size > 0 for size in self.hidden):
            raise InputError(f"hidden={self.hidden!r} must hold at least one whole number above 0, and no other")

    def _tensors(self, X: ArrayLike, y: ArrayLike) -> tuple[Tensor, ...]:
        """Rows in single precision, labels as -1 and +1 in double."""
        sign = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        return torch.tensor(np.asarray(X), dtype=torch.float32), torch.as_tensor(sign)

    def _new_network(self, columns: ColumnKinds, generator: torch.Generator) -> SAENetwork:
        return SAENetwork(
            columns,
            self.latent_dim,
            self.hidden,
            self.context_dim,
            self.n_flows,
            self.flow_hidden,
            self.bias_variance,
            generator,
        )

    def _standardise(self, X: NDArray[Any]) -> None:
        """Give the network the centre and the spread of the numbers, without their tails where that leaves any."""
        numbers = self.network_.columns.numbers
        values = X[:, numbers.numpy()]
        if not values.shape[1]:
            return
        inner = np.clip(values, *np.quantile(values, [_TAIL, 1 - _TAIL], axis=0))
        spread = np.where(inner.std(axis=0) > 1e-9, inner.std(axis=0), values.std(axis=0))
        self.network_.centre[numbers] = torch.as_tensor(inner.mean(axis=0), dtype=torch.float32)
        self.network_.scale[numbers] = torch.as_tensor(np.where(spread > 1e-9, spread, 1.0), dtype=torch.float32)

    def _train(self, rows: tuple[Tensor, ...], watched: tuple[Tensor, ...], generator: torch.Generator) -> None:
        network, n = self.network_, len(rows[0])
        still = torch.randn(len(watched[0]), self.latent_dim, generator=generator)

        def loss(batch: tuple[Tensor, ...], share: float) -> Tensor:
            x, y = batch
            noise = torch.randn(len(x), self.latent_dim, generator=generator) if network.training else still
            latent, log_density = network.draw(x, noise)
            if network.training:
                network.absorb(latent.detach(), y, n)
            return -network.bound(x, y, latent, log_density, self.noise, self.label_weight).mean()

        batch_size, epochs = batches_and_epochs(n, self.batch_size, self.max_epochs, self.max_updates)
        self.losses_ = []
        for rate in (self.learning_rate, self.learning_rate / 10):
            schedule = NetworkSchedule(rate, batch_size, epochs, self.patience)
            network.requires_grad_(True)
            self.losses_ += train_network(
                network, rows, loss, schedule, generator, validation=watched, stage="training the auto-encoder"
            )

    def _encoded(self, X: NDArray[Any]) -> Tensor:
        (latent,) = in_tiles(lambda x: (self.network_.encode(x),), (torch.tensor(X, dtype=torch.float64),))
        return latent

    def _latents(self, X: ArrayLike) -> Tensor:
        check_is_fitted(self, "network_")
        return self._encoded(validate_data(self, X, dtype=np.float64, reset=False))

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Encode: the latents that stand for the rows."""
        return np.asarray(self._latents(X).numpy())

    def inverse_transform(self, latents: ArrayLike) -> NDArray[np.float64]:
        """Decode: the expected rows, with the probabilities of levels."""
        check_is_fitted(self, "network_")
        given = torch.as_tensor(np.asarray(latents), dtype=torch.float64)
        (x,) = in_tiles(lambda z: (self.network_.decode(z),), (given,))
        return np.asarray(x.numpy())

    def stepped(self, latents: ArrayLike, step: float) -> NDArray[np.float64]:
        """Go ``step`` times the way to the boundary: 2 is the mirror point."""
        check_is_fitted(self, "network_")
        given = torch.as_tensor(np.asarray(latents), dtype=torch.float64)
        (moved,) = in_tiles(lambda z: (probit.stepped(self.network_.coefficients, z, step),), (given,))
        return np.asarray(moved.numpy())

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """xi: the mean score of the second class, in probit units."""
        (xi,) = in_tiles(lambda z: (probit.score(self.network_.coefficients, z),), (self._latents(X),))
        return np.asarray(xi.numpy())

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities, one column a class in the order of ``classes_``."""
        (p,) = in_tiles(lambda z: (probit.predictive(self.network_.coefficients, z),), (self._latents(X),))
        return np.column_stack([1 - p.numpy(), p.numpy()])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class on whose side of the boundary each row's latent lies."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])

    def state(self) -> State:
        """What has to be saved to answer again."""
        check_is_fitted(self, "network_")
        arrays = {"columns": self.network_.columns.kind.numpy()}
        values = {
            "parameters": self.get_params(),
            "classes": self.classes_.tolist(),
            "losses": self.losses_,
            "n_features_in": self.n_features_in_,
        }
        return State(arrays, values).with_part("network", State(arrays_of(self.network_), {}))

    @classmethod
    def from_state(cls, state: State) -> "SupervisedAutoencoder":
        """Rebuild a fitted estimator from :meth:`state`."""
        values = state.values
        model = cls(**values["parameters"])
        model.classes_, model.losses_ = np.array(values["classes"]), list(values["losses"])
        model.n_features_in_ = values["n_features_in"]
        columns = ColumnKinds.named(torch.tensor(state.arrays["columns"]))
        model.network_ = model._new_network(columns, torch.Generator()).double()
        load_arrays(model.network_, state.part("network").arrays)
        return model
