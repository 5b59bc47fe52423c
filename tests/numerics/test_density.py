import math

import pytest
import torch
from torch.autograd.functional import hessian, jacobian

from gpae.numerics.density import Tilt, curvature, fit_tilt, log_density, log_envelope, score


def two_moons_like(n: int, d: int, seed: int = 0) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    side = torch.randint(2, (n, 1), generator=g).double() * 2 - 1
    return torch.cat([1.5 * side, -0.5 * side, *[0 * side] * (d - 2)], 1) + 0.4 * torch.randn(
        n, d, generator=g, dtype=torch.float64
    )


@pytest.fixture(scope="module")
def tilt() -> Tilt:
    return fit_tilt(two_moons_like(2000, 2), torch.Generator().manual_seed(0), n_features=200)


def test_the_density_integrates_to_one_by_quadrature(tilt: Tilt) -> None:
    axis = torch.linspace(-6, 6, 401, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    integral = log_density(tilt, grid).exp().sum() * (axis[1] - axis[0]) ** 2
    assert float(integral) == pytest.approx(1.0, abs=0.02)


def test_the_envelope_is_the_gaussian_of_the_latents(tilt: Tilt) -> None:
    covariance = tilt.factor @ tilt.factor.T
    exact = torch.distributions.MultivariateNormal(tilt.mean, covariance).log_prob(two_moons_like(50, 2, 9))
    torch.testing.assert_close(log_envelope(tilt, two_moons_like(50, 2, 9)), exact)


def test_held_out_rows_are_likelier_than_under_the_envelope(tilt: Tilt) -> None:
    fresh = two_moons_like(3000, 2, seed=5)
    assert log_density(tilt, fresh).mean() > log_envelope(tilt, fresh).mean() + 0.3


def test_score_and_curvature_agree_with_automatic_differentiation(tilt: Tilt) -> None:
    point = torch.tensor([0.3, -0.8], dtype=torch.float64)

    def one(z: torch.Tensor) -> torch.Tensor:
        return log_density(tilt, z.unsqueeze(0))[0]

    torch.testing.assert_close(score(tilt, point.unsqueeze(0))[0], jacobian(one, point))
    torch.testing.assert_close(curvature(tilt, point.unsqueeze(0))[0], hessian(one, point))


def test_the_normaliser_agrees_with_plain_envelope_draws_within_their_errors() -> None:
    tilt = fit_tilt(two_moons_like(1500, 4), torch.Generator().manual_seed(0), n_features=150)
    assert float(tilt.normaliser_error) <= 0.02
    noise = torch.randn(400_000, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    draws = noise @ tilt.factor.T + tilt.mean
    terms = log_density(tilt, draws) - log_envelope(tilt, draws)
    assert float(torch.logsumexp(terms, 0) - math.log(len(terms))) == pytest.approx(0.0, abs=0.05)


def test_the_weights_are_the_maximum_of_the_posterior(tilt: Tilt) -> None:
    """The gradient of the corrected objective (E8) vanishes there, up to Monte-Carlo error."""
    from gpae.numerics.fourier import features

    data = two_moons_like(2000, 2)
    noise = torch.randn(400_000, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    phi = features(tilt.fmap, noise @ tilt.factor.T + tilt.mean)
    q = torch.softmax(phi @ tilt.weights, 0)
    gradient = features(tilt.fmap, data).mean(0) - q @ phi - tilt.weights / len(data)
    at_zero = features(tilt.fmap, data).mean(0) - phi.mean(0)
    assert gradient.norm() < 0.25 * at_zero.norm()
