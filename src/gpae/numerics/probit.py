"""Probit regression on latents with closed-form variational updates, and the mirror step across its boundary.

    theta ~ N(0, I),  theta_0 ~ N(0, s_0),  alpha_i ~ N(theta' lambda_i + theta_0, 1),  y_i = sign(alpha_i) in {-1, +1}

    q(theta) q(theta_0) prod_i q(alpha_i),   q(theta) = N(mu, Sigma),   q(theta_0) = N(mu_0, v_0),
    q(alpha_i) = N(xi_i, 1) on the half line y_i alpha_i > 0,   xi_i = mu' lambda_i + mu_0

The coefficients are kept in natural parameters: those of mini-batches can be averaged (E22). The d x d algebra is in
double precision throughout; a latent of single precision keeps its gradient.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.aligned import product

__all__ = [
    "Coefficients",
    "averaging_rate",
    "bound",
    "evidence",
    "hidden_mean",
    "inverse_mills",
    "predictive",
    "prior",
    "score",
    "stepped",
    "sweep",
]


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """q(theta) and q(theta_0): precisions, and precisions times means."""

    precision: Float[Tensor, "d d"]
    moment: Float[Tensor, " d"]
    bias_precision: Float[Tensor, ""]
    bias_moment: Float[Tensor, ""]

    @property
    def theta(self) -> Float[Tensor, " d"]:
        """The mean mu of q(theta)."""
        return torch.cholesky_solve(self.moment.unsqueeze(1), torch.linalg.cholesky(self.precision)).squeeze(1)

    @property
    def bias(self) -> Float[Tensor, ""]:
        """The mean mu_0 of q(theta_0)."""
        return self.bias_moment / self.bias_precision


def prior(d: int, bias_variance: float) -> Coefficients:
    """N(0, I) and N(0, s_0)."""
    precision = torch.eye(d, dtype=torch.float64)
    bias_precision = torch.tensor(1 / bias_variance, dtype=torch.float64)
    return Coefficients(precision, torch.zeros_like(precision[0]), bias_precision, torch.zeros_like(bias_precision))


def score(q: Coefficients, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """xi = mu' lambda + mu_0; the decision is its sign."""
    return product(latent.double(), q.theta.unsqueeze(1)).squeeze(1) + q.bias


def inverse_mills(u: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """phi(u) / Phi(u), without overflow on either side."""
    return math.sqrt(2 / math.pi) / torch.special.erfcx(-u / math.sqrt(2))


def hidden_mean(xi: Float[Tensor, " B"], y: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """E[alpha]: the mean of N(xi, 1) on the half line where y alpha > 0."""
    return xi + y * inverse_mills(y * xi)


def averaging_rate(t: int) -> float:
    """The weight of the t-th mini-batch (from 0) in the running average."""
    return float((t + 10) ** -0.7)


def sweep(
    q: Coefficients,
    latent: Float[Tensor, "B d"],
    y: Float[Tensor, " B"],
    prior: Coefficients,
    *,
    n_rows: int | None = None,
    rate: float = 1.0,
) -> Coefficients:
    """One round of updates: alpha, theta, alpha, theta_0.

    With all rows and a rate of 1 each update is the maximum of the bound in its factor. The rows of a mini-batch stand
    for ``n_rows`` and enter the natural parameters as a running average: without the first the prior would dominate,
    without the second the coefficients would follow each batch.
    """
    latent = latent.double()
    share = (n_rows or len(latent)) / len(latent)
    alpha = hidden_mean(score(q, latent), y)
    precision = prior.precision + share * latent.T @ latent
    moment = prior.moment + share * latent.T @ (alpha - q.bias)
    q = replace(q, precision=torch.lerp(q.precision, precision, rate), moment=torch.lerp(q.moment, moment, rate))

    xi = score(q, latent)
    bias_precision = prior.bias_precision + share * len(latent)
    bias_moment = prior.bias_moment + share * (hidden_mean(xi, y) - xi + q.bias).sum()
    return replace(
        q,
        bias_precision=torch.lerp(q.bias_precision, bias_precision, rate),
        bias_moment=torch.lerp(q.bias_moment, bias_moment, rate),
    )


def evidence(q: Coefficients, latent: Float[Tensor, "B d"], y: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """Each row's part of the bound with its q(alpha) at the optimum: log Phi(y xi) - (lambda' Sigma lambda + v_0) / 2.

    Its gradient by lambda is (E[alpha] - xi) mu - Sigma lambda.
    """
    return torch.special.log_ndtr(y * score(q, latent)) - 0.5 * _uncertainty(q, latent)


def bound(
    q: Coefficients, latent: Float[Tensor, "B d"], y: Float[Tensor, " B"], prior: Coefficients
) -> Float[Tensor, ""]:
    """The evidence lower bound of the labels, given the latents: no sweep over all rows can lower it."""
    n, p = q.precision, prior.precision
    kl = 0.5 * (torch.linalg.solve(n, p).trace() - len(n) + torch.logdet(n) - torch.logdet(p))
    kl = kl + 0.5 * (q.theta - prior.theta) @ p @ (q.theta - prior.theta)
    ratio = prior.bias_precision / q.bias_precision
    kl_bias = 0.5 * (ratio - 1 - ratio.log() + prior.bias_precision * (q.bias - prior.bias).square())
    return evidence(q, latent, y).sum() - kl - kl_bias


def predictive(q: Coefficients, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """P(y = 1 | lambda) = Phi(xi / sqrt(1 + lambda' Sigma lambda + v_0))."""
    return torch.special.ndtr(score(q, latent) / (1 + _uncertainty(q, latent)).sqrt())


def stepped(q: Coefficients, latent: Float[Tensor, "B d"], step: float) -> Float[Tensor, "B d"]:
    """Go ``step`` times the way to the boundary along theta: 1 is on it, 2 is the mirror point, whose score is -xi."""
    theta = q.theta
    beta = -score(q, latent) / theta.square().sum()
    return latent.double() + step * beta.unsqueeze(1) * theta


def _uncertainty(q: Coefficients, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """lambda' Sigma lambda + v_0."""
    factor = torch.linalg.cholesky(q.precision)
    inverse = torch.linalg.solve_triangular(factor, torch.eye(len(factor), dtype=factor.dtype), upper=False)
    return product(latent.double(), inverse.T).square().sum(1) + 1 / q.bias_precision
