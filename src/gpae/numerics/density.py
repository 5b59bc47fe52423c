"""The latent density p(l) = exp(w'phi(l)) N(l | mu, Sigma) / Z: values, derivatives and its MAP fit.

The latents are whitened first (t = L^-1 (l - mu), Sigma = LL'), the map is drawn in the whitened space and folded
back, so that every function below takes latents as they come.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.fourier import FourierMap, Scheme, draw_map, features, median_length_scale

__all__ = ["Tilt", "curvature", "fit_tilt", "log_density", "log_envelope", "score"]


@dataclass(frozen=True, slots=True, eq=False)
class Tilt:
    """A Gaussian envelope tilted by a random function in Fourier features, with its normaliser."""

    fmap: FourierMap
    weights: Float[Tensor, " S"]
    mean: Float[Tensor, " d"]
    factor: Float[Tensor, "d d"]
    """Lower Cholesky factor of Sigma."""
    precision: Float[Tensor, "d d"]
    log_normaliser: Float[Tensor, ""]
    """log E_N[exp(w'phi)], estimated on draws that the fit has not seen."""
    normaliser_error: Float[Tensor, ""]
    """Its standard error."""


def log_envelope(tilt: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """log N(l | mu, Sigma)."""
    centred = latent - tilt.mean
    quadratic = ((centred @ tilt.precision) * centred).sum(1)
    log_volume = 2 * tilt.factor.diagonal().log().sum() + latent.shape[1] * math.log(2 * math.pi)
    return -0.5 * (quadratic + log_volume)


def log_density(tilt: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """log p(l), normalised."""
    return features(tilt.fmap, latent) @ tilt.weights + log_envelope(tilt, latent) - tilt.log_normaliser


def score(tilt: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
    """grad_l log p(l) (E10: the term in mu has factor one)."""
    phase = torch.addmm(tilt.fmap.phases, latent, tilt.fmap.frequencies.T)
    pull = (phase.sin_() * tilt.weights) @ tilt.fmap.frequencies
    return -tilt.fmap.amplitude * pull - (latent - tilt.mean) @ tilt.precision


def curvature(tilt: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B d d"]:
    """Hessian of log p at each latent."""
    d = latent.shape[1]
    outer = (tilt.fmap.frequencies.unsqueeze(2) * tilt.fmap.frequencies.unsqueeze(1)).flatten(1)
    return -((features(tilt.fmap, latent) * tilt.weights) @ outer).unflatten(1, (d, d)) - tilt.precision


def fit_tilt(
    latents: Float[Tensor, "N d"],
    generator: torch.Generator,
    *,
    n_features: int = 500,
    n_draws: int = 20_000,
    n_fresh: int = 50_000,
    length_scale: float | None = None,
    prior_precision: float = 1.0,
    scheme: Scheme = "random",
) -> Tilt:
    """Maximise the posterior of w (E8) and measure the normaliser on fresh draws.

    The normaliser's integral is over the envelope, but plain envelope draws are overfitted where the latents are
    concentrated; half of the draws are therefore taken around data points, with importance weights.
    """
    latents = latents.double().cpu()
    mean = latents.mean(0)
    factor = _envelope_factor(latents - mean)
    white = torch.linalg.solve_triangular(factor, (latents - mean).T, upper=False).T
    b = length_scale or median_length_scale(white, generator)
    fmap = draw_map(n_features, latents.shape[1], b, generator, scheme)

    draws, log_importance = _proposal(white, n_draws, generator)
    weights = _maximise_posterior(
        features(fmap, white).mean(0), features(fmap, draws), log_importance, prior_precision / len(white)
    )
    log_normaliser, error = _log_normaliser(fmap, weights, white, n_fresh, generator)

    inverse = torch.linalg.inv(factor)
    frequencies = fmap.frequencies @ inverse
    folded = FourierMap(frequencies, fmap.phases - frequencies @ mean)
    precision = inverse.T @ inverse
    return Tilt(folded, weights, mean, factor, precision, log_normaliser, error)


def _envelope_factor(centred: Float[Tensor, "N d"]) -> Float[Tensor, "d d"]:
    covariance = centred.T @ centred / max(len(centred) - 1, 1)
    ridge = 1e-4 * covariance.diagonal().mean() + 1e-12
    return torch.linalg.cholesky(covariance + ridge * torch.eye(len(covariance), dtype=covariance.dtype))


def _proposal(
    white: Float[Tensor, "N d"], n_draws: int, generator: torch.Generator, n_centres: int = 1000
) -> tuple[Float[Tensor, "K d"], Float[Tensor, " K"]]:
    """Draw half from N(0, I), half around data points; return the draws and log N / log mixture."""
    d = white.shape[1]
    centres = white[torch.randperm(len(white), generator=generator)[:n_centres]]
    bandwidth = (4 / (d + 2)) ** (1 / (d + 4)) * len(centres) ** (-1 / (d + 4))
    noise = torch.randn(n_draws, d, generator=generator, dtype=white.dtype)
    half = n_draws // 2
    picks = torch.randint(len(centres), (n_draws - half,), generator=generator)
    draws = torch.cat([noise[:half], centres[picks] + bandwidth * noise[half:]])
    log_normal = -0.5 * draws.square().sum(1) - 0.5 * d * math.log(2 * math.pi)
    log_kernel = torch.cat([_log_kernel_mean(part, centres, bandwidth) for part in draws.split(10_000)])
    return draws, log_normal - torch.logaddexp(log_normal, log_kernel) + math.log(2)


def _log_kernel_mean(
    points: Float[Tensor, "K d"], centres: Float[Tensor, "C d"], bandwidth: float
) -> Float[Tensor, " K"]:
    d = points.shape[1]
    squares = torch.cdist(points, centres).square()
    constant = math.log(len(centres)) + d * math.log(bandwidth) + 0.5 * d * math.log(2 * math.pi)
    return torch.logsumexp(-0.5 * squares / bandwidth**2, 1) - constant


def _maximise_posterior(
    data_mean: Float[Tensor, " S"],
    draws: Float[Tensor, "K S"],
    log_importance: Float[Tensor, " K"],
    ridge: float,
    tolerance: float = 1e-6,
    max_steps: int = 50,
) -> Float[Tensor, " S"]:
    """Damped Newton on the strictly concave objective L(w)/N, from w = 0."""
    w = torch.zeros_like(data_mean)
    eye = torch.eye(len(w), dtype=w.dtype)

    def objective(w: Tensor) -> Tensor:
        return -0.5 * ridge * w @ w + w @ data_mean - torch.logsumexp(draws @ w + log_importance, 0)

    value = objective(w)
    for _ in range(max_steps):
        q = torch.softmax(draws @ w + log_importance, 0)
        mean = q @ draws
        gradient = data_mean - mean - ridge * w
        hessian = (draws * q.unsqueeze(1)).T @ draws - torch.outer(mean, mean) + ridge * eye
        direction = torch.cholesky_solve(gradient.unsqueeze(1), torch.linalg.cholesky(hessian)).squeeze(1)
        decrement = float(gradient @ direction)
        if decrement < tolerance:
            break
        step = 1.0
        while (trial := objective(w + step * direction)) < value + 0.1 * step * decrement and step > 1e-6:
            step /= 2
        w, value = w + step * direction, trial
    return w


def _log_normaliser(
    fmap: FourierMap,
    weights: Float[Tensor, " S"],
    white: Float[Tensor, "N d"],
    n: int,
    generator: torch.Generator,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """log Z on fresh draws, and its standard error by the delta method."""
    draws, log_importance = _proposal(white, n, generator)
    log_terms = torch.cat([features(fmap, part) @ weights for part in draws.split(20_000)]) + log_importance
    log_mean = torch.logsumexp(log_terms, 0) - math.log(n)
    relative = (log_terms - log_mean).exp()
    return log_mean, relative.std() / math.sqrt(n)
