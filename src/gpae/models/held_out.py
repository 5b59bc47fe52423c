"""Rows to choose and to stop a training by, where none were given."""

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from torch import Tensor

from gpae.arrays import Labels, Rows

__all__ = ["held_out_tenth", "tenth_without_copies"]

_FEWEST = 50
_FEWEST_OF_A_CLASS = 10


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


def tenth_without_copies(X: Rows, codes: Labels, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of rows to learn from and of about a tenth to watch, stratified by class; copies stay together.

    A model is not to be judged on rows that it has seen: where rows repeat, as in a bootstrap, it would be rewarded for
    knowing them by heart. Too few distinct rows of a class are split as if none were a copy.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat(np.arange(40.0), 5)[:, None]
    >>> learn, watch = tenth_without_copies(X, (X[:, 0] > 20).astype(int), seed=0)
    >>> len(learn), len(watch), len(np.intersect1d(X[learn], X[watch]))
    (180, 20, 0)
    """
    _, first, copy_of = np.unique(X, axis=0, return_index=True, return_inverse=True)
    distinct = np.sort(first)
    if len(distinct) == len(X) or np.bincount(codes[distinct], minlength=2).min() < _FEWEST_OF_A_CLASS:
        learn, watch = train_test_split(np.arange(len(X)), test_size=0.1, stratify=codes, random_state=seed)
        return learn, watch
    _, watched = train_test_split(distinct, test_size=0.1, stratify=codes[distinct], random_state=seed)
    watch = np.isin(first[copy_of.ravel()], watched)
    return np.flatnonzero(~watch), np.flatnonzero(watch)
