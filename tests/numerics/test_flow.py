import pytest
import torch
from torch.autograd.functional import jacobian

from gpae.numerics.flow import Flow, draw_flow, push
from gpae.numerics.tiles import in_tiles


def lively(d: int, n_steps: int, context: int = 3, hidden: int = 32) -> Flow:
    """A flow that is far from the identity."""
    g = torch.Generator().manual_seed(0)
    flow = draw_flow(d, context, hidden, n_steps, g)
    return Flow(*(part.double() + 0.4 * torch.randn(part.shape, generator=g).double() for part in vars_of(flow)))


def vars_of(flow: Flow) -> tuple[torch.Tensor, ...]:
    return flow.inner, flow.inner_bias, flow.outer, flow.outer_bias


def inputs(d: int, n: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(1)
    return torch.randn(n, d, generator=g).double(), torch.randn(n, 3, generator=g).double()


@pytest.mark.parametrize("d", [1, 2, 4, 5])
@pytest.mark.parametrize("n_steps", [0, 1, 2, 3])
def test_the_log_determinant_is_that_of_the_jacobian(d: int, n_steps: int) -> None:
    flow, (latent, context) = lively(d, n_steps), inputs(d)
    _, log_det = push(flow, latent, context)
    for row, h, value in zip(latent, context, log_det, strict=True):
        full = jacobian(lambda z, h=h: push(flow, z.unsqueeze(0), h.unsqueeze(0))[0][0], row)
        assert float(value) == pytest.approx(float(torch.linalg.slogdet(full)[1]), rel=1e-8)


def test_in_one_step_an_entry_depends_on_itself_and_all_earlier_ones_only() -> None:
    flow, (latent, context) = lively(5, 1), inputs(5)
    for row, h in zip(latent, context, strict=True):
        full = jacobian(lambda z, h=h: push(flow, z.unsqueeze(0), h.unsqueeze(0))[0][0], row)
        assert torch.equal(full.triu(1), torch.zeros(5, 5).double())
        assert bool((full.diagonal() > 0).all() & (full.diagonal() < 1).all())
        assert bool((full.tril(-1) != 0).sum() == 10)


def test_two_steps_let_every_entry_depend_on_every_other() -> None:
    flow, (latent, context) = lively(4, 2), inputs(4)
    full = jacobian(lambda z: push(flow, z.unsqueeze(0), context[:1])[0][0], latent[0])
    assert bool((full != 0).all())


def test_every_entry_depends_on_the_context() -> None:
    flow, (latent, context) = lively(4, 1), inputs(4)
    full = jacobian(lambda h: push(flow, latent[:1], h.unsqueeze(0))[0][0], context[0])
    assert bool((full != 0).any(1).all())


def test_a_fresh_flow_is_near_a_gentle_shrinking_and_no_step_is_the_identity() -> None:
    latent, context = inputs(4, 100)
    g = torch.Generator().manual_seed(0)
    fresh = Flow(*(part.double() for part in vars_of(draw_flow(4, 3, 64, 1, g))))
    moved, _ = push(fresh, latent, context)
    torch.testing.assert_close(moved, 0.82 * latent, atol=0.25, rtol=0)
    none = Flow(*(part.double() for part in vars_of(draw_flow(4, 3, 64, 0, g))))
    assert torch.equal(push(none, latent, context)[0], latent)


def test_a_row_goes_the_same_way_wherever_it_stands() -> None:
    flow, (latent, context) = lively(5, 2), inputs(5, 120)
    order = torch.randperm(120, generator=torch.Generator().manual_seed(2))[:101]
    whole = in_tiles(lambda z, h: push(flow, z, h), (latent, context))
    mixed = in_tiles(lambda z, h: push(flow, z, h), (latent[order], context[order]))
    for there, here in zip(whole, mixed, strict=True):
        assert torch.equal(there[order], here)
