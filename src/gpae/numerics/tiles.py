"""Rows in tiles of one size, one thread a tile: the value of a row never depends on the rows around it.

Matrix products give different last bits for another number of rows or of threads, and a search amplifies them. In
tiles of a fixed, padded size worked by a single thread, a row's bits are the same wherever it stands. Tiles run side
by side, so the cores are busy all the same.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

__all__ = ["TILE", "in_tiles", "single_threaded_workers"]

TILE = 128
"""Rows in a tile: large enough for the products to be efficient, small enough for one row to answer at once."""

T = TypeVar("T", bound=tuple[Tensor, ...])


@contextmanager
def single_threaded_workers(n_workers: int | None = None) -> Iterator[ThreadPoolExecutor]:
    """Yield a pool whose threads each run torch on one thread; the caller's own setting is restored."""
    before = torch.get_num_threads()
    workers = n_workers or min(before, os.cpu_count() or 1)
    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield pool
    finally:
        torch.set_num_threads(before)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_tiles(function: Callable[..., T], rows: Sequence[Tensor], tile: int = TILE) -> T:
    """Apply a row-wise function of several row tensors tile by tile and join the results.

    ``function`` takes one tile of each tensor in ``rows`` and returns a tuple of tensors with one entry a row. The
    last tile is padded by repeating its last row.
    """
    n = rows[0].shape[0]
    if n == 0:
        return function(*rows)
    starts = range(0, n, tile)
    if rows[0].is_cuda or torch.get_num_threads() == 1:
        parts = [_one_tile(function, rows, start, tile) for start in starts]
    elif len(starts) == 1:
        with _one_thread():  # a pool takes longer to start than a tile takes
            parts = [_one_tile(function, rows, 0, tile)]
    else:
        with single_threaded_workers() as pool:
            parts = list(pool.map(lambda start: _one_tile(function, rows, start, tile), starts))
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]


def _one_tile(function: Callable[..., T], rows: Sequence[Tensor], start: int, tile: int) -> tuple[Tensor, ...]:
    pieces = [r[start : start + tile] for r in rows]
    kept = pieces[0].shape[0]
    if kept < tile:
        pieces = [torch.cat([p, p[-1:].expand(tile - kept, *p.shape[1:])]) for p in pieces]
    with torch.no_grad():
        return tuple(out[:kept] for out in function(*pieces))
