"""Ways in other units: the same search on a stretched surface, and the polish counts ways as it does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpae.search import newton, polish, reference
from gpae.search.problem import Problem, Surface, objective
from gpae.table.layout import Layout
from gpae.table.schema import Integer, Schema

UNITS = torch.tensor([1.0, 4.0, 0.5, 2.0, 1.0, 3.0], dtype=torch.float64)


@pytest.fixture
def units(problem: Problem) -> torch.Tensor:
    D = problem.x.shape[1]
    return UNITS.repeat(-(-D // len(UNITS)))[:D].contiguous()


def test_units_of_one_change_nothing(surface: Surface, problem: Problem) -> None:
    ones = torch.ones(problem.x.shape[1], dtype=torch.float64)
    plain, same = newton.solve(surface, problem), newton.solve(replace(surface, units=ones), problem)
    torch.testing.assert_close(plain.u, same.u)


def test_the_way_is_shorter_in_the_units_it_was_searched_in(
    surface: Surface, problem: Problem, units: torch.Tensor
) -> None:
    problem = replace(problem, beta=torch.zeros_like(problem.beta))
    there, plain = newton.solve(replace(surface, units=units), problem), newton.solve(surface, problem)
    lengths = [((s.u - problem.x) * units).norm(dim=1) for s in (there, plain)]
    assert (there.violation <= 1e-4).double().mean() >= 0.99
    assert (lengths[0] <= lengths[1] + 1e-3).double().mean() > 0.95
    assert float(lengths[0].mean()) < 0.97 * float(lengths[1].mean())
    assert ((there.u >= problem.lower) & (there.u <= problem.upper)).all()
    assert torch.equal(there.u[:, 4], problem.x[:, 4])


def test_the_objective_is_the_one_in_these_units(surface: Surface, problem: Problem, units: torch.Tensor) -> None:
    surface = replace(surface, units=units)
    for solution in (newton.solve(surface, problem), reference.solve(surface, problem, n_iterations=20)):
        value, h = objective(surface, problem, solution.u)
        torch.testing.assert_close(solution.objective, value, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(solution.violation, h.abs(), rtol=1e-6, atol=1e-6)


def test_the_polish_counts_ways_in_these_units_too(
    surface: Surface, problem: Problem, units: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"c{j}" for j in range(problem.x.shape[1])]
    schema = Schema(features=tuple(Integer(name=n, minimum=0, maximum=40) for n in names), label="y", favourable=1)
    layout = Layout.fit(schema, [np.array([0.0, 40.0])] * len(names))
    surface = replace(surface, units=units)
    start = newton.solve(surface, problem).u.clamp(0, 1)
    inside = replace(problem, x=problem.x.clamp(0, 1), lower=problem.lower.clamp(0, 1), upper=problem.upper.clamp(0, 1))
    fast = polish._finish(surface, inside, layout, start)
    value, _ = objective(surface, inside, fast.u)
    torch.testing.assert_close(fast.objective, value, rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(polish, "finisher", lambda surface, layout: None)
    plain = polish._finish(surface, inside, layout, polish._snap(inside, layout, start))
    both = fast.valid & plain.valid
    assert both.double().mean() > 0.5
    assert float(fast.objective[both].mean()) <= 1.02 * float(plain.objective[both].mean()) + 1e-3
