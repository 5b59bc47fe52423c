import math

import pytest
import torch

from gpae.numerics.boundary import boundary
from gpae.numerics.density import fit_tilt, log_density
from gpae.numerics.divergence import kl_divergence, literal_divergence, log_mixture, slice_log_normaliser

THETA = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
BIAS = torch.tensor(0.7, dtype=torch.float64)


def test_lifted_points_lie_on_the_boundary_with_its_margin() -> None:
    plane = boundary(THETA, BIAS, 0.3)
    gamma = torch.randn(20, 2, dtype=torch.float64)
    torch.testing.assert_close(plane.lift(gamma) @ THETA + BIAS, torch.full((20,), 0.3, dtype=torch.float64))


def test_projecting_undoes_lifting_and_the_basis_is_orthonormal() -> None:
    plane = boundary(THETA, BIAS)
    gamma = torch.randn(20, 2, dtype=torch.float64)
    torch.testing.assert_close(plane.project(plane.lift(gamma)), gamma)
    torch.testing.assert_close(plane.basis.T @ plane.basis, torch.eye(2, dtype=torch.float64))


def test_a_one_dimensional_latent_space_has_no_boundary_coordinates() -> None:
    with pytest.raises(ValueError, match="latent_dim >= 2"):
        boundary(THETA[:1], BIAS)


def test_the_mixture_agrees_with_torch_distributions() -> None:
    centres = torch.randn(7, 2, dtype=torch.float64)
    mixture = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(torch.ones(7, dtype=torch.float64)),
        torch.distributions.Independent(torch.distributions.Normal(centres, torch.tensor(0.4).double()), 1),
    )
    points = torch.randn(11, 2, dtype=torch.float64)
    torch.testing.assert_close(log_mixture(points, centres, 0.4), mixture.log_prob(points))


def bent_latents():
    latents = torch.randn(1500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    latents[:, 1] += 0.7 * latents[:, 0].square()
    return latents


def latent_tilt():
    return fit_tilt(bent_latents(), torch.Generator().manual_seed(1), n_features=150)


def log_slice(tilt, plane):
    return slice_log_normaliser(tilt, plane, bent_latents(), torch.Generator().manual_seed(2))


def test_the_density_on_the_boundary_integrates_to_one() -> None:
    tilt, plane = latent_tilt(), boundary(THETA[:2], BIAS)
    log_z, error = log_slice(tilt, plane)
    gamma = torch.linspace(-12, 12, 4001, dtype=torch.float64).unsqueeze(1)
    integral = (log_density(tilt, plane.lift(gamma)) - log_z).exp().sum() * (gamma[1, 0] - gamma[0, 0])
    assert float(error) < 0.01
    assert float(integral) == pytest.approx(1.0, abs=4 * float(error))


def test_the_slice_through_a_cluster_that_plain_draws_miss_integrates_to_one() -> None:
    """A narrow cluster in a wide envelope: the tilt is high where few draws of the envelope look."""
    g = torch.Generator().manual_seed(0)
    wide = 3 * torch.randn(300, 2, generator=g, dtype=torch.float64)
    narrow = 0.05 * torch.randn(3000, 2, generator=g, dtype=torch.float64) + torch.tensor([0.0, 4.0])
    latents = torch.cat([wide, narrow])
    tilt = fit_tilt(latents, torch.Generator().manual_seed(1), n_features=300, length_scale=0.3)
    plane = boundary(torch.tensor([1.0, 0.0], dtype=torch.float64), torch.zeros((), dtype=torch.float64))
    estimates = [slice_log_normaliser(tilt, plane, latents, torch.Generator().manual_seed(s)) for s in (2, 3, 4)]
    gamma = torch.linspace(-30, 30, 20001, dtype=torch.float64).unsqueeze(1)
    exact = float((log_density(tilt, plane.lift(gamma)).exp().sum() * (gamma[1, 0] - gamma[0, 0])).log())
    for log_z, error in estimates:
        assert float(error) < 0.03
        assert float(log_z) == pytest.approx(exact, abs=4 * float(error))


def test_the_divergence_agrees_with_quadrature() -> None:
    tilt, plane = latent_tilt(), boundary(THETA[:2], BIAS)
    log_z, _ = log_slice(tilt, plane)
    g = torch.Generator().manual_seed(3)
    centres = 0.5 * torch.randn(60, 1, generator=g, dtype=torch.float64) + 0.2
    noise = torch.randn(60, 400, 1, generator=g, dtype=torch.float64)
    estimate, error = kl_divergence(tilt, plane, centres, noise, 0.3, log_z)
    gamma = torch.linspace(-6, 6, 4001, dtype=torch.float64).unsqueeze(1)
    log_q = log_mixture(gamma, centres, 0.3)
    log_p = log_density(tilt, plane.lift(gamma)) - log_z
    exact = float((log_q.exp() * (log_q - log_p)).sum() * (gamma[1, 0] - gamma[0, 0]))
    assert estimate == pytest.approx(exact, abs=max(4 * error, 0.02))
    assert estimate > 0


def test_algorithm_3_as_printed_sees_only_the_centroid() -> None:
    """E15: two sets of counterfactuals with the same mean and another spread look alike to it."""
    tilt, plane = latent_tilt(), boundary(THETA[:2], BIAS)
    noise = torch.randn(400, 200, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    spread = torch.linspace(-1, 1, 400, dtype=torch.float64).unsqueeze(1)

    def log_p_seen(scale: float) -> float:
        value, _ = literal_divergence(tilt, plane, scale * spread, noise, 0.3)
        mean = (scale * spread.unsqueeze(1) + 0.3 * noise).mean(0)
        return value - float(log_mixture(mean, scale * spread, 0.3).mean())

    assert log_p_seen(1.0) == pytest.approx(log_p_seen(0.3), abs=0.01)
    assert math.isfinite(log_p_seen(1.0))
