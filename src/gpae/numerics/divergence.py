"""KL(q | p) on the decision boundary between the counterfactuals found, q, and the data's density there, p."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.boundary import Boundary
from gpae.numerics.density import Tilt, log_density, log_envelope, log_mean, proposal, resample
from gpae.numerics.fourier import features

__all__ = [
    "kl_divergence",
    "literal_divergence",
    "log_mixture",
    "silverman_bandwidth",
    "slice_log_normaliser",
]

_NEAR = 1000


def silverman_bandwidth(gamma: Float[Tensor, "N e"], n_components: int) -> float:
    """Silverman's factor for e = d - 1 dimensions times the mean spread of the projected training rows (E16)."""
    e = gamma.shape[1]
    factor = (4 / (e + 2)) ** (1 / (e + 4)) * n_components ** (-1 / (e + 4))
    return factor * float(gamma.std(0).mean())


def log_mixture(gamma: Float[Tensor, "M e"], centres: Float[Tensor, "N e"], bandwidth: float) -> Float[Tensor, " M"]:
    """log q(gamma) = log mean_n N(gamma | gamma_n, sigma^2 I)."""
    constant = math.log(len(centres)) + 0.5 * gamma.shape[1] * math.log(2 * math.pi * bandwidth**2)
    blocks = [
        torch.logsumexp(-0.5 * torch.cdist(part, centres).square() / bandwidth**2, 1)
        for part in gamma.split(max(1, 4_000_000 // len(centres)))
    ]
    return torch.cat(blocks) - constant


def slice_log_normaliser(
    tilt: Tilt,
    plane: Boundary,
    latents: Float[Tensor, "N d"],
    generator: torch.Generator,
    n_draws: int = 20_000,
    n_rounds: int = 3,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """log of the integral of p over the hyperplane, so that p(gamma) = p(lambda_b + A gamma) / that (E15); its error.

    The Gaussian factor on the hyperplane is N(gamma | m, V) times a constant; the tilt is averaged over it. As for the
    whole density, plain draws miss where the tilt is high: others lie around the projections of the latents nearest to
    the hyperplane and, round by round, around points of the slice itself, all with importance weights.
    """
    V = torch.linalg.inv(plane.basis.T @ tilt.precision @ plane.basis)
    m = V @ plane.basis.T @ tilt.precision @ (tilt.mean - plane.origin)
    factor = torch.linalg.cholesky(V)
    apart = ((latents - plane.origin) @ plane.normal).abs()
    near = plane.project(latents[apart.argsort()[:_NEAR]])
    centres = near_white = torch.linalg.solve_triangular(factor, (near - m).T, upper=False).T
    log_tilt, error = torch.zeros(()), torch.zeros(())
    for _ in range(n_rounds):
        white, log_importance = proposal(centres, n_draws, generator)
        log_terms = features(tilt.fmap, plane.lift(m + white @ factor.T)) @ tilt.weights + log_importance
        log_tilt, error = log_mean(log_terms)
        centres = torch.cat([near_white[: _NEAR // 2], resample(white, log_terms, generator)])
    variance = plane.normal @ (tilt.factor @ (tilt.factor.T @ plane.normal))
    distance = plane.normal @ (plane.origin - tilt.mean)
    log_constant = -0.5 * (distance.square() / variance + torch.log(2 * math.pi * variance))
    return log_tilt + log_constant - tilt.log_normaliser, error


def kl_divergence(
    tilt: Tilt,
    plane: Boundary,
    centres: Float[Tensor, "N e"],
    noise: Float[Tensor, "N L e"],
    bandwidth: float,
    log_normaliser: Float[Tensor, ""],
) -> tuple[float, float]:
    """Monte-Carlo KL(q | p), stratified over the components of q (E15), and its standard error.

    The same ``noise`` serves every beta, so that curves over beta are smooth.
    """
    gamma = (centres.unsqueeze(1) + bandwidth * noise).flatten(0, 1)
    log_p = log_density(tilt, plane.lift(gamma)) - log_normaliser
    terms = (log_mixture(gamma, centres, bandwidth) - log_p).unflatten(0, noise.shape[:2])
    per_component = terms.mean(1)
    return float(per_component.mean()), float(per_component.std() / math.sqrt(len(centres)))


def literal_divergence(
    tilt: Tilt,
    plane: Boundary,
    centres: Float[Tensor, "N e"],
    noise: Float[Tensor, "N L e"],
    bandwidth: float,
) -> tuple[float, float]:
    """Algorithm 3 as printed: average the N draws of a round into one point, then average ln(q/p) over L rounds.

    The averages gather at the centroid and do not sample q; A gamma lies in the plane through the origin (E14, E15).
    Kept to compare; without the normaliser only differences in beta mean anything.
    """
    gamma = (centres.unsqueeze(1) + bandwidth * noise).mean(0)
    latent = gamma @ plane.basis.T
    log_p = features(tilt.fmap, latent) @ tilt.weights + log_envelope(tilt, latent)
    terms = log_mixture(gamma, centres, bandwidth) - log_p
    return float(terms.mean()), float(terms.std() / math.sqrt(len(terms)))
