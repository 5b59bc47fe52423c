"""Gaussians with independent entries against torch's own."""

import torch
from torch.distributions import Independent, Normal, kl_divergence

from gpae.numerics.gaussian import Gaussian


def gaussian(seed: int) -> Gaussian:
    generator = torch.Generator().manual_seed(seed)
    return Gaussian(torch.randn(5, 3, generator=generator), torch.rand(5, 3, generator=generator) + 0.1)


def test_the_divergence_is_the_one_of_torch_distributions() -> None:
    p, q = gaussian(0), gaussian(1)
    for other, mean, std in ((q, q.mean, q.std), (None, torch.zeros(5, 3), torch.ones(5, 3))):
        exact = kl_divergence(Independent(Normal(p.mean, p.std), 1), Independent(Normal(mean, std), 1))
        torch.testing.assert_close(p.divergence(other), exact)
    torch.testing.assert_close(p.divergence(p), torch.zeros(5), atol=1e-6, rtol=0.0)


def test_draws_have_the_mean_and_the_spread_and_come_from_the_generator() -> None:
    one = Gaussian(torch.full((20_000, 2), 3.0), torch.tensor([[0.5, 2.0]]).expand(20_000, 2))
    drawn = one.draw(torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.mean(0), torch.tensor([3.0, 3.0]), atol=0.05, rtol=0.0)
    torch.testing.assert_close(drawn.std(0), torch.tensor([0.5, 2.0]), atol=0.05, rtol=0.0)
    torch.testing.assert_close(drawn, one.draw(torch.Generator().manual_seed(0)))


def test_gradients_pass_through_a_draw() -> None:
    mean = torch.zeros(4, 2, requires_grad=True)
    Gaussian(mean, torch.ones(4, 2)).draw(torch.Generator().manual_seed(0)).sum().backward()
    torch.testing.assert_close(mean.grad, torch.ones(4, 2))
