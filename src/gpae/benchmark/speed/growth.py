"""How cost grows: times against a size, and the exponent of the power that fits them."""

import time
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

__all__ = ["exponent", "seconds_of"]


def exponent(sizes: Iterable[float], seconds: Iterable[float]) -> float:
    """The slope of log time against log size, by least squares.

    Examples
    --------
    >>> round(exponent([1, 10, 100], [2, 20, 200]), 6)
    1.0
    """
    return float(np.polyfit(np.log(np.asarray(list(sizes), float)), np.log(np.asarray(list(seconds), float)), 1)[0])


def seconds_of(work: Callable[[], object], repeats: int = 3) -> pd.Series:
    """The median, least and most seconds of some repeats."""
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return pd.Series({"seconds": np.median(taken), "least": min(taken), "most": max(taken)})
