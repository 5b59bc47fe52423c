"""Names for the arrays that travel through the library; the letters in the shapes mean the same everywhere.

``B`` rows in a batch, ``D`` encoded columns, ``d`` latent dimensions, ``S`` random Fourier features.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Flags", "Floats", "Indices", "Labels", "Mask", "Probabilities", "Rows"]

Rows: TypeAlias = NDArray[np.float64]
"""Encoded rows, B x D, in [0, 1] for values inside the training range."""

Labels: TypeAlias = NDArray[np.int64]
"""One class per row, B; 1 is the favourable one."""

Mask: TypeAlias = NDArray[np.bool_]

Probabilities: TypeAlias = NDArray[np.float64]
"""B x 2, columns in the order of the classes."""

# What jaxtyping can give a shape: an alias of NumPy's own, such as NDArray, is no class from NumPy 2.5 on.
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Indices: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
