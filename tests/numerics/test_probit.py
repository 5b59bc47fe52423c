import math

import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from gpae.numerics.probit import (
    Coefficients,
    averaging_rate,
    bound,
    evidence,
    hidden_mean,
    inverse_mills,
    predictive,
    prior,
    score,
    stepped,
    sweep,
)

PRIOR = prior(3, 10.0)


def labelled(n: int = 400, d: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Latents and labels from the model itself, with theta = (1, -2, 0, ...) and theta_0 = 1/2."""
    g = torch.Generator().manual_seed(seed)
    latent = torch.randn(n, d, generator=g, dtype=torch.float64)
    theta = torch.tensor([1.0, -2.0, *[0.0] * (d - 2)], dtype=torch.float64)[:d]
    noise = torch.randn(n, generator=g, dtype=torch.float64)
    return latent, (latent @ theta + 0.5 + noise).sign()


def fitted(n_sweeps: int = 300) -> Coefficients:
    q = PRIOR
    for _ in range(n_sweeps):
        q = sweep(q, *labelled(), PRIOR)
    return q


def test_the_inverse_mills_ratio_is_right_and_finite_in_both_tails() -> None:
    u = torch.tensor([-40.0, -8.0, -1.0, 0.0, 0.5, 6.0, 40.0], dtype=torch.float64)
    exact = torch.as_tensor(norm.logpdf(u.numpy()) - norm.logcdf(u.numpy())).exp()
    torch.testing.assert_close(inverse_mills(u), exact, rtol=1e-10, atol=1e-300)
    assert float(inverse_mills(u)[0]) == pytest.approx(40 + 1 / 40, abs=1e-4)


@pytest.mark.parametrize("xi", [-6.0, -1.3, 0.0, 0.7, 5.0])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_the_hidden_variable_has_the_mean_of_its_truncated_normal(xi: float, y: float) -> None:
    ends = (0.0, max(y * xi, 0.0) + 12.0)
    mass = quad(lambda a: norm.pdf(y * a - xi), *ends, epsabs=0, limit=200)[0]
    mean = quad(lambda a: y * a * norm.pdf(y * a - xi), *ends, epsabs=0, limit=200)[0] / mass
    value = hidden_mean(torch.tensor([xi], dtype=torch.float64), torch.tensor([y], dtype=torch.float64))
    assert float(value) == pytest.approx(mean, rel=1e-7)


def test_no_sweep_lowers_the_bound_and_the_first_ones_raise_it() -> None:
    latent, y = labelled()
    q, values = PRIOR, [float(bound(PRIOR, latent, y, PRIOR))]
    for _ in range(200):
        q = sweep(q, latent, y, PRIOR)
        values.append(float(bound(q, latent, y, PRIOR)))
    steps = torch.tensor(values).double().diff()
    assert float(steps.min()) > -1e-9
    assert values[10] > values[0] + 10


def test_the_bound_lies_below_the_evidence_and_not_far_below() -> None:
    """One latent, so that the evidence is an integral over a plane."""
    latent, y = labelled(20, 1)
    start = prior(1, 10.0)
    q = start
    for _ in range(300):
        q = sweep(q, latent, y, start)
    axis = torch.linspace(-12, 12, 801, dtype=torch.float64)
    theta, bias = torch.meshgrid(axis, axis, indexing="ij")
    log_joint = -0.5 * theta.square() - 0.5 * bias.square() / 10 - math.log(2 * math.pi) - 0.5 * math.log(10)
    for row, label in zip(latent[:, 0], y, strict=True):
        log_joint = log_joint + torch.special.log_ndtr(label * (theta * row + bias))
    exact = float(torch.logsumexp(log_joint.flatten(), 0) + 2 * (axis[1] - axis[0]).log())
    assert exact - 2.0 < float(bound(q, latent, y, start)) < exact


def test_the_updates_end_where_the_bound_has_no_slope() -> None:
    latent, y = labelled()
    q = fitted()
    free = [getattr(q, name).clone().requires_grad_() for name in Coefficients.__dataclass_fields__]
    bound(Coefficients(*free), latent, y, PRIOR).backward()
    assert all(float(part.grad.abs().max()) < 1e-6 for part in free)


def test_the_coefficients_are_those_of_the_model_that_drew_the_labels() -> None:
    latent, y = labelled(20_000)
    q = PRIOR
    for _ in range(300):
        q = sweep(q, latent, y, PRIOR)
    expected = torch.tensor([1.0, -2.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(q.theta, expected, atol=0.08, rtol=0)
    assert float(q.bias) == pytest.approx(0.5, abs=0.05)


def test_the_slope_of_the_evidence_is_the_one_in_closed_form() -> None:
    q, (latent, y) = fitted(), labelled(50, seed=3)
    free = latent.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(evidence(q, free, y).sum(), free)
    xi = score(q, latent)
    closed = (hidden_mean(xi, y) - xi).unsqueeze(1) * q.theta - latent @ torch.linalg.inv(q.precision)
    torch.testing.assert_close(gradient, closed)


def test_a_batch_that_stands_for_more_rows_counts_like_its_copies() -> None:
    latent, y = labelled(40)
    scaled = sweep(PRIOR, latent, y, PRIOR, n_rows=120)
    copies = sweep(PRIOR, latent.repeat(3, 1), y.repeat(3), PRIOR)
    for name in Coefficients.__dataclass_fields__:
        torch.testing.assert_close(getattr(scaled, name), getattr(copies, name))


def test_mini_batches_end_near_the_solution_of_all_rows() -> None:
    latent, y = labelled(2000)
    g = torch.Generator().manual_seed(1)
    y = torch.where(torch.rand(len(y), generator=g) < 0.25, -y, y)  # sweeps converge slowly where labels are clear
    exact = PRIOR
    for _ in range(100):
        exact = sweep(exact, latent, y, PRIOR)
    q = PRIOR
    for t in range(1000):
        some = torch.randperm(len(y), generator=g)[:200]
        q = sweep(q, latent[some], y[some], PRIOR, n_rows=len(y), rate=averaging_rate(t))
    assert float((q.theta - exact.theta).norm()) < 0.05 * float(exact.theta.norm())
    torch.testing.assert_close(q.precision, exact.precision, rtol=0.1, atol=30.0)


def test_the_predictive_probability_averages_over_the_coefficients() -> None:
    latent, y = labelled(15)
    q = PRIOR
    for _ in range(100):
        q = sweep(q, latent, y, PRIOR)
    g = torch.Generator().manual_seed(0)
    factor = torch.linalg.cholesky(torch.linalg.inv(q.precision))
    theta = q.theta + torch.randn(200_000, 3, generator=g, dtype=torch.float64) @ factor.T
    bias = q.bias + torch.randn(200_000, generator=g, dtype=torch.float64) / q.bias_precision.sqrt()
    drawn = torch.special.ndtr(latent @ theta.T + bias).mean(1)
    torch.testing.assert_close(predictive(q, latent), drawn, atol=5e-3, rtol=0)


def test_two_steps_mirror_the_score_and_one_ends_on_the_boundary() -> None:
    q, (latent, _) = fitted(), labelled(50, seed=3)
    torch.testing.assert_close(score(q, stepped(q, latent, 2.0)), -score(q, latent), rtol=0, atol=1e-12)
    torch.testing.assert_close(score(q, stepped(q, latent, 1.0)), torch.zeros(50).double(), rtol=0, atol=1e-12)
    away = stepped(q, latent, 2.0) - latent
    assert float((away - (away @ q.theta / q.theta.square().sum()).unsqueeze(1) * q.theta).abs().max()) < 1e-12
