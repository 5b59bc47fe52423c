from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from gpae.kernels.lanes import Lanes, Walked
from gpae.search import compiled, newton, reference
from gpae.search.problem import Problem, Surface, objective


def test_newton_meets_constraint_bounds_and_optimality(surface: Surface, problem: Problem) -> None:
    s = newton.solve(surface, problem)
    assert (s.violation <= 1e-4).double().mean() >= 0.99
    assert (s.kkt <= 1e-3).double().mean() >= 0.99
    assert (s.u >= problem.lower).all()
    assert (s.u <= problem.upper).all()


def test_newton_never_touches_an_immutable_column(surface: Surface, problem: Problem) -> None:
    assert torch.equal(newton.solve(surface, problem).u[:, 4], problem.x[:, 4])
    assert torch.equal(reference.solve(surface, problem, n_iterations=50).u[:, 4], problem.x[:, 4])


def test_newton_spends_few_iterations(surface: Surface, problem: Problem) -> None:
    """A budget of counted work: a lost speed-up fails here without a clock."""
    iterations = newton.solve(surface, problem).iterations.double()
    assert iterations.median() <= 10
    assert iterations.quantile(0.99) <= 30


def test_newton_is_no_worse_than_the_papers_alternating_updates(surface: Surface, problem: Problem) -> None:
    fast, slow = newton.solve(surface, problem), reference.solve(surface, problem, n_iterations=3000)
    reached = slow.violation <= 1e-4
    assert reached.double().mean() > 0.9
    allowance = 1e-3 * slow.objective.abs().clamp(min=1)
    assert (fast.objective <= slow.objective + allowance)[reached].double().mean() >= 0.95


def test_newton_agrees_with_a_general_purpose_solver(surface: Surface, problem: Problem) -> None:
    """SLSQP from the same answer cannot improve on it, and from the row itself rarely finds better."""
    solution = newton.solve(surface, problem)
    for i in range(6):
        one = problem.rows(torch.tensor([i]))

        def f(u: np.ndarray, one: Problem = one) -> float:
            return float(objective(surface, one, torch.tensor(u).unsqueeze(0))[0])

        def h(u: np.ndarray, one: Problem = one) -> float:
            return float(objective(surface, one, torch.tensor(u).unsqueeze(0))[1])

        bounds = list(zip(one.lower[0].tolist(), one.upper[0].tolist(), strict=True))
        constraint = {"type": "eq", "fun": h}
        peer = minimize(f, solution.u[i].numpy(), method="SLSQP", bounds=bounds, constraints=constraint)
        assert float(solution.objective[i]) <= peer.fun + 1e-4


def test_looser_bounds_never_worsen_the_objective_by_much(surface: Surface, problem: Problem) -> None:
    """Metamorphic: what is allowed in a smaller box is allowed in a larger one (local minima apart)."""
    tight = Problem(
        problem.x,
        torch.maximum(problem.lower, problem.x - 0.3),
        torch.minimum(problem.upper, problem.x + 0.3),
        problem.beta,
        problem.sign,
        problem.margin,
    )
    small, large = newton.solve(surface, tight), newton.solve(surface, problem)
    comparable = small.violation <= 1e-6
    assert (large.objective <= small.objective + 1e-3)[comparable].double().mean() > 0.97


def test_more_weight_on_the_density_gives_denser_answers(surface: Surface, problem: Problem) -> None:
    from gpae.numerics.autoencoder import encode
    from gpae.numerics.density import log_density

    means = []
    for beta in (0.0, 0.05, 0.5):
        weighted = Problem(
            problem.x, problem.lower, problem.upper, 0 * problem.beta + beta, problem.sign, problem.margin
        )
        means.append(
            float(log_density(surface.density, encode(surface.model, newton.solve(surface, weighted).u)).mean())
        )
    assert means[0] < means[1] < means[2]


def test_a_row_gets_the_same_bits_alone_and_in_a_batch(surface: Surface, problem: Problem) -> None:
    whole = newton.solve(surface, problem)
    some = torch.tensor([3, 77, 12])
    assert torch.equal(newton.solve(surface, problem.rows(some)).u, whole.u[some])


def test_what_a_gpu_returns_in_single_precision_is_widened(
    surface: Surface, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU's rows are single, and rounded bounds may lie outside the exact ones."""
    walk = compiled.walker(surface)
    if walk is None:
        pytest.skip("nothing is compiled here")
    exact, solve = walk.descend(problem, None, compiled.COARSE), Lanes.solve

    def roughly(self: Lanes, *given: Any, **asked: Any) -> Walked:
        walked = solve(self, *given, **asked)
        if self is not walk.single:
            return walked
        rough = {name: getattr(walked, name).float() for name in ("objective", "h", "kkt")}
        return walked._replace(u=walked.u.float() + 1e-6, **rough)

    monkeypatch.setattr(Lanes, "solve", roughly)
    for tolerance in (compiled.COARSE, 3e-4):
        solution = walk.descend(problem, None, tolerance)
        assert solution.u.dtype == solution.objective.dtype == torch.float64
        assert ((solution.u >= problem.lower) & (solution.u <= problem.upper)).all()
        torch.testing.assert_close(solution.u, exact.u, atol=1e-2, rtol=0)
