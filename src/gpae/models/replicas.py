"""Models that retraining would give, without retraining: the last layer redrawn by bootstrap and from its posterior.

The logit of a GPAE is linear in the Fourier features of its encoder, g = v'phi(x) + b. Around the fitted v (with b as
its last entry, and 1 as the last feature) the loss of n rows, row i of weight c_i (1, or its class's), is a quadratic
with the Hessian

    H = sum_i c_i p_i (1 - p_i) phi_i phi_i' + I / (w |theta|^2),

the second term being the prior of the paper's weights (w: the weight of the cross-entropy). A bootstrap that counts row
i n_i times, n_i ~ Poisson(1), moves v by H^-1 sum_i (n_i - 1) c_i (y_i - p_i) phi_i; a draw of the posterior, by
H^-1/2 eps. Half of the replicas are of either kind. Both are taken further, by a factor ``spread``: a model that is
trained anew also has another encoder, another epoch to stop at and perhaps other choices on its validation rows. How
much further differs from table to table; a plan that is asked to last is judged by replicas that go further still, by a
factor ``caution``.

A share among replicas flatters the plans of a search, which finds the places where the model errs in their favour.
``odds`` is what remains of the share's odds, as :mod:`gpae.rehearsal` measures it: s -> s o / (s o + 1 - s).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.kernels.cosines import cosine_sums, shares_above
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.numerics.fourier import FourierMap, features

__all__ = ["Replicas", "believed"]

_CHUNK = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Replicas:
    """How R retrained models would differ from the fitted one: logits moved by shifts'phi(x)."""

    features: FourierMap
    shifts: Float[Tensor, "S+1 R"]
    odds: Float[Tensor, ""]
    caution: Float[Tensor, ""]
    """How much further the replicas go where a plan is asked to last."""

    @classmethod
    def of(
        cls,
        classifier: GPAEClassifier,
        X: Rows,
        y: Labels,
        n: int = 100,
        seed: int = 0,
        *,
        spread: float = 1.0,
        caution: float = 1.0,
    ) -> "Replicas":
        """Draw n replicas of a classifier fitted to encoded rows with labels 0 and 1.

        ``spread``: how far a whole training moves the logits, in terms of what its last layer alone would.
        """
        generator = torch.Generator().manual_seed(seed)
        model, weights = classifier.model_, torch.as_tensor(classifier.row_weights(y))
        rows, labels = torch.as_tensor(X), torch.as_tensor(y, dtype=torch.float64)
        n_features, half = len(model.encoder.phases) + 1, n // 2
        prior = 1.0 / (classifier.classification_weight_ * float(model.theta.square().sum()))
        hessian = prior * torch.eye(n_features, dtype=torch.float64)
        pull = torch.zeros(n_features, half, dtype=torch.float64)
        v = torch.cat([model.logit_weights, model.theta0.reshape(1)])
        for part in torch.arange(len(rows)).split(_CHUNK):
            phi = _with_one(features(model.encoder, rows[part]))
            p = torch.sigmoid(phi @ v)
            hessian += phi.T @ (phi * (weights[part] * p * (1 - p)).unsqueeze(1))
            counts = torch.poisson(torch.ones(len(p), half, dtype=torch.float64), generator=generator)
            pull += phi.T @ ((counts - 1) * (weights[part] * (labels[part] - p)).unsqueeze(1))
        root = torch.linalg.cholesky(hessian)
        bootstrap = torch.cholesky_solve(pull, root)
        noise = torch.randn(n_features, n - half, dtype=torch.float64, generator=generator)
        posterior = torch.linalg.solve_triangular(root.T, noise, upper=True)
        shifts = spread * torch.cat([bootstrap, posterior], dim=1)
        return cls(model.encoder, shifts, *torch.tensor([1.0, caution], dtype=torch.float64))

    def moved(self, X: Rows) -> NDArray[np.float64]:
        """B x R: by how much each replica's logit of each row differs from the model's, in single precision."""
        return np.asarray(cosine_sums(self.features, self.shifts, torch.as_tensor(X), "single").numpy())

    def survival(self, X: Rows, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of retrained models under which rows with these logits are still favourable."""
        own = torch.as_tensor(logits)
        share = shares_above(self.features, self.shifts, torch.as_tensor(X), own, "single").numpy()
        return np.asarray(believed(share, float(self.odds)))

    def at_level(
        self, X: Rows, logits: NDArray[np.float64], level: float, *, careful: bool = False
    ) -> NDArray[np.float64]:
        """The logit that a share ``level`` of the retrained exceeds: above 0 only where so many still agree.

        ``careful``: where they would even if training moved them further.
        """
        share, moved = float(believed(level, 1.0 / float(self.odds))), self.moved(X)
        reached = [
            np.quantile(logits[:, None] + far * moved, 1.0 - share, axis=1, method="lower")
            for far in ({1.0, float(self.caution)} if careful else {1.0})
        ]
        return np.minimum.reduce(reached)


def believed(share: NDArray[np.float64] | float, odds: float) -> NDArray[np.float64]:
    """A share whose odds are multiplied.

    Examples
    --------
    >>> import numpy as np
    >>> believed(np.array([0.0, 0.5, 1.0]), 0.25)
    array([0. , 0.2, 1. ])
    """
    # in brackets: none and all are to stay so, to the last bit
    return np.asarray(share * odds / (share * odds + (1.0 - share)))


def _with_one(phi: Float[Tensor, "B S"]) -> Float[Tensor, "B S+1"]:
    """The features, and a last one that is 1 for everybody."""
    return torch.nn.functional.pad(phi, (0, 1), value=1.0)
