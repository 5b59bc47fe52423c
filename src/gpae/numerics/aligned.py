"""Matrix algebra whose result for a row does not depend on where in memory the row lies.

The kernels behind torch take another path, with other last bits, for data that do not start on a boundary of 16 bytes.
Inside a tile of fixed size that happens exactly where a dimension is odd (for doubles; no multiple of four for single
precision): every other row or matrix is then out of step. Padding such dimensions with zeros (or, for square systems,
ones on the diagonal) puts all of them in step.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

__all__ = ["EVEN", "eigh", "product", "products", "solve", "width"]

EVEN = 8
"""Columns are padded to multiples of this: 64 bytes of doubles."""


def width(n: int) -> int:
    """The next multiple of EVEN."""
    return n + (-n) % EVEN


def product(rows: Float[Tensor, "B k"], matrix: Float[Tensor, "k n"]) -> Float[Tensor, "B n"]:
    """rows @ matrix."""
    k, n = matrix.shape
    in_step = 16 // matrix.element_size()
    if k % in_step == 0 and n % in_step == 0:
        return rows @ matrix
    more_k, more_n = width(k) - k, width(n) - n
    return (pad(rows, (0, more_k)) @ pad(matrix, (0, more_n, 0, more_k)))[:, :n]


def products(left: Float[Tensor, "B n k"], right: Float[Tensor, "B k m"]) -> Float[Tensor, "B n m"]:
    """left @ right, pair by pair."""
    n, k, m = left.shape[1], left.shape[2], right.shape[2]
    in_step = 16 // left.element_size()
    if n % in_step == 0 and k % in_step == 0 and m % in_step == 0:
        return left @ right
    more_n, more_k, more_m = width(n) - n, width(k) - k, width(m) - m
    return (pad(left, (0, more_k, 0, more_n)) @ pad(right, (0, more_m, 0, more_k)))[:, :n, :m]


def solve(systems: Float[Tensor, "B n n"], sides: Float[Tensor, "B n m"]) -> Float[Tensor, "B n m"]:
    """Solve each row's own system."""
    n = systems.shape[1]
    if n % 2 == 0:
        return torch.linalg.solve(systems, sides)
    return torch.linalg.solve(_bordered(systems), pad(sides, (0, 0, 0, 1)))[:, :n]


def eigh(matrices: Float[Tensor, "B n n"]) -> tuple[Float[Tensor, "B n"], Float[Tensor, "B n n"]]:
    """Eigenvalues and eigenvectors of each row's own symmetric matrix.

    An odd one is bordered by a diagonal entry above all its eigenvalues, whose own pair comes last and is cut off.
    """
    n = matrices.shape[1]
    if n % 2 == 0:
        values, vectors = torch.linalg.eigh(matrices)
        return values, vectors
    bound = 1 + 2 * matrices.abs().sum(2).amax(1)
    bordered = pad(matrices, (0, 1, 0, 1))
    bordered[:, n, n] = bound
    values, vectors = torch.linalg.eigh(bordered)
    return values[:, :n], vectors[:, :n, :n]


def _bordered(matrices: Float[Tensor, "B n n"]) -> Float[Tensor, "B k k"]:
    bordered = pad(matrices, (0, 1, 0, 1))
    bordered[:, -1, -1] = 1
    return bordered
