"""The GPU's kernels, by Triton's interpreter where there is no GPU: the same answers as on the processor."""

import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

pytest.importorskip("triton", reason="Triton is not installed")

from gpae.kernels import gpu
from gpae.kernels.gpu import Slots
from gpae.kernels.gpu_descent import Descent
from gpae.kernels.lanes import Walked
from gpae.search import newton
from gpae.search.problem import Problem, Surface, objective
from tests.kernels.test_lanes import drawn, refused

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module")
def surface() -> Surface:
    return drawn(40, 5, 2, density_features=12)


@pytest.fixture(scope="module")
def problem(surface: Surface) -> Problem:
    return refused(surface, 150)


@pytest.fixture(scope="module")
def walked(surface: Surface, problem: Problem) -> Walked:
    """More rows than slots: the queue is used."""
    patch = pytest.MonkeyPatch()
    if DEVICE == "cpu":
        patch.setattr(gpu.Run, "until_done", lambda run: [run.turn() for _ in _turns(run)])
    slots = Slots.of(surface.model, surface.density, DEVICE)
    assert slots is not None
    found = slots.solve(problem.tensors(), tolerance=3e-4, iterations=30, slots=128)
    patch.undo()
    return found


def _turns(run: gpu.Run):
    turn = 0
    while int(run.progress[1]) < run.total:
        assert turn < 150, "the rows do not end"
        yield turn
        turn += 1


def test_every_row_has_an_answer_on_the_boundary(surface: Surface, problem: Problem, walked: Walked) -> None:
    assert walked.converged.double().mean() > 0.95
    u = walked.u.double()
    assert ((u >= problem.lower - 1e-6) & (u <= problem.upper + 1e-6)).all()
    _, h = objective(surface, problem, u)
    assert (h[walked.converged].abs() < 1e-4).all()


def test_answers_are_those_of_the_processor(surface: Surface, problem: Problem, walked: Walked) -> None:
    expected = newton.solve(surface, problem)
    value, _ = objective(surface, problem, walked.u.double())
    close = (value - expected.objective).abs() <= 1e-3 * expected.objective.abs().clamp(min=1)
    assert (close | (value < expected.objective)).double().mean() >= 0.9
    here, there = ((u - problem.x).norm(dim=1)[close].mean() for u in (walked.u.double(), expected.u))
    assert abs(float(here) - float(there)) < 1e-3


@pytest.mark.skipif(DEVICE == "cpu", reason="the interpreter knows no fast sine")
def test_the_alternating_updates_are_those_of_torch(surface: Surface, problem: Problem) -> None:
    iterations, step_delta, step_eta = 15, 0.05, 0.05
    model, density = surface.model, surface.density
    x, lower, upper, beta, sign, margin = problem.tensors()
    u, eta = x, torch.zeros_like(beta)
    for _ in range(iterations):
        phase = x.new_tensor(0.0) + u @ model.encoder.frequencies.T + model.encoder.phases
        W = model.encoder.amplitude * model.encoder_weights
        latent = phase.cos() @ W
        h = sign * (latent @ model.theta + model.theta0) - margin
        inner = latent @ density.fmap.frequencies.T + density.fmap.phases
        pull = -inner.sin() * density.fmap.amplitude * density.weights
        score = pull @ density.fmap.frequencies - (latent - density.mean) @ density.precision
        along = (eta * sign)[:, None] * model.theta - beta[:, None] * score
        gradient = u - x + (-phase.sin() * (along @ W.T)) @ model.encoder.frequencies
        u, eta = (u - step_delta * gradient).clamp(lower, upper), eta + step_eta * h
    rows = tuple(part.to(DEVICE, torch.float32) for part in problem.tensors())
    fast, fast_eta = Descent.of(model, density, DEVICE).descend(
        rows, iterations=iterations, step_delta=step_delta, step_eta=step_eta
    )
    assert float((fast.cpu() - u).norm() / (u - x).norm()) < 2e-2  # the maps are in half precision
    assert float((fast_eta.cpu() - eta).norm() / eta.norm()) < 2e-2
    assert torch.equal(fast.cpu()[:, -1], x[:, -1].float())
