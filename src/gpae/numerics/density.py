"""The latent density p(l) = exp(w'phi(l)) N(l | mu, Sigma) / Z: values, derivatives and its MAP fit.

The latents are whitened first (t = L^-1 (l - mu), Sigma = LL'), the map is drawn in the whitened space and folded
back, so that every function below takes latents as they come.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.numerics.aligned import product
from gpae.numerics.fourier import FourierMap, Scheme, draw_map, features, median_length_scale, slopes

_CENTRES = 1000
_BLOCK = 256
_MAX_ROUNDS = 6
_ERROR = 0.01
"""Standard error of log Z on fresh draws at which the fit is believed."""
_TAILS = 2.5
"""Standard deviations of the wide Gaussian among the proposals."""

__all__ = [
    "Tilt",
    "curvature",
    "fit_tilt",
    "log_density",
    "log_envelope",
    "log_mean",
    "proposal",
    "resample",
    "score",
]


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
    quadratic = (product(centred, tilt.precision) * centred).sum(1)
    log_volume = 2 * tilt.factor.diagonal().log().sum() + latent.shape[1] * math.log(2 * math.pi)
    return -0.5 * (quadratic + log_volume)


def log_density(tilt: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, " B"]:
    """log p(l), normalised."""
    return features(tilt.fmap, latent) @ tilt.weights + log_envelope(tilt, latent) - tilt.log_normaliser


def score(tilt: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
    """grad_l log p(l) (E10: the term in mu has factor one)."""
    pull = product(slopes(tilt.fmap, latent) * tilt.weights, tilt.fmap.frequencies)
    return pull - product(latent - tilt.mean, tilt.precision)


def curvature(tilt: Tilt, latent: Float[Tensor, "B d"]) -> Float[Tensor, "B d d"]:
    """Hessian of log p at each latent."""
    d = latent.shape[1]
    outer = (tilt.fmap.frequencies.unsqueeze(2) * tilt.fmap.frequencies.unsqueeze(1)).flatten(1)
    return -product(features(tilt.fmap, latent) * tilt.weights, outer).unflatten(1, (d, d)) - tilt.precision


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
    concentrated. So draws are also taken in the tails and around data points, with importance weights, and the fit is
    repeated with draws around points of the density itself until fresh draws give the normaliser that it believed in.
    """
    latents = latents.double().cpu()
    mean = latents.mean(0)
    factor = _envelope_factor(latents - mean)
    white = torch.linalg.solve_triangular(factor, (latents - mean).T, upper=False).T
    b = length_scale or median_length_scale(white, generator)
    fmap = draw_map(n_features, latents.shape[1], b, generator, scheme)

    data_mean, ridge = features(fmap, white).mean(0), prior_precision / len(white)
    weights = torch.zeros(n_features, dtype=white.dtype)
    centres = _sample(white, _CENTRES, generator)
    for _ in range(_MAX_ROUNDS):
        draws, log_importance = proposal(centres, n_draws, generator)
        phi = features(fmap, draws)
        weights = _maximise_posterior(weights, data_mean, phi, log_importance, ridge)
        seen = torch.logsumexp(phi @ weights + log_importance, 0) - math.log(len(draws))
        fresh, log_importance = proposal(centres, n_fresh, generator)
        log_terms = torch.cat([features(fmap, part) @ weights for part in fresh.split(20_000)]) + log_importance
        log_normaliser, error = log_mean(log_terms)
        # a spike that the fit's own draws missed shows in the fresh ones: look there in the next round
        if error < _ERROR and (log_normaliser - seen).abs() < 5 * _ERROR:
            break
        centres = torch.cat([_sample(white, _CENTRES // 2, generator), resample(fresh, log_terms, generator)])

    inverse = torch.linalg.inv(factor)
    frequencies = fmap.frequencies @ inverse
    folded = FourierMap(frequencies, fmap.phases - frequencies @ mean)
    precision = inverse.T @ inverse
    return Tilt(folded, weights, mean, factor, precision, log_normaliser, error)


def _envelope_factor(centred: Float[Tensor, "N d"]) -> Float[Tensor, "d d"]:
    covariance = centred.T @ centred / max(len(centred) - 1, 1)
    ridge = 1e-4 * covariance.diagonal().mean() + 1e-12
    return torch.linalg.cholesky(covariance + ridge * torch.eye(len(covariance), dtype=covariance.dtype))


def _sample(points: Float[Tensor, "N d"], n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
    return points[torch.randperm(len(points), generator=generator)[:n]]


def resample(
    draws: Float[Tensor, "K d"], log_weight: Float[Tensor, " K"], generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draws where the tilted density has its mass."""
    weight = torch.softmax(log_weight, 0)
    return draws[torch.multinomial(weight, _CENTRES // 2, replacement=True, generator=generator)]


def proposal(
    centres: Float[Tensor, "C d"], n_draws: int, generator: torch.Generator
) -> tuple[Float[Tensor, "K d"], Float[Tensor, " K"]]:
    """Draw a quarter each from N(0, I), from its tails, near and very near the centres.

    Returns the draws and log N - log mixture. Without the tails the fit can raise spikes where no draw looks.
    """
    d = centres.shape[1]
    wide = (4 / (d + 2)) ** (1 / (d + 4)) * len(centres) ** (-1 / (d + 4))
    quarter = math.ceil(n_draws / 4)
    noise = torch.randn(4, quarter, d, generator=generator, dtype=centres.dtype)
    around = centres[torch.randint(len(centres), (2, quarter), generator=generator)]
    draws = torch.cat([noise[0], _TAILS * noise[1], around[0] + wide * noise[2], around[1] + wide / 4 * noise[3]])
    squares = draws.square().sum(1)
    normals = torch.stack([-0.5 * squares / b**2 - _log_volume(b, d) for b in (1.0, _TAILS)], 1)
    volumes = torch.tensor([_log_volume(b, d) for b in (wide, wide / 4)], dtype=draws.dtype)
    log_mixture = torch.logsumexp(torch.cat([normals, _log_kernel_means(draws, centres, wide) - volumes], 1), 1)
    return draws, normals[:, 0] - log_mixture + math.log(4)


def _log_volume(bandwidth: float, d: int) -> float:
    return d * math.log(bandwidth) + 0.5 * d * math.log(2 * math.pi)


def _log_kernel_means(
    points: Float[Tensor, "K d"], centres: Float[Tensor, "C d"], bandwidth: float
) -> Float[Tensor, "K 2"]:
    """log mean_c exp(-|p - c|^2 / 2b^2), and the same for b / 4, whose kernel is the other's sixteenth power.

    In blocks that stay in the cache. A kernel too small to be written counts as none.
    """
    points, centres = points / bandwidth, centres / bandwidth
    offsets, means = -0.5 * centres.square().sum(1), []
    for part in points.split(_BLOCK):
        kernel = torch.addmm(offsets, part, centres.T).sub_(0.5 * part.square().sum(1, keepdim=True))
        kernel = kernel.clamp_(max=0).exp_()
        wide = kernel.mean(1)
        for _ in range(4):
            kernel.square_()
        means.append(torch.stack([wide, kernel.mean(1)], 1))
    return torch.cat(means).log()


def _maximise_posterior(
    w: Float[Tensor, " S"],
    data_mean: Float[Tensor, " S"],
    draws: Float[Tensor, "K S"],
    log_importance: Float[Tensor, " K"],
    ridge: float,
    tolerance: float = 1e-6,
    max_steps: int = 50,
) -> Float[Tensor, " S"]:
    """Damped Newton on the strictly concave objective L(w)/N, from ``w``."""
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


def log_mean(log_terms: Float[Tensor, " K"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """log of the mean of exp(terms), and its standard error by the delta method."""
    n = len(log_terms)
    log_mean = torch.logsumexp(log_terms, 0) - math.log(n)
    return log_mean, (log_terms - log_mean).exp().std() / math.sqrt(n)
