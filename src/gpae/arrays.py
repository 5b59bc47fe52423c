"""Names for the arrays that travel through the library; the letters in the shapes mean the same everywhere.

``B`` rows in a batch, ``D`` encoded columns, ``d`` latent dimensions, ``S`` random Fourier features.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Labels", "Mask", "Probabilities", "Rows"]

Rows: TypeAlias = NDArray[np.float64]
"""Encoded rows, B x D, in [0, 1] for values inside the training range."""

Labels: TypeAlias = NDArray[np.int64]
"""One class per row, B; 1 is the favourable one."""

Mask: TypeAlias = NDArray[np.bool_]

Probabilities: TypeAlias = NDArray[np.float64]
"""B x 2, columns in the order of the classes."""
