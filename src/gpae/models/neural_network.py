"""A plain neural network of the encoder's shape: what the GPAE's classifier is compared with."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn
from torch.nn.functional import softplus

from gpae.errors import one_of
from gpae.models.held_out import tenth_without_copies
from gpae.models.network import NetworkSchedule, perceptron, train_network
from gpae.models.search_settings import check_settings
from gpae.numerics.tiles import in_tiles

__all__ = ["NeuralNetwork"]


class _Cosine(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.cos()


class NeuralNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """D inputs, S hidden units, d linear units, one logit; all weights trained.

    **Objective.** mean [softplus(g) - y g].

    **Differs from the paper.** It calls the network identical to its encoder and names no activation: ReLU is the
    default, ``"cosine"`` is the encoder with trained frequencies and phases.

    Parameters
    ----------
    n_hidden, n_latent
        S and d.
    activation
        Of the hidden units.
    learning_rate, batch_size, max_epochs, patience
        Adam, stopped when the validation loss has not improved for ``patience`` epochs; the best weights are kept.
    random_state
        Seed of the weights and of the batches.
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        n_hidden: int = 1000,
        n_latent: int = 4,
        *,
        activation: Literal["relu", "cosine"] = "relu",
        learning_rate: float = 1e-3,
        batch_size: int = 512,
        max_epochs: int = 100,
        patience: int = 20,
        random_state: int | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.n_latent = n_latent
        self.activation = activation
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.random_state = random_state

    def _check_parameters(self) -> None:
        one_of("activation", self.activation, ("relu", "cosine"))
        counts = ["n_hidden", "n_latent", "batch_size", "max_epochs", "patience"]
        check_settings(self.get_params(), counts=counts)

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, validation: tuple[ArrayLike, ArrayLike] | None = None
    ) -> "NeuralNetwork":
        """Fit; ``validation`` rows decide when to stop, None: a tenth of the rows, stratified."""
        self._check_parameters()
        rows: NDArray[np.float64]
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if validation is None:
            learn, watch = tenth_without_copies(rows, codes, seed)
            rows, rows_valid, codes, codes_valid = rows[learn], rows[watch], codes[learn], codes[watch]
        else:
            rows_valid, codes_valid = np.asarray(validation[0]), np.searchsorted(self.classes_, validation[1])
        generator = torch.Generator().manual_seed(seed)
        hidden = nn.ReLU if self.activation == "relu" else _Cosine
        first = perceptron((rows.shape[1], self.n_hidden), generator)
        self.network_ = nn.Sequential(first, hidden(), perceptron((self.n_hidden, self.n_latent), generator),
                                      perceptron((self.n_latent, 1), generator))  # fmt: skip
        schedule = NetworkSchedule(self.learning_rate, self.batch_size, self.max_epochs, self.patience)
        train_network(
            self.network_,
            _tensors(rows, codes),
            self._loss,
            schedule,
            generator,
            validation=_tensors(rows_valid, codes_valid),
            stage="training the neural network",
        )
        return self

    def _loss(self, batch: tuple[Tensor, ...], progress: float) -> Tensor:
        g = self.network_(batch[0]).squeeze(1)
        return (softplus(g) - batch[1] * g).mean()

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """The logit of the second class."""
        check_is_fitted(self, "network_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        (g,) = in_tiles(
            lambda x: (self.network_(x).squeeze(1),), (torch.tensor(np.ascontiguousarray(X), dtype=torch.float32),)
        )
        return np.asarray(g.double().numpy())

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Class probabilities, one column a class."""
        positive = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The more probable class."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(int)])


def _tensors(X: NDArray[Any], codes: NDArray[Any]) -> tuple[Tensor, ...]:
    return torch.tensor(np.ascontiguousarray(X), dtype=torch.float32), torch.tensor(codes, dtype=torch.float32)
