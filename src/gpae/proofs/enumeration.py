"""Proof by asking: if all that may change is discrete, every row that a person may become is judged."""

import math
import time
from collections.abc import Callable

import numpy as np

from gpae.clock import Deadline
from gpae.proofs.certificate import Certificate, plain_row
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom
from gpae.table.layout import Block
from gpae.table.value_block import ValueBlock

__all__ = ["by_every_row"]

_CHUNK = 5_000
"""Rows that are asked about together, and"""
_AT_FIRST = 200
"""how many at first, where time is short."""


def by_every_row(
    freedom: Freedom,
    logits: Callable[[Freedom, Array], Array],
    seconds: float = math.inf,
    needed: float = 0.0,
    most: int = 100_000,
) -> tuple[Certificate | None, Array | None]:
    """Ask about every allowed row of the one person; return a proof, or a favourable row, or neither.

    Neither: something continuous may change, there are more than ``most`` rows, or time is over. ``logits`` is given as
    many copies of the person as rows.
    """
    clock = Deadline(None if math.isinf(seconds) else time.monotonic() + seconds)
    settings = _settings(freedom, most)
    if settings is None:
        return None, None
    best, best_row, looked_at, done = -np.inf, freedom.x, 0, 0
    total = math.prod(len(values) for values in settings)
    for part in clock.portions(total, _AT_FIRST, _CHUNK):
        U, done = _rows(settings, part), part.stop
        U = U[freedom.rows(np.zeros(len(U), dtype=np.intp)).permits(U)]
        if not len(U):
            continue
        said = logits(freedom.rows(np.zeros(len(U), dtype=np.intp)), U)
        looked_at += len(U)
        if said.max() > best:
            best, best_row = float(said.max()), U[[said.argmax()]]
        if best > needed:
            return None, best_row
    if done < total:
        return None, None
    details = {"best_row": plain_row(freedom, best_row)} if looked_at else {}
    return Certificate("every row", best, needed, looked_at, details), None


def _settings(freedom: Freedom, most: int) -> list[Array] | None:
    """Each feature's settings (m x w); None if one has endlessly many, or all together have more rows than allowed."""
    settings, rows = [], 1
    for block in freedom.layout.features:
        x, lower, upper = (part[:, block.columns] for part in (freedom.x, freedom.lower, freedom.upper))
        if (lower == upper).all():
            settings.append(lower)
            continue
        values = _values(block, x, lower, upper, most)
        if values is None:
            return None
        settings.append(values)
        rows *= len(values)
        if rows > most:
            return None
    return settings


def _values(block: Block, x: Array, lower: Array, upper: Array, most: int) -> Array | None:
    """All allowed settings of one feature."""
    if not isinstance(block, ValueBlock):
        every = np.eye(block.width)
    else:
        grid = block.grid
        if grid.step is None:
            return None
        low, high = (float(block.scaling.to_user(bound[0, 0])) for bound in (lower, upper))
        if (high - low) / grid.step > most:
            return None
        first = np.floor((low - grid.minimum) / grid.step)
        numbers = grid.at(first + np.arange(round((high - low) / grid.step) + 3))
        # a bound counts as a step that it falls short of by next to nothing
        every = np.concatenate([block.encode(np.array([*numbers, *grid.codes])), x, lower, upper])
    n = len(every)
    good = block.allowed(every, *(np.repeat(part, n, axis=0) for part in (x, lower, upper)))
    return np.unique(every[good], axis=0)


def _rows(settings: list[Array], part: slice) -> Array:
    """Some of the combinations of the features' settings."""
    index = np.unravel_index(np.arange(part.start, part.stop), [len(values) for values in settings])
    return np.concatenate([values[at] for values, at in zip(settings, index, strict=True)], axis=1)
