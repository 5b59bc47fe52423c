import math

import pytest
import torch

from gpae.numerics.fourier import draw_map, features, median_length_scale, slopes


@pytest.mark.parametrize("scheme", ["random", "sobol"])
@pytest.mark.parametrize("b", [0.5, 2.0])
def test_the_features_approach_the_exact_kernel_as_their_number_grows(scheme: str, b: float) -> None:
    x = torch.rand(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = torch.exp(-torch.cdist(x, x).square() / (2 * b**2))
    errors = []
    for size in (256, 65_536):
        phi = features(draw_map(size, 3, b, torch.Generator().manual_seed(1), scheme), x)
        errors.append(float((phi @ phi.T - exact).abs().max()))
    assert errors[1] < 0.02
    assert errors[1] < errors[0]


def test_the_sobol_grid_is_nearer_to_the_kernel_than_plain_draws() -> None:
    x = torch.rand(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = torch.exp(-torch.cdist(x, x).square() / 2)

    def error(scheme: str) -> float:
        maps = [draw_map(1024, 2, 1.0, torch.Generator().manual_seed(s), scheme) for s in range(5)]
        return sum(float((features(m, x) @ features(m, x).T - exact).square().mean()) for m in maps)

    assert error("sobol") < 0.5 * error("random")


def test_slopes_are_the_derivative_of_the_features() -> None:
    fmap = draw_map(40, 3, 0.7, torch.Generator().manual_seed(0))
    x = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    phase = x @ fmap.frequencies.T + fmap.phases
    value = fmap.amplitude * phase.cos()
    (gradient,) = torch.autograd.grad(value.sum(), phase)
    torch.testing.assert_close(slopes(fmap, x.detach()), gradient)


def test_the_median_rule_gives_sqrt_d_on_standard_normal_columns() -> None:
    x = torch.randn(2000, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert median_length_scale(x, torch.Generator().manual_seed(1)) == pytest.approx(math.sqrt(16), rel=0.05)


def test_the_median_rule_survives_identical_rows() -> None:
    assert median_length_scale(torch.ones(10, 2, dtype=torch.float64), torch.Generator()) == 1.0
