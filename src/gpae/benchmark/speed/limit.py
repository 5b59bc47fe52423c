"""How far the solver is from what a core can do: its products, sines and cosines at the core's own peak rates.

A linearisation of one row takes, with D columns, S features, d latents and T features of the density,

    S (D + d D + 2 d) + T (2 d + d (d + 1) / 2)  fused products  and  S + T  sines with their cosines.

What these would take at the peak, which is measured in turn with the solver, is held against what the solver takes in
all: its steps, its bookkeeping and lanes that wait are in that, too. Beside it stands what the same products (of the
same shapes), sines and cosines take by the library's own functions, one after the other.
"""

import time

import pandas as pd
import torch

from gpae.benchmark.speed.subject import Subject
from gpae.benchmark.speed.work import problem_of
from gpae.explainers.gpae import GPAE
from gpae.kernels.peak import Peak, peak_of_a_core
from gpae.progress import report
from gpae.search.compiled import COARSE, walker
from gpae.search.problem import Surface

__all__ = ["beside_the_peak"]

_ITERATIONS = 30
_TOGETHER, _TIMES = 512, 5
"""Rows that the library is given at once, and how often it is timed."""


def beside_the_peak(subject: Subject, n_rows: int = 2000, repeats: int = 7) -> pd.DataFrame:
    """One line: the solver's rate beside the peak's, on one thread; medians, and the least and the most of the share.

    No line where nothing is compiled.
    """
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    problem, surface = problem_of(subject, n_rows), method.surface()
    compiled, threads = walker(surface), torch.get_num_threads()
    if compiled is None or peak_of_a_core() is None:
        return pd.DataFrame()
    torch.set_num_threads(1)
    try:
        lines = []
        for repeat in range(repeats):
            report(f"the solver beside the peak, {subject.name}", repeat / repeats)
            peak = peak_of_a_core()
            started = time.perf_counter()
            walked = compiled.single.solve(problem.tensors(), None, tolerance=COARSE, iterations=_ITERATIONS)
            seconds = time.perf_counter() - started
            assert peak is not None
            lines.append(_line(surface, peak, int(walked.iterations.sum()) + n_rows, seconds))
            lines[-1]["library_microseconds"] = 1e6 * _by_the_library(surface)
    finally:
        torch.set_num_threads(threads)
    table = pd.DataFrame(lines)
    share = {"share_least": table["share"].min(), "share_most": table["share"].max()}
    return pd.DataFrame([{"dataset": subject.name, "rows": n_rows} | table.median().to_dict() | share])


def _by_the_library(surface: Surface) -> float:
    """Seconds a row of a linearisation's two products, sines and cosines by torch, in single precision."""
    Z = surface.model.encoder.frequencies.float()  # type: ignore[attr-defined]
    d, x = len(surface.model.theta), torch.rand(_TOGETHER, Z.shape[1])
    slopes, angles = torch.rand(d * _TOGETHER, len(Z)), torch.rand(_TOGETHER, len(Z) + len(surface.density.weights))
    best = float("inf")
    for _ in range(_TIMES):
        started = time.perf_counter()
        torch.mm(x, Z.T), torch.mm(slopes, Z), angles.sin(), angles.cos()
        best = min(best, time.perf_counter() - started)
    return best / _TOGETHER


def _line(surface: Surface, peak: Peak, linearisations: int, seconds: float) -> dict[str, float]:
    S, D = surface.model.encoder.frequencies.shape  # type: ignore[attr-defined]
    d, T = len(surface.model.theta), len(surface.density.weights)
    products = linearisations * (S * (D + d * D + 2 * d) + T * (2 * d + d * (d + 1) // 2))
    angles = linearisations * (S + T)
    at_peak = products / peak.products + angles / peak.angles
    return {
        "linearisations": linearisations,
        "microseconds_each": 1e6 * seconds / linearisations,
        "gigaproducts_per_second": 1e-9 * products / seconds,
        "peak_gigaproducts": 1e-9 * peak.products,
        "gigaangles_per_second": 1e-9 * angles / seconds,
        "peak_gigaangles": 1e-9 * peak.angles,
        "share": at_peak / seconds,
    }
