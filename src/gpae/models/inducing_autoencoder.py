"""The auto-encoder as a deep Gaussian process with inducing points: the paper's GPAE-ind, a scikit-learn estimator."""

import math
import warnings
from dataclasses import asdict
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpae.artefact import State, flatten, unflatten
from gpae.errors import InputError
from gpae.models.gp_autoencoder import CLASSIFICATION_WEIGHTS, GPAEClassifier
from gpae.models.latent_classifier import LatentClassifier
from gpae.models.network import arrays_of, load_arrays
from gpae.models.training import LossWeights, Rows, Schedule, Trace
from gpae.numerics.density import Tilt
from gpae.numerics.differentiated import Differentiated
from gpae.numerics.inducing import InducingAutoEncoder, MeanLayer

if TYPE_CHECKING:
    from gpae.models.inducing_network import InducingNetwork

__all__ = ["InducingGPAEClassifier"]

_RACE_SHARE = 6
"""Each loss weight that is tried gets one part in so many of the steps."""


class InducingGPAEClassifier(LatentClassifier):
    """A classifier on the latent of a deep Gaussian process with inducing points.

    **Objective.** Layers of independent Gaussian processes with RBF kernels (a length-scale for each input) and
    variational inducing values; lambda is drawn through the encoder's marginals, m_x and v_x are the decoder's mean and
    variance there, g = theta'lambda + theta_0. Minimise

        w_r mean (|x - m_x|^2 + sum_j v_x,j) + w_c mean [softplus(g) - y g] + sum over layers of KL(q(u) | p(u)) / n

    and then the latent density of :class:`~gpae.models.gp_autoencoder.GPAEClassifier`. What is predicted and explained
    is the path of the posterior means, lambda(x) = m_2(m_1(x)), which is deterministic.

    **Differs from the paper.** It gives 128 inducing points, RBF kernels and two layers; the hidden size, the optimiser
    and the start are ours: k-means centres as inducing points, length-scales by the median rule, the convex parts
    solved for. The classifier has a bias (E6). Training stops after ``max_steps``, or sooner by validation rows; the
    rate falls to nothing over the steps.

    Parameters
    ----------
    latent_dim
        d; the paper's 4.
    n_inducing
        Inducing points of each output; fewer if there are fewer distinct rows.
    layers_per_side
        2: encoder and decoder of two layers each; 1: the other reading of the paper's phrase, one each.
    hidden_dim
        Outputs of the inner layers.
    reconstruction_weight, classification_weight
        w_r and w_c; ``"auto"``: w_c is 1 or 10, chosen on validation rows after a sixth of the steps with each.
    class_weight
        None, ``"balanced"`` or a weight for each class, in the cross-entropy.
    learning_rate, batch_size
        Of Adam.
    max_steps, max_epochs
        Steps at most, and passes over the rows at most. A step on 512 rows takes about half a second on one core.
    patience
        Looks at the validation rows (one every 20 steps) without progress until training stops.
    density_on, density_features, density_draws, random_state, device
        As for :class:`~gpae.models.gp_autoencoder.GPAEClassifier`.
    """

    model_: InducingAutoEncoder
    trace_: Trace
    classification_weight_: float
    network_: dict[str, NDArray[np.generic]]
    """The weights of gpytorch's network; what is asked of the posterior means alone does not need them."""

    def __init__(
        self,
        latent_dim: int = 4,
        *,
        n_inducing: int = 128,
        layers_per_side: Literal[1, 2] = 2,
        hidden_dim: int = 10,
        reconstruction_weight: float = 1.0,
        classification_weight: float | Literal["auto"] = "auto",
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        learning_rate: float = 1e-2,
        batch_size: int = 512,
        max_steps: int = 300,
        max_epochs: int = 100,
        patience: int = 10,
        density_on: Literal["all", "target"] = "all",
        density_features: int = 500,
        density_draws: int = 20_000,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
    ) -> None:
        self.latent_dim = latent_dim
        self.n_inducing = n_inducing
        self.layers_per_side = layers_per_side
        self.hidden_dim = hidden_dim
        self.reconstruction_weight = reconstruction_weight
        self.classification_weight = classification_weight
        self.class_weight = class_weight
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.max_epochs = max_epochs
        self.patience = patience
        self.density_on = density_on
        self.density_features = density_features
        self.density_draws = density_draws
        self.random_state = random_state
        self.device = device

    @classmethod
    def like(cls, classifier: GPAEClassifier, **own: Any) -> "InducingGPAEClassifier":
        """An unfitted one with the settings that it shares with a GPAE (latent, loss, density, seed), and its own."""
        known = cls().get_params()
        shared = {name: value for name, value in classifier.get_params().items() if name in known}
        return cls(**(shared | own))

    def _fit_autoencoder(self, rows: Rows, valid: Rows, generator: torch.Generator) -> InducingAutoEncoder:
        training = _gpytorch_part("inducing_training")
        n, n_columns = rows.x.shape
        n_inducing = min(self.n_inducing, len(torch.unique(rows.x, dim=0)))
        network = self._network(n_columns, n_inducing).to(rows.x.device)
        training.start(network, rows, generator)
        schedule = Schedule(self.learning_rate, self.batch_size, self.max_epochs, self.patience)
        n_steps = min(self.max_steps, self.max_epochs * math.ceil(n / self.batch_size))
        if self.classification_weight == "auto":
            candidates = [LossWeights(self.reconstruction_weight, w) for w in CLASSIFICATION_WEIGHTS]
            race = math.ceil(n_steps / _RACE_SHARE)
            weights = training.choose_weights(network, rows, valid, candidates, schedule, race, generator)
            n_steps -= race * len(candidates)
        else:
            weights = LossWeights(self.reconstruction_weight, float(self.classification_weight))
        self.classification_weight_ = weights.classification
        self.trace_ = training.train(network, rows, valid, weights, schedule, n_steps, generator)
        self.network_ = arrays_of(network)
        return network.mean_path()

    def _network(self, n_columns: int, n_inducing: int) -> "InducingNetwork":
        hidden = (self.hidden_dim,) * (self.layers_per_side - 1)
        made: InducingNetwork = _gpytorch_part("inducing_network").InducingNetwork(
            n_columns, self.latent_dim, n_inducing, hidden=hidden
        )
        return made

    def predictive_encoder(self) -> Differentiated:
        """The encoder by gpytorch's own predictions: the whole predictive distribution at every call.

        The same function as ``model_.encode`` up to rounding, many times slower: what the paper timed.
        """
        check_is_fitted(self, "model_")
        network = self._network(self.n_features_in_, self.model_.encoder[0].points.shape[1])
        load_arrays(network, self.network_)
        return network.predictive_encoder()

    def state(self) -> State:
        """What has to be saved to answer again, with and without gpytorch."""
        check_is_fitted(self, "model_")
        model = self.model_
        arrays = {"theta": model.theta.numpy(), "theta0": model.theta0.numpy(), **flatten(self.density_, "density")}
        for side, layers in (("encoder", model.encoder), ("decoder", model.decoder)):
            for i, layer in enumerate(layers):
                arrays |= flatten(layer, f"{side}.{i}")
        values = {
            "parameters": self.get_params(),
            "classes": self.classes_.tolist(),
            "trace": asdict(self.trace_),
            "classification_weight": self.classification_weight_,
            "logit_spread": self.logit_spread_,
            "n_features_in": self.n_features_in_,
        }
        return State(arrays, values).with_part("network", State(self.network_, {}))

    @classmethod
    def from_state(cls, state: State) -> "InducingGPAEClassifier":
        """Rebuild a fitted classifier from :meth:`state`."""
        values = state.values
        model = cls(**values["parameters"])
        encoder, decoder = (
            tuple(unflatten(MeanLayer, state.arrays, f"{side}.{i}") for i in range(model.layers_per_side))
            for side in ("encoder", "decoder")
        )
        theta, theta0 = (torch.from_numpy(np.array(state.arrays[name])) for name in ("theta", "theta0"))
        model.model_ = InducingAutoEncoder(encoder, decoder, theta, theta0)
        model.density_ = unflatten(Tilt, state.arrays, "density")
        model.network_ = state.part("network").arrays
        model.classes_ = np.array(values["classes"])
        trace = values["trace"]
        model.trace_ = Trace(tuple(trace["reconstruction"]), tuple(trace["cross_entropy"]), trace["best"])
        model.classification_weight_ = values["classification_weight"]
        model.logit_spread_ = values["logit_spread"]
        model.n_features_in_ = values["n_features_in"]
        return model


def _gpytorch_part(name: Literal["inducing_network", "inducing_training"]) -> ModuleType:
    """Import a module of ours that needs gpytorch."""
    from importlib import import_module

    try:
        with warnings.catch_warnings():
            # linear_operator compiles through torch.jit when it is imported, which newer versions of PyTorch deprecate
            warnings.simplefilter("ignore", DeprecationWarning)
            return import_module(f"gpae.models.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("gpytorch", "linear_operator"):
            raise
        raise InputError("this method needs gpytorch; install it with: pip install 'gpae[inducing]'") from error
