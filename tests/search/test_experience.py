"""Starts from people searched for before: fewer steps to as good an end, the same for a person in any company."""

import torch

from gpae.search import newton
from gpae.search.experience import Experience
from gpae.search.problem import Problem, Surface


def halves(problem: Problem) -> tuple[Problem, Problem]:
    rows = torch.arange(len(problem.x))
    return problem.rows(rows[: len(rows) // 2]), problem.rows(rows[len(rows) // 2 :])


def test_a_start_from_experience_takes_fewer_steps_to_as_good_an_end(surface: Surface, problem: Problem) -> None:
    before, now = halves(problem)
    known = Experience.of(surface, before)
    assert known is not None
    cold = newton.solve(surface, now, tolerance=newton.COARSE)
    warm = newton.solve(surface, now, start=known.start(surface, now), tolerance=newton.COARSE)
    assert warm.iterations.double().mean() < 0.8 * cold.iterations.double().mean()
    assert float(warm.objective.mean()) <= float(cold.objective.mean()) + 1e-3
    assert (warm.violation <= 0.01 * now.margin).double().mean() >= 0.99


def test_a_start_is_inside_the_bounds_and_that_of_the_nearest(surface: Surface, problem: Problem) -> None:
    before, now = halves(problem)
    known = Experience.of(surface, before)
    assert known is not None
    start = known.start(surface, now)
    assert ((start >= now.lower) & (start <= now.upper)).all()
    again = known.start(surface, before)  # everybody is nearest to themselves
    torch.testing.assert_close(again, (before.x + known.ways).clamp(before.lower, before.upper))


def test_company_does_not_matter(surface: Surface, problem: Problem) -> None:
    before, now = halves(problem)
    known = Experience.of(surface, before)
    assert known is not None
    alone = known.start(surface, now.rows(torch.tensor([3])))
    assert torch.equal(alone[0], known.start(surface, now)[3])


def test_who_cannot_get_there_teaches_nothing(surface: Surface, problem: Problem) -> None:
    stuck = Problem(problem.x, problem.x, problem.x, problem.beta, problem.sign, problem.margin)
    assert Experience.of(surface, stuck) is None
