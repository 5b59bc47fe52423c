"""Rows to stop a training by, where none were given."""

import torch
from torch import Tensor

__all__ = ["held_out_tenth"]

_FEWEST = 50


def held_out_tenth(
    rows: tuple[Tensor, ...], generator: torch.Generator
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Split tensors of rows into nine tenths and one; fewer than 50 rows are all used for both."""
    n = len(rows[0])
    if n < _FEWEST:
        return rows, rows
    order = torch.randperm(n, generator=generator)
    kept, watched = order[n // 10 :], order[: n // 10]
    return tuple(part[kept] for part in rows), tuple(part[watched] for part in rows)
