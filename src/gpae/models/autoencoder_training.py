"""What the auto-encoders of CCHVAE, REVISE, CRUDS and CLUE share: checks, rows in batches, the collapse warning."""

import math
import warnings
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch import Tensor

from gpae.errors import InputError

__all__ = ["CollapsedLatentWarning", "check_autoencoder", "in_batches", "warn_if_collapsed"]

_COLLAPSED = 1e-2
"""Mean variance of the latents below which the decoder has nothing to tell rows apart by."""
_BATCHES, _SMALLEST_BATCH = 32, 16


class CollapsedLatentWarning(UserWarning):
    """The auto-encoder returns much the same row whatever it is given."""


def check_autoencoder(
    parameters: Mapping[str, Any],
    counts: tuple[str, ...],
    *,
    rates: tuple[str, ...] = (),
    weights: tuple[str, ...] = (),
) -> None:
    """Refuse counts that are no whole numbers above 0, rates that are not above 0, weights below 0; None passes."""
    for name in (*counts, "batch_size", "max_epochs", "patience"):
        value = parameters[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
            raise InputError(f"{name}={value!r} must be a whole number of at least 1")
    for name in ("learning_rate", *rates):
        value = parameters[name]
        if value is not None and not (isinstance(value, Real) and 0 < float(value) < np.inf):
            raise InputError(f"{name}={value!r} must be a number above 0")
    for name in weights:
        value = parameters[name]
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise InputError(f"{name}={value!r} must be a number of at least 0")


def in_batches(rows: tuple[Tensor, ...], batch_size: int | None, most: int) -> tuple[tuple[Tensor, ...], int]:
    """Return the rows of an epoch and the size of its batches.

    ``batch_size`` None: ``most`` rows, or fewer, so that an epoch has at least 32 batches. A batch has at least 16 rows
    all the same: a table of fewer than 512 is gone through more than once an epoch. So epochs and patience mean enough
    updates on a small table, too.
    """
    n = len(rows[0])
    if batch_size is None:
        passes = math.ceil(_BATCHES * _SMALLEST_BATCH / n)
        rows, n = tuple(part.repeat(passes, 1) for part in rows), passes * n
        batch_size = min(most, n // _BATCHES)
    if n % batch_size == 1 < n:  # batch normalisation cannot take a batch of one row
        rows = tuple(part[:-1] for part in rows)
    return rows, batch_size


def warn_if_collapsed(latent_variance: float, remedy: str) -> None:
    """Warn where the variance of the latents' means over the training rows, averaged over latents, is next to none."""
    if latent_variance < _COLLAPSED:
        warnings.warn(
            f"the auto-encoder has collapsed: the variance of its latents over the training rows is "
            f"{latent_variance:.1e}; {remedy}",
            CollapsedLatentWarning,
            stacklevel=3,
        )
