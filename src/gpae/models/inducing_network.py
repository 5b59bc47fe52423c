"""The deep Gaussian process behind :mod:`gpae.models.inducing_autoencoder`, in gpytorch's terms.

Only functions import this module, because gpytorch is an extra (``gpae[inducing]``).
"""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import cast

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, LinearMean
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from jaxtyping import Float
from torch import Tensor, nn

from gpae.numerics.differentiated import Differentiated
from gpae.numerics.inducing import InducingAutoEncoder, MeanLayer

__all__ = ["InducingLayer", "InducingNetwork"]

_JITTER = 1e-4
"""On the diagonal of K_ZZ: gpytorch's value for single precision, kept in double so that both have the same means."""


class InducingLayer(DeepGPLayer):  # type: ignore[misc]
    """Independent sparse Gaussian processes, one an output: RBF kernels with a length-scale for each input.

    The inner layers of a side have a linear prior mean, the last one a constant.
    """

    def __init__(self, n_in: int, n_out: int, n_inducing: int, *, inner: bool) -> None:
        shape = torch.Size([n_out])
        distribution = CholeskyVariationalDistribution(n_inducing, batch_shape=shape)
        points = torch.zeros(n_out, n_inducing, n_in)
        strategy = VariationalStrategy(self, points, distribution, learn_inducing_locations=True, jitter_val=_JITTER)
        # gpytorch would start from the prior plus noise of its own at the first call; the start here is ours
        strategy.variational_params_initialized.fill_(1)
        super().__init__(strategy, n_in, n_out)
        self.mean_module = LinearMean(n_in, batch_shape=shape) if inner else ConstantMean(batch_shape=shape)
        kernel = RBFKernel(ard_num_dims=n_in, batch_shape=shape)
        self.covar_module = ScaleKernel(kernel, batch_shape=shape)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """The prior at x."""
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def marginals(self, x: Float[Tensor, "N i"]) -> tuple[Float[Tensor, "N o"], Float[Tensor, "N o"]]:
        """Mean and variance of each output at each row; rows count as samples, or gpytorch would draw ten of each."""
        posterior = self(x, are_samples=True)
        return posterior.mean, posterior.variance

    @torch.no_grad()
    def start(
        self,
        points: Float[Tensor, "m i"],
        *,
        length_scale: float,
        variance: float | Float[Tensor, " o"],
        spread: float,
        slope: Float[Tensor, "o i"] | None = None,
        offset: Float[Tensor, " o"] | None = None,
    ) -> None:
        """Give all outputs the same inducing points and kernel, inducing values of zero and covariance spread^2 I."""
        distribution = self.variational_strategy._variational_distribution
        self.variational_strategy.inducing_points.copy_(points.expand(self.output_dims, -1, -1))
        distribution.variational_mean.zero_()
        distribution.chol_variational_covar.copy_(spread * torch.eye(len(points)).expand(self.output_dims, -1, -1))
        self.covar_module.outputscale = variance
        self.covar_module.base_kernel.lengthscale = length_scale
        offset = points.new_zeros(self.output_dims) if offset is None else offset
        if slope is None:
            self.mean_module.constant.copy_(offset)
        else:
            self.mean_module.weights.copy_(slope.unsqueeze(2))
            self.mean_module.bias.copy_(offset.unsqueeze(1))

    @torch.no_grad()
    def whitened_features(self, x: Float[Tensor, "N i"]) -> Float[Tensor, "N m"]:
        """L^-1 k(Z, x) of the first output: with these the posterior mean is linear in the whitened inducing values."""
        scale = self.covar_module.base_kernel.lengthscale[0].double()
        points = self.variational_strategy.inducing_points[0].double()
        bumps = torch.exp(-0.5 * torch.cdist(points / scale, x.double() / scale).square())
        cross = self.covar_module.outputscale[0].double() * bumps
        return torch.linalg.solve_triangular(self._factor()[0], cross, upper=False).mT.to(x.dtype)

    @torch.no_grad()
    def set_values(self, whitened: Float[Tensor, "m o"]) -> None:
        """Set the means of the whitened inducing values."""
        self.variational_strategy._variational_distribution.variational_mean.copy_(whitened.mT)

    @torch.no_grad()
    def mean_path(self) -> MeanLayer:
        """The posterior mean as plain tensors in double precision: a = L^-T m_u, once."""
        points = self.variational_strategy.inducing_points.double()
        values = self.variational_strategy._variational_distribution.variational_mean.double()
        solved = torch.linalg.solve_triangular(self._factor().mT, values.unsqueeze(2), upper=True).squeeze(2)
        variance, scale = self.covar_module.outputscale.double(), self.covar_module.base_kernel.lengthscale.double()
        if isinstance(self.mean_module, LinearMean):
            slope, offset = self.mean_module.weights.squeeze(2), self.mean_module.bias.squeeze(1)
        else:
            offset = self.mean_module.constant
            slope = offset.new_zeros(self.output_dims, self.input_dims)
        tensors = (points, scale.squeeze(1).square().reciprocal(), solved * variance.unsqueeze(1), slope, offset)
        return MeanLayer(*(t.detach().to("cpu", torch.float64).clone() for t in tensors))

    def _factor(self) -> Float[Tensor, "o m m"]:
        """L with LL' = K_ZZ + jitter, in double precision."""
        points = self.variational_strategy.inducing_points.double()
        scaled = points / self.covar_module.base_kernel.lengthscale.double()
        distances = (scaled.unsqueeze(2) - scaled.unsqueeze(1)).square().sum(3)
        kernel = self.covar_module.outputscale.double().view(-1, 1, 1) * torch.exp(-0.5 * distances)
        kernel.diagonal(dim1=1, dim2=2).add_(_JITTER)
        return torch.linalg.cholesky(kernel)


