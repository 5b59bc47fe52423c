"""The compiled search beside torch's: the same values, the same answers, each row for itself."""

import dataclasses
from typing import Any

import pytest
import torch
from torch.nn.functional import pad

from gpae.kernels import lanes
from gpae.kernels.compiled import why_not
from gpae.kernels.lanes import Lanes
from gpae.numerics.autoencoder import AutoEncoder, encode, logit
from gpae.numerics.density import fit_tilt
from gpae.numerics.fourier import draw_map
from gpae.search import newton, steps
from gpae.search.compiled import walker
from gpae.search.problem import Problem, Surface, kkt_residual, linearise, objective, widened
from gpae.search.restoration import restore
from gpae.search.steps import full_step, latent_step

SIZES = [(60, 5, 3), (64, 8, 4), (70, 13, 1), (33, 4, 2), (90, 6, 6), (50, 7, 11)]
"""Features, columns and latents: multiples of what is padded to, and others."""


def drawn(features: int, columns: int, latents: int, seed: int = 0, density_features: int = 45) -> Surface:
    g = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    model = AutoEncoder(
        draw_map(features, columns, 1.2, g), 2 * normal(features, latents), draw_map(features, latents, 1.0, g),
        normal(features, columns), normal(latents), 0.1 * normal(1)[0],
    )  # fmt: skip
    rows = torch.rand(400, columns, generator=g, dtype=torch.float64)
    # the boundary goes through the middle of the rows
    model = dataclasses.replace(model, theta0=-(encode(model, rows) @ model.theta).median())
    return Surface(model, fit_tilt(encode(model, rows), g, n_features=density_features, n_draws=2000, n_fresh=4000))


