"""The compiled logit and its gradient: those of torch, and the same for a row in any company."""

import pytest
import torch

from gpae.kernels import slopes
from gpae.kernels.compiled import why_not
from gpae.kernels.slopes import CompiledSlopes, Slope
from gpae.numerics.autoencoder import AutoEncoder, logit_with_gradient
from gpae.numerics.fourier import draw_map


def model(n_features: int = 100, n_inputs: int = 5, dtype: torch.dtype = torch.float64) -> AutoEncoder:
    generator = torch.Generator().manual_seed(0)
    encoder, decoder = draw_map(n_features, n_inputs, 0.7, generator), draw_map(n_features, 3, 1.0, generator)
    W_e, W_d, theta = (
        torch.randn(*size, generator=generator) for size in ((n_features, 3), (n_features, n_inputs), (3,))
    )
    made = AutoEncoder(encoder, W_e.double(), decoder, W_d.double(), theta.double(), torch.tensor(0.3).double())
    return made if dtype == torch.float64 else Slope.of(made).model


def rows(n: int, n_inputs: int = 5) -> torch.Tensor:
    return torch.randn(n, n_inputs, generator=torch.Generator().manual_seed(1))


def compiled(made: AutoEncoder) -> CompiledSlopes:
    packed = CompiledSlopes.of(made)
    if packed is None:
        pytest.skip(f"nothing is compiled here: {why_not('slopes.c')}")
    return packed


@pytest.mark.parametrize(("n_features", "n_inputs"), [(1, 1), (8, 3), (100, 5), (1000, 48)])
@pytest.mark.parametrize("n", [1, 16, 35])
def test_both_are_those_of_torch_in_double_precision(n_features: int, n_inputs: int, n: int) -> None:
    packed = compiled(model(n_features, n_inputs, torch.float32))
    x = rows(n, n_inputs)
    g, gradient = logit_with_gradient(model(n_features, n_inputs), x.double())
    said = packed(x)
    torch.testing.assert_close(said[0].double(), g, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(said[1].double(), gradient, rtol=1e-4, atol=1e-3)
    assert (packed.logits(x) == said[0]).all()


def test_a_row_alone_has_the_bits_of_the_batch_whatever_the_threads() -> None:
    packed, x = compiled(model(dtype=torch.float32)), rows(1100)
    g, gradient = packed(x)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        again = packed(x)
    finally:
        torch.set_num_threads(before)
    assert (again[0] == g).all()
    assert (again[1] == gradient).all()
    for at in (0, 15, 16, 1099):
        alone = packed(x[at : at + 1])
        assert (alone[0] == g[at]).all()
        assert (alone[1] == gradient[at]).all()


@pytest.mark.parametrize("switch", ["on", "off"])
def test_torch_differentiates_the_logit(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPAE_KERNELS", switch)
    slope = Slope.of(model())
    assert switch == "on" or slope.compiled is None
    x = rows(7).requires_grad_()
    pull = torch.arange(7.0)
    slope.differentiable(x).backward(pull)
    _, gradient = slope(x.detach(), torch.ones(7))
    assert x.grad is not None
    torch.testing.assert_close(x.grad, pull.unsqueeze(1) * gradient, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        assert not slope.differentiable(x).requires_grad


@pytest.mark.parametrize("switch", ["on", "off"])
def test_the_sign_turns_both_round(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPAE_KERNELS", switch)
    slope, x, sign = Slope.of(model()), rows(6), torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    g, gradient = slope(x, torch.ones(6))
    turned, back = slope(x, sign)
    assert (turned == sign * g).all()
    assert (back == sign.unsqueeze(1) * gradient).all()
    torch.testing.assert_close(sign * slope.logits(x), turned, rtol=1e-5, atol=1e-5)


def test_a_library_that_disagrees_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model(dtype=torch.float32)
    compiled(made)
    monkeypatch.setattr(slopes, "_AGREES", -1.0)
    assert CompiledSlopes.of(made) is None
