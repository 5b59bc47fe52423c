"""The networks of the :class:`gpae.models.vae.VAE`, and what they are trained to lower."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from gpae.arrays import Mask
from gpae.models.network import AlignedLinear, perceptron
from gpae.numerics.gaussian import Gaussian

__all__ = ["Likelihood", "Objective", "VAELoss", "VAENetwork"]

Objective = Literal["balanced", "carla", "carla_legacy"]
Likelihood = Literal["bernoulli", "gaussian"]

_WARM_UP = 3
"""Epochs until the divergence has its whole weight in the balanced objective."""
_SMALLEST_NOISE = 1e-4


class VAENetwork(nn.Module):
    """Encoder and decoder on columns scaled to [0, 1], and that scale."""

    low: Tensor
    span: Tensor

    def __init__(
        self, fixed: Mask, hidden: Sequence[int], latent_dim: int, generator: torch.Generator, *, normalised: bool
    ) -> None:
        super().__init__()
        self.mutable = torch.as_tensor(np.flatnonzero(~fixed))
        self.fixed = torch.as_tensor(np.flatnonzero(fixed))
        n_mutable, n_fixed = len(self.mutable), len(self.fixed)
        self.encoder = perceptron([n_mutable, *hidden, 2 * latent_dim], generator)
        self.decoder = perceptron([latent_dim + n_fixed, *reversed(hidden), n_mutable], generator)
        if normalised:
            self.encoder, self.decoder = _normalised(self.encoder, last=False), _normalised(self.decoder, last=True)
        self.log_noise = nn.Parameter(torch.full((n_mutable,), -3.0))
        self.register_buffer("low", torch.zeros(len(fixed)))
        self.register_buffer("span", torch.ones(len(fixed)))

    def learn_range(self, X: Float[Tensor, "n D"]) -> None:
        """Take each column's least and largest value; one that never varies spans 0 and is always decoded as it is."""
        self.low, high = X.amin(0), X.amax(0)
        self.span = high - self.low

    def unit(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """Scale rows to [0, 1]; what lies outside of the training range is seen at its end."""
        return ((x - self.low) / torch.where(self.span > 0, self.span, 1.0)).clamp(0, 1)

    def posterior(self, unit: Float[Tensor, "B D"]) -> Gaussian:
        """q(z | u)."""
        mean, log_variance = self.encoder(unit[:, self.mutable]).chunk(2, dim=1)
        return Gaussian(mean.contiguous(), (0.5 * log_variance).exp())

    def scores(self, z: Float[Tensor, "B k"], unit: Float[Tensor, "B D"]) -> Float[Tensor, "B m"]:
        """The decoder's output before the sigmoid."""
        return self.decoder(torch.cat([z, unit[:, self.fixed]], dim=1))

    def mean(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B k"]:
        """mu of rows."""
        return self.posterior(self.unit(x)).mean

    def rows(
        self, z: Float[Tensor, "B k"], x: Float[Tensor, "B D"], straight: Bool[Tensor, " D"] | None = None
    ) -> Float[Tensor, "B D"]:
        """Decode in the columns' own scale, beside the persons' fixed columns."""
        scores = self.scores(z, self.unit(x))
        shares = scores.sigmoid()
        if straight is not None:
            shares = torch.where(straight[self.mutable], shares.detach() + (scores - scores.detach()) / 4, shares)
        values = self.low[self.mutable] + self.span[self.mutable] * shares
        return x.index_copy(1, self.mutable, values)


def _normalised(layers: nn.Sequential, *, last: bool) -> nn.Sequential:
    """Put batch normalisation behind every linear layer, the last one only if asked."""
    out: list[nn.Module] = []
    for at, layer in enumerate(layers):
        out.append(layer)
        if isinstance(layer, AlignedLinear) and (last or at < len(layers) - 1):
            out.append(nn.BatchNorm1d(len(layer.bias)))
    return nn.Sequential(*out)


@dataclass(frozen=True, slots=True, eq=False)
class VAELoss:
    """The objective of a batch."""

    network: VAENetwork
    objective: Objective
    likelihood: Likelihood
    kl_weight: float
    max_epochs: int
    generator: torch.Generator

    def __call__(self, batch: tuple[Tensor, ...], share: float) -> Tensor:
        """Judge rows after this share of the epochs."""
        unit = self.network.unit(batch[0])
        posterior = self.network.posterior(unit)
        # the same draws for the validation rows each time, so that epochs can be compared
        source = self.generator if self.network.training else torch.Generator().manual_seed(0)
        scores, u = self.network.scores(posterior.draw(source), unit), unit[:, self.network.mutable]
        divergence = posterior.divergence().sum()
        if self.objective == "carla_legacy":
            return ((scores.sigmoid() - u) ** 2).mean() + self.kl_weight * divergence
        loss = self._misfit(scores, u) + self._annealed(share) * divergence
        return loss if self.objective == "carla" else loss / len(u)

    def _misfit(self, scores: Tensor, u: Tensor) -> Tensor:
        if self.likelihood == "bernoulli":
            return binary_cross_entropy_with_logits(scores, u, reduction="sum")
        log_noise = self.network.log_noise.clamp(min=np.log(_SMALLEST_NOISE))
        return 0.5 * ((scores.sigmoid() - u) ** 2 / log_noise.exp() + log_noise).sum()

    def _annealed(self, share: float) -> float:
        if self.objective == "carla":
            return self.kl_weight * share
        return self.kl_weight * min(1.0, share * self.max_epochs / _WARM_UP)
