import pytest
import torch

from gpae.numerics.adam import Adam
from gpae.numerics.bias import shift
from gpae.numerics.fourier import draw_map, features
from gpae.numerics.whitening import whitening


def sample(n: int = 500) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    fmap = draw_map(80, 4, 1.0, generator)
    return features(fmap, torch.rand(n, 4, generator=generator, dtype=torch.float64))


def test_coordinates_and_back() -> None:
    white, weights = whitening(sample(), 1e-4), torch.randn(3, 80, dtype=torch.float64)
    torch.testing.assert_close(white(white.coordinates(weights)), weights)


def test_it_is_symmetric_so_gradients_pass_through_it_too() -> None:
    matrix = whitening(sample(), 1e-3)(torch.eye(80, dtype=torch.float64))
    torch.testing.assert_close(matrix, matrix.T)


def test_strong_directions_come_out_alike() -> None:
    phi = sample()
    white = whitening(phi, 1e-4)(phi)
    before, after = (torch.linalg.eigvalsh(f.T @ f / len(f)).flip(0)[:8] for f in (phi, white))
    assert before[0] / before[-1] > 50
    assert after[0] / after[-1] < 1.2


def test_adam_is_torchs() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = [torch.randn(5, 3, generator=generator), torch.randn((), generator=generator)]
    theirs = [t.clone() for t in ours]
    adam = Adam(ours, (1e-2, 3e-3))
    reference = torch.optim.Adam([{"params": [t], "lr": rate} for t, rate in zip(theirs, (1e-2, 3e-3), strict=True)])
    for _ in range(20):
        gradients = [torch.randn(t.shape, generator=generator) for t in ours]
        adam.step(gradients)
        for t, g in zip(theirs, gradients, strict=True):
            t.grad = g
        reference.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


def rows(n: int, offset: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits, and labels drawn from logits that lie higher."""
    generator = torch.Generator().manual_seed(1)
    g = 2 * torch.randn(n, generator=generator)
    y = (torch.rand(n, generator=generator) < torch.sigmoid(g + offset)).float()
    return g, y, torch.ones(n)


def test_a_shift_of_the_shares_is_found_and_chance_is_left_alone() -> None:
    assert shift(*rows(4000, 1.2)) == pytest.approx(1.2, abs=0.15)
    assert shift(*rows(4000, 0.0)) == 0.0


def test_rows_of_one_class_ask_for_nothing() -> None:
    g, _, weight = rows(200, 0.0)
    assert shift(g, torch.ones(200), weight) == 0.0
