import pytest
import torch

from gpae.numerics.aligned import eigh, product, solve
from gpae.numerics.tiles import in_tiles

SIZES = (1, 2, 3, 5, 8, 11, 39)


def assert_independent_of_position(function, *rows: torch.Tensor) -> None:
    whole = in_tiles(function, rows)
    order = torch.randperm(len(rows[0]), generator=torch.Generator().manual_seed(1))[: len(rows[0]) - 3]
    for there, here in zip(whole, in_tiles(function, [r[order] for r in rows]), strict=True):
        assert torch.equal(there[order], here)


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize("n", [*SIZES, 150])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_is_right_and_independent_of_position(k: int, n: int, transposed: bool) -> None:
    g = torch.Generator().manual_seed(0)
    matrix = torch.randn(n, k, generator=g).double().T if transposed else torch.randn(k, n, generator=g).double()
    rows = torch.randn(120, k, generator=g, dtype=torch.float64)
    torch.testing.assert_close(product(rows, matrix), rows @ matrix)
    assert_independent_of_position(lambda x: (product(x, matrix),), rows)


@pytest.mark.parametrize("n", SIZES[:-1])
def test_small_systems_are_right_and_independent_of_position(n: int) -> None:
    g = torch.Generator().manual_seed(0)
    A = torch.randn(120, n, n, generator=g, dtype=torch.float64)
    A, b = A @ A.mT + torch.eye(n), torch.randn(120, n, 2, generator=g, dtype=torch.float64)
    torch.testing.assert_close(A @ solve(A, b), b)
    values, vectors = eigh(A)
    torch.testing.assert_close((vectors * values.unsqueeze(1)) @ vectors.mT, A)
    assert_independent_of_position(lambda a, c: (solve(a, c), *eigh(a)), A, b)
