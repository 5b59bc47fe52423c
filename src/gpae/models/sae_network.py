"""The network of the supervised auto-encoder: a variational auto-encoder with a flow, and a probit on its latents."""

import math
from collections.abc import Sequence
from dataclasses import fields

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gpae.models.column_kinds import ColumnKinds
from gpae.models.network import perceptron
from gpae.numerics import probit
from gpae.numerics.flow import Flow, draw_flow, push
from gpae.numerics.probit import Coefficients

__all__ = ["SAENetwork"]

_LOG_SCALE = (-7.0, 2.0)
"""Bounds of log s_0, so that no row's posterior degenerates."""
_FAR = 5.0
"""Standard units beyond which a number is not told apart from the next."""


class SAENetwork(nn.Module):
    """Encoder, flow and decoder as weights; q(theta) and q(theta_0) as buffers, which no gradient step changes.

    The closed-form updates see mini-batches in training, so the coefficients are running averages there. Inside,
    numbers are in standard units: a column that a few huge values crush can decide the label as well as any other.
    """

    centre: Float[Tensor, " D"]
    scale: Float[Tensor, " D"]
    n_updates: Tensor

    def __init__(
        self,
        columns: ColumnKinds,
        latent_dim: int,
        hidden: Sequence[int],
        context_dim: int,
        n_flows: int,
        flow_hidden: int,
        bias_variance: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        width = len(columns.kind)
        self.columns = columns
        self.sizes = [latent_dim, latent_dim, context_dim]
        self.encoder = perceptron((width, *hidden, sum(self.sizes)), generator)
        self.decoder = perceptron((latent_dim, *reversed(hidden), width), generator)
        flow = draw_flow(latent_dim, context_dim, flow_hidden, n_flows, generator)
        self.flow = nn.ParameterDict({f.name: nn.Parameter(getattr(flow, f.name)) for f in fields(Flow)})
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.prior = probit.prior(latent_dim, bias_variance)
        for field in fields(Coefficients):
            self.register_buffer(field.name, getattr(self.prior, field.name).clone())
        self.register_buffer("n_updates", torch.zeros((), dtype=torch.int64))

    @property
    def coefficients(self) -> Coefficients:
        """q(theta) and q(theta_0)."""
        return Coefficients(*(getattr(self, field.name) for field in fields(Coefficients)))

    @coefficients.setter
    def coefficients(self, q: Coefficients) -> None:
        for field in fields(Coefficients):
            getattr(self, field.name).copy_(getattr(q, field.name))

    def standard(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """Rows in standard units, cut off far out."""
        return ((x - self.centre) / self.scale).clamp(-_FAR, _FAR)

    def draw(
        self, x: Float[Tensor, "B D"], noise: Float[Tensor, "B d"]
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, " B"]]:
        """Latents drawn with the given standard normal noise, and the logarithms of their densities (E21)."""
        centre, log_scale, context = self.encoder(self.standard(x)).split(self.sizes, 1)
        log_scale = log_scale.clamp(*_LOG_SCALE)
        latent, log_det = push(Flow(**self.flow), centre + log_scale.exp() * noise, context)
        log_density = -(0.5 * noise.square() + 0.5 * math.log(2 * math.pi) + log_scale).sum(1)
        return latent, log_density - log_det

    def encode(self, x: Float[Tensor, "B D"]) -> Float[Tensor, "B d"]:
        """The latent that stands for a row: the image of the centre, where the noise is zero."""
        centre, _, context = self.encoder(self.standard(x)).split(self.sizes, 1)
        return push(Flow(**self.flow), centre, context)[0]

    def decode(self, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B D"]:
        """The expected row, with the probabilities of levels."""
        return self.columns.means(self.decoder(latent)) * self.scale + self.centre

    def absorb(self, latent: Float[Tensor, "B d"], y: Float[Tensor, " B"], n_rows: int) -> None:
        """Update q(theta) and q(theta_0) by a mini-batch that stands for ``n_rows``."""
        rate = probit.averaging_rate(int(self.n_updates))
        self.coefficients = probit.sweep(self.coefficients, latent, y, self.prior, n_rows=n_rows, rate=rate)
        self.n_updates += 1

    def settle(self, latent: Float[Tensor, "n d"], y: Float[Tensor, " n"], n_sweeps: int) -> None:
        """Update them by all rows, until they rest."""
        q = self.coefficients
        for _ in range(n_sweeps):
            before, q = q, probit.sweep(q, latent, y, self.prior)
            if torch.allclose(q.moment, before.moment, rtol=1e-9):
                break
        self.coefficients = q

    def bound(
        self,
        x: Float[Tensor, "B D"],
        y: Float[Tensor, " B"],
        latent: Float[Tensor, "B d"],
        log_density: Float[Tensor, " B"],
        noise_variance: float,
        label_weight: float,
    ) -> Float[Tensor, " B"]:
        """Each row's part of the evidence lower bound, the label's part weighted."""
        rebuilt = self.columns.log_likelihood(self.decoder(latent), self.standard(x), noise_variance)
        log_prior = -0.5 * (latent.square() + math.log(2 * math.pi)).sum(1)
        label = probit.evidence(self.coefficients, latent, y)
        return rebuilt + log_prior - log_density + label_weight * label
