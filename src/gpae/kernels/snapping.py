"""The nearest allowed rows, and which are allowed: compiled (snap.c) where that can be, by the layout itself elsewhere.

Both mean the same values, to the last bits; only a person beyond the range of a table of values is brought back to it
by the one, and one step beyond it by the other.
"""

import ctypes

import numpy as np
from numpy.typing import NDArray

from gpae.kernels.compiled import library
from gpae.kernels.layouts import PackedLayout
from gpae.kernels.threads import from_one_queue
from gpae.table.layout import Layout

__all__ = ["allowed", "is_compiled", "snap"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def is_compiled(layout: Layout) -> bool:
    """Whether :func:`snap` takes microseconds, so that a search can ask at every step."""
    return library("snap.c") is not None and PackedLayout.of(layout) is not None


def snap(layout: Layout, U: Array, X: Array, lower: Array, upper: Array) -> Array:
    """:meth:`gpae.table.layout.Layout.snap`."""
    compiled, packed = library("snap.c"), PackedLayout.of(layout)
    if compiled is None or packed is None:
        return layout.snap(U, X, lower, upper)
    x, low, high = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, lower, upper))
    snapped = np.array(U, dtype=np.float64, order="C")
    places = (ctypes.c_void_p(part.ctypes.data) for part in (x, low, high, snapped))
    call = ctypes.byref(packed.packed), ctypes.c_int64(layout.width), *places
    from_one_queue(len(snapped), lambda queue: compiled.snap_rows(*call, queue))
    return snapped


def allowed(layout: Layout, U: Array, X: Array, lower: Array, upper: Array) -> Mask:
    """:meth:`gpae.table.layout.Layout.is_allowed`, which has the last word on what the library refuses."""
    compiled, packed = library("snap.c"), PackedLayout.of(layout)
    if compiled is None or packed is None:
        return layout.is_allowed(U, X, lower, upper)
    rows = [np.ascontiguousarray(part, dtype=np.float64) for part in (X, lower, upper, U)]
    yes = np.zeros(len(U), dtype=np.bool_)
    places = (ctypes.c_void_p(part.ctypes.data) for part in (*rows, yes))
    call = ctypes.byref(packed.packed), ctypes.c_int64(layout.width), *places
    from_one_queue(len(yes), lambda queue: compiled.allowed_rows(*call, queue))
    if not yes.all():
        x, low, high, u = (part[~yes] for part in rows)
        yes[~yes] = layout.is_allowed(u, x, low, high)
    return yes