class InducingNetwork(DeepGP):  # type: ignore[misc]
    """Encoder, decoder and the linear classifier on the latent between them."""

    def __init__(self, n_columns: int, latent_dim: int, n_inducing: int, *, hidden: tuple[int, ...]) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):  # gpytorch draws starting values, which ours replace
            self.encoder = _side((n_columns, *hidden, latent_dim), n_inducing)
            self.decoder = _side((latent_dim, *reversed(hidden), n_columns), n_inducing)
        self.theta = nn.Parameter(torch.zeros(latent_dim))
        self.theta0 = nn.Parameter(torch.zeros(()))

    def sampled_latent(self, x: Float[Tensor, "N D"], generator: torch.Generator) -> Float[Tensor, "N d"]:
        """A draw from the encoder, layer by layer through the marginals."""
        for layer in self.encoder:
            x = _sampled(*layer.marginals(x), generator)
        return x

    def rebuilt(
        self, latent: Float[Tensor, "N d"], generator: torch.Generator
    ) -> tuple[Float[Tensor, "N D"], Float[Tensor, "N D"]]:
        """Mean and variance of the decoder's last layer at a draw from those before it."""
        for layer in self.decoder[:-1]:
            latent = _sampled(*layer.marginals(latent), generator)
        mean, variance = self.decoder[-1].marginals(latent)
        return mean, variance

    def divergence(self) -> Float[Tensor, ""]:
        """KL(q(u) | p(u)) summed over the layers of both sides."""
        divergence: Tensor = self.variational_strategy.kl_divergence()
        return divergence

    def mean_path(self) -> InducingAutoEncoder:
        """The deterministic model that is explained: posterior means only, as plain tensors."""
        encoder, decoder = (tuple(layer.mean_path() for layer in side) for side in (self.encoder, self.decoder))
        theta, theta0 = (t.detach().to("cpu", torch.float64).clone() for t in (self.theta, self.theta0))
        return InducingAutoEncoder(encoder, decoder, theta, theta0)

    def predictive_encoder(self) -> Differentiated:
        """The same encoder by gpytorch's own predictions, mean and variance of every layer at every call."""
        network = deepcopy(self).to("cpu", torch.float64).eval().requires_grad_(False)

        def latent(x: Tensor) -> Tensor:
            for layer in network.encoder:
                x, _ = layer.marginals(x)
            return x

        # gpytorch keeps the factor of K_ZZ from its first call, and with it that call's graph unless there is none
        with torch.no_grad():
            latent(torch.zeros(1, network.encoder[0].input_dims, dtype=torch.float64))
        return Differentiated(latent, network.theta.detach(), network.theta0.detach())


def _side(sizes: tuple[int, ...], n_inducing: int) -> Sequence[InducingLayer]:
    last = len(sizes) - 2
    layers = [InducingLayer(a, b, n_inducing, inner=i < last) for i, (a, b) in enumerate(pairwise(sizes))]
    return cast("Sequence[InducingLayer]", nn.ModuleList(layers))


def _sampled(
    mean: Float[Tensor, "N o"], variance: Float[Tensor, "N o"], generator: torch.Generator
) -> Float[Tensor, "N o"]:
    noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype).to(mean.device)
    return mean + variance.clamp(min=1e-12).sqrt() * noise