def refused(surface: Surface, n: int = 90, beta: float = 0.03) -> Problem:
    """Rows on the negative side; the last column is immutable, the first may only rise."""
    columns = surface.model.encoder.frequencies.shape[1]
    x = torch.rand(4000, columns, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    x = x[logit(surface.model, encode(surface.model, x)) < -0.05][:n]
    lower, upper = torch.zeros_like(x), torch.ones_like(x)
    lower[:, 0] = x[:, 0]
    lower[:, -1] = upper[:, -1] = x[:, -1]
    one = torch.ones(len(x), dtype=torch.float64)
    return Problem(x, lower, upper, beta * one, one, 0.02 * one)


def packed(surface: Surface, precision: str = "double") -> Lanes:
    lanes = Lanes.of(surface.model, surface.density, precision)  # type: ignore[arg-type]
    if lanes is None:
        pytest.skip(f"nothing is compiled here: {why_not('newton.c')}")
    return lanes


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-11), ("single", 3e-5)])
def test_values_are_those_of_torch(sizes: tuple[int, int, int], precision: str, tolerance: float) -> None:
    surface = drawn(*sizes)
    problem = refused(surface)
    u = torch.rand(problem.x.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    u = u.clamp(problem.lower, problem.upper)
    value, h = objective(surface, problem, u)
    fast_value, fast_h = packed(surface, precision).evaluate(problem.tensors(), u)
    torch.testing.assert_close(fast_value, value, rtol=tolerance, atol=tolerance * float(value.abs().max()))
    torch.testing.assert_close(fast_h, h, rtol=tolerance, atol=10 * tolerance)


def test_looking_often_and_with_slopes_sees_the_same() -> None:
    surface = drawn(60, 5, 3)
    problem, lanes = refused(surface, 21), packed(surface)
    for times in (1, 3):
        for seen, expected in zip(
            lanes.linearise(problem.tensors(), problem.x, times),
            lanes.evaluate(problem.tensors(), problem.x),
            strict=True,
        ):
            torch.testing.assert_close(seen, expected, rtol=1e-12, atol=1e-12)


def test_far_rows_have_the_right_sine_too() -> None:
    """Arguments of some thousand: the reduction must not lose their digits."""
    surface = drawn(60, 5, 3)
    problem = refused(surface)
    u = 3000.0 * problem.x
    wide = dataclasses.replace(problem, lower=u - 1, upper=u + 1)
    _, h = objective(surface, wide, u)
    torch.testing.assert_close(packed(surface).evaluate(wide.tensors(), u)[1], h, rtol=0, atol=1e-9)


@pytest.mark.parametrize("sizes", SIZES)
def test_answers_are_those_of_torch(sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    surface = drawn(*sizes)
    problem = refused(surface)
    packed(surface)
    fast = newton.solve(surface, problem)
    monkeypatch.setattr(newton, "walker", lambda *_: None)
    plain = newton.solve(surface, problem)
    assert (fast.violation <= plain.violation.clamp(min=1e-8)).double().mean() >= 0.98
    assert (fast.kkt <= 1e-3).double().mean() >= (plain.kkt <= 1e-3).double().mean() - 0.02
    close = (fast.objective - plain.objective).abs() <= 1e-4 * plain.objective.abs().clamp(min=1)
    better = fast.objective < plain.objective
    assert (close | better).double().mean() >= 0.9  # several minima: not every row need find the same
    assert close.double().mean() >= 0.75


def test_what_is_said_of_an_answer_is_so() -> None:
    surface = drawn(60, 5, 3)
    problem = refused(surface)
    walked = packed(surface).solve(problem.tensors(), None, tolerance=3e-4, iterations=30)
    value, h = objective(surface, problem, walked.u)
    torch.testing.assert_close(walked.objective, value, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(walked.h, h, rtol=0, atol=1e-11)
    assert (walked.u >= problem.lower).all()
    assert (walked.u <= problem.upper).all()
    assert torch.equal(walked.u[:, -1], problem.x[:, -1])
    assert (walked.kkt[walked.converged] <= 3e-4 * 1.5).all()
    assert walked.converged.double().mean() > 0.9


@pytest.mark.parametrize("sizes", [*SIZES[:5], (40, 3, 2)])
@pytest.mark.parametrize(("precision", "full"), [("double", False), ("single", False), ("double", True)])
def test_a_row_is_the_same_alone_and_in_any_company(sizes: tuple[int, int, int], precision: str, full: bool) -> None:
    surface = drawn(*sizes, seed=1)
    problem = refused(surface, 60)
    lanes = packed(surface, precision)

    def solved(index: torch.Tensor) -> torch.Tensor:
        rows = problem.rows(index)
        return lanes.solve(rows.tensors(), rows.x if full else None, tolerance=3e-4, iterations=20, full=full).u

    n = len(problem.x)
    together = solved(torch.arange(n))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(3))
    assert torch.equal(solved(order), together[order])
    assert torch.equal(torch.cat([solved(torch.tensor([one])) for one in range(n)]), together)


@pytest.mark.parametrize("latents", [3, 11, lanes.MOST_LATENTS + 1])
def test_a_row_is_the_same_alone_where_nothing_is_compiled(latents: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd numbers of latents: every other of the small matrices is out of step in memory."""
    monkeypatch.setattr(newton, "walker", lambda *_: None)
    surface = drawn(60, 30, latents, seed=1)
    problem = refused(surface, 24, beta=0.1)
    whole = newton.solve(surface, problem)
    for row in (0, 1, 2, 3, 23):
        assert torch.equal(newton.solve(surface, problem.rows(torch.tensor([row]))).u[0], whole.u[row])


def test_a_start_is_where_it_begins() -> None:
    """From an answer, nothing is left to do."""
    surface = drawn(60, 5, 3)
    problem = refused(surface)
    lanes = packed(surface)
    first = lanes.solve(problem.tensors(), None, tolerance=3e-4, iterations=30)
    again = lanes.solve(problem.tensors(), first.u, tolerance=1e-3, iterations=30)
    done = first.converged
    assert (again.iterations[done] <= 1).all()
    torch.testing.assert_close(again.u[done], first.u[done], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("iterations", "full"), [(20, False), (1, True)])
@pytest.mark.parametrize("held", [(1, 3), (0,), (0, 1, 2, 3)])
def test_a_column_that_is_held_counts_as_one_that_cannot_move(
    held: tuple[int, ...], iterations: int, full: bool
) -> None:
    surface = drawn(60, 5, 3)
    problem = refused(surface)
    still = torch.zeros(5, dtype=torch.bool)
    still[list(held)] = True
    elsewhere = torch.where(still, 1.0 - problem.x, problem.x)
    lower, upper = (torch.where(still, elsewhere, bound) for bound in (problem.lower, problem.upper))
    pinned = dataclasses.replace(problem, lower=lower, upper=upper).tensors()
    narrow = Lanes.of(surface.model, surface.density, "double", still)
    assert narrow is not None
    wide = packed(surface)
    for a, b in zip(narrow.evaluate(pinned, elsewhere), wide.evaluate(pinned, elsewhere), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
    one, other = (
        lanes.solve(pinned, elsewhere, tolerance=3e-4, iterations=iterations, full=full) for lanes in (narrow, wide)
    )
    assert torch.equal(one.u[:, still], elsewhere[:, still])
    same = (one.u - other.u).abs().amax(1) <= 1e-8
    assert same.double().mean() >= 0.98  # bits differ, and a row on the edge of two ways may take the other
    torch.testing.assert_close(one.objective[same], other.objective[same], rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(one.kkt[same], other.kkt[same], rtol=1e-4, atol=1e-8)


def test_rows_that_have_room_in_held_columns_are_searched_for_without() -> None:
    """And nobody beside them is touched by it."""
    surface = drawn(60, 5, 3)
    problem = refused(surface)
    packed(surface)
    still = torch.tensor([False, True, False, False, False])
    roaming = torch.arange(len(problem.x)) % 3 == 0
    lower, upper = (
        torch.where(still & ~roaming.unsqueeze(1), problem.x, bound) for bound in (problem.lower, problem.upper)
    )
    mixed = dataclasses.replace(problem, lower=lower, upper=upper)
    found = newton.solve(surface, mixed, held=still)
    others = (~roaming).nonzero().squeeze(1)
    assert torch.equal(found.u[others], newton.solve(surface, mixed.rows(others), held=still).u)
    assert torch.equal(found.u[roaming], newton.solve(surface, mixed).u[roaming])
    assert (found.u[roaming, 1] != problem.x[roaming, 1]).any()


def test_who_may_end_off_the_boundary_takes_fewer_steps_and_ends_within_that() -> None:
    surface = drawn(60, 5, 3)
    problem = refused(surface)
    near, there = (
        packed(surface).solve(problem.tensors(), None, tolerance=1e-3, iterations=20, off=off) for off in (1e-3, 0.0)
    )
    done = near.converged
    assert (near.h.abs() <= 1.001e-3 * problem.margin)[done].all()
    assert (near.h.abs() > 1e-8)[done].any()
    assert (there.h.abs() <= 1e-8)[done].all()
    assert near.iterations.sum() < there.iterations.sum()


def test_nobody_is_nothing() -> None:
    surface = drawn(60, 5, 3)
    problem = refused(surface).rows(torch.zeros(0, dtype=torch.int64))
    assert packed(surface).solve(problem.tensors(), None, tolerance=3e-4, iterations=30).u.shape == (0, 5)


@pytest.mark.parametrize("what", ["evaluate", "solve"])
def test_a_library_that_lies_is_not_believed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    surface = drawn(60, 5, 3)
    packed(surface)
    honest = getattr(Lanes, what)

    def lie(*arguments: Any, **options: Any) -> Any:
        said = honest(*arguments, **options)
        return said._replace(objective=said.objective + 1) if what == "solve" else (said[0] + 1, said[1])

    monkeypatch.setattr(Lanes, what, lie)
    assert Lanes.of(surface.model, surface.density, "double") is None


def test_single_precision_goes_most_of_the_way() -> None:
    """A budget of counted work: the dear half of the steps is the smaller one."""
    surface = drawn(60, 5, 3)
    problem = refused(surface)
    packed(surface)
    walk = walker(surface)
    assert walk is not None
    near = walk.single.solve(problem.tensors(), None, tolerance=1e-3, iterations=30)
    last = walk.double.solve(problem.tensors(), near.u, tolerance=3e-4, iterations=30)
    assert last.iterations.double().mean() <= 0.5 * near.iterations.double().mean()
    assert last.converged.double().mean() >= near.converged.double().mean()


@pytest.mark.parametrize("iterations", [1, 2, 5, 8])
@pytest.mark.parametrize("beta", [0.03, 0.3])
@pytest.mark.parametrize("sizes", [(60, 5, 3), (64, 8, 4), (33, 4, 2)])
def test_latent_steps_are_those_of_torch(sizes: tuple[int, int, int], beta: float, iterations: int) -> None:
    """The first knows of no bend, the others of what the last one met."""
    surface = drawn(*sizes, seed=3)
    problem = refused(surface, 40, beta)
    lanes = packed(surface)
    wide, part = widened(surface, problem)
    more = part.x.shape[1] - problem.x.shape[1]
    nothing = torch.zeros_like(part.beta)
    begin = pad(problem.x, (0, more))
    moved, *_ = newton._burst(
        wide, latent_step, iterations, 0.0, *part.tensors(), begin, *[nothing] * 2, nothing.long()
    )
    expected = restore(wide, part, moved, nothing.long()).u[:, : problem.x.shape[1]]
    found = lanes.solve(problem.tensors(), problem.x, tolerance=0.0, iterations=iterations)
    apart = (found.u - expected).abs().amax(1)
    assert (apart < 1e-8).double().mean() >= 0.97  # one may be refused a step by a hair


def test_what_the_last_step_met_saves_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the boundary bends, by torch: without the bend a row creeps home."""
    drawn_ones = [drawn(60, 5, 3, seed=seed) for seed in (3, 5, 7)]

    def taken() -> float:
        each = []
        for surface in drawn_ones:
            wide, part = widened(surface, refused(surface, 60, beta=0.3))
            nothing = torch.zeros_like(part.beta)
            *_, iterations, _ = newton._burst(
                wide, latent_step, 25, 1e-4, *part.tensors(), part.x, nothing, nothing, nothing.long()
            )
            each.append(float(iterations.double().mean()))
        return sum(each)

    with_bend = taken()
    for limit in ("_LEAST_BEND", "_MOST_BEND"):
        monkeypatch.setattr(steps, limit, 0.0)
    assert with_bend < 0.9 * taken()


@pytest.mark.parametrize("sizes", [(60, 5, 3), (64, 8, 4), (33, 4, 2)])
def test_full_steps_are_those_of_torch(sizes: tuple[int, int, int]) -> None:
    """From the boundary on, where the encoder bends: each step of either leads to the same point."""
    surface = drawn(*sizes, seed=3)
    problem = refused(surface, 40)
    lanes = packed(surface)
    start = lanes.solve(problem.tensors(), None, tolerance=3e-4, iterations=2).u
    wide, part = widened(surface, problem)
    point = linearise(wide, part, pad(start, (0, part.x.shape[1] - start.shape[1])))
    eta = kkt_residual(wide, part, point)[1]
    nothing = torch.zeros_like(eta)
    moved, *_ = newton._burst(wide, full_step, 1, 0.0, *part.tensors(), point.u, nothing, nothing, nothing.long())
    expected = restore(wide, part, moved, nothing.long()).u[:, : start.shape[1]]
    once = lanes.solve(problem.tensors(), start, tolerance=0.0, iterations=1, full=True)
    apart = (once.u - expected).abs().amax(1)
    assert (apart < 1e-8).double().mean() >= 0.95  # a pair of eigenvalues of either sign near zero may differ


def test_full_steps_bring_home_whom_latent_steps_leave() -> None:
    surface = drawn(60, 5, 3, seed=5)
    problem = refused(surface)
    lanes = packed(surface)
    first = lanes.solve(problem.tensors(), None, tolerance=3e-4, iterations=3)
    late = (~first.converged).nonzero().squeeze(1)
    assert len(late) > 5
    part = problem.rows(late)
    last = lanes.solve(part.tensors(), first.u[late], tolerance=3e-4, iterations=24, full=True)
    assert last.converged.double().mean() > 0.9
    value, h = objective(surface, part, last.u)
    torch.testing.assert_close(last.objective, value, rtol=1e-10, atol=1e-10)
    assert (h.abs()[last.converged] < 1e-8).all()


def test_a_gpu_that_is_not_there_is_done_without() -> None:
    """A model fitted with device="cuda" is searched on another machine's processor."""
    surface = drawn(60, 5, 3)
    packed(surface)
    if torch.cuda.is_available():
        pytest.skip("there is one")
    elsewhere = walker(dataclasses.replace(surface, device="cuda"))
    assert elsewhere is not None
    assert isinstance(elsewhere.single, Lanes)
