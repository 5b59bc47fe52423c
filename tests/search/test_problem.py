import torch

from gpae.search.problem import Problem, Surface, kkt_residual, linearise, objective


def test_the_gradient_of_the_objective_is_that_of_automatic_differentiation(surface: Surface, problem: Problem) -> None:
    u = (problem.x + 0.05).clamp(problem.lower, problem.upper).requires_grad_()
    value, h = objective(surface, problem, u)
    (grad_f,) = torch.autograd.grad(value.sum(), u, retain_graph=True)
    (grad_h,) = torch.autograd.grad(h.sum(), u)
    point = linearise(surface, problem, u.detach())
    pull = torch.bmm(point.score.unsqueeze(1), point.jacobian).squeeze(1)
    torch.testing.assert_close(u.detach() - problem.x - problem.beta.unsqueeze(1) * pull, grad_f)
    theta = surface.model.theta.expand(len(u), -1)
    torch.testing.assert_close(torch.bmm(theta.unsqueeze(1), point.jacobian).squeeze(1), grad_h)


def test_the_residual_vanishes_at_a_brute_force_optimum_in_two_dimensions() -> None:
    """A linear model: the answer is the projection onto the line, and the residual knows it."""
    from gpae.numerics.autoencoder import AutoEncoder
    from gpae.numerics.density import Tilt
    from gpae.numerics.fourier import FourierMap

    # sin is linear near zero: cos(z'x - pi/2) with a tiny z and a large weight
    eye, scale = torch.eye(2, dtype=torch.float64), 1e-4
    encoder = FourierMap(scale * eye, torch.full((2,), -torch.pi / 2, dtype=torch.float64))
    model = AutoEncoder(
        encoder, eye / scale, encoder, eye, torch.ones(2, dtype=torch.float64), torch.tensor(-1.0).double()
    )
    flat = Tilt(encoder, torch.zeros(2).double(), torch.zeros(2).double(), eye, eye, *torch.zeros(2).double())
    x = torch.tensor([[0.1, 0.3]], dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    problem = Problem(x, 0 * x, 0 * x + 1, 0 * one, one, 0 * one)
    answer = torch.tensor([[0.4, 0.6]], dtype=torch.float64)
    residual, eta = kkt_residual(Surface(model, flat), problem, linearise(Surface(model, flat), problem, answer))
    assert float(residual) < 1e-6
    assert float(eta) < 0
    off = linearise(Surface(model, flat), problem, torch.tensor([[0.5, 0.5]], dtype=torch.float64))
    assert float(kkt_residual(Surface(model, flat), problem, off)[0]) > 0.05
