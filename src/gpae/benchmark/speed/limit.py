"""How far the solver is from what a core can do: its products, sines and cosines at the core's own peak rates.

A linearisation of one row takes, with D open columns, S features, d latents and T features of the density,

    S (D + d D + 2 d) + T (2 d + d (d + 1) / 2)  fused products  and  S + T  sines with their cosines.

Measured are the two searches of a plan, as :mod:`gpae.search.plans` asks for them: the relaxed one, from where people
before it went, and the one whose categories are settled. Each is timed whole, and so is the same number of
linearisations alone. ``linearising`` is the share of the search's time that these take; the rest are its steps, its
bookkeeping, rows that are fetched and lanes that wait. ``at_peak`` is what their products, sines and cosines would take
at the peak (:mod:`gpae.kernels.peak`), as a share of what they do take; ``share`` the same of the whole search. Beside
it stands what products of the same shapes, sines and cosines take by the library's own functions, one after the other.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from gpae.benchmark.speed.subject import Subject
from gpae.benchmark.speed.work import problem_of
from gpae.explainers.gpae import GPAE
from gpae.kernels.lanes import Lanes
from gpae.kernels.peak import Peak, peak_of_a_core
from gpae.progress import report
from gpae.search.compiled import COARSE, Walker, walker
from gpae.search.polish import pinned
from gpae.search.problem import Problem, Surface

__all__ = ["BOTH", "angles_of_a_point", "beside_the_peak", "products_of_a_point"]

BOTH = "both"
_TOGETHER, _TIMES = 512, 5
"""Rows that the library is given at once, and how often it is timed."""
_LOOKS = 1, 9
"""Linearisations of a row; what lies between the two is timed."""


def products_of_a_point(S: int, D: int, d: int, T: int) -> int:
    """Fused products of a linearisation."""
    return S * (D + d * D + 2 * d) + T * (2 * d + d * (d + 1) // 2)


def angles_of_a_point(S: int, T: int) -> int:
    """Sines of a linearisation, with their cosines."""
    return S + T


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """One of a plan's searches: what is asked, from where, who answers, and how large a point is."""

    name: str
    surface: Surface
    problem: Problem
    start: Float[Tensor, "B D"]
    walker: Walker

    @property
    def lanes(self) -> Lanes:
        """The compiled search in single precision, which does most of the work."""
        assert isinstance(self.walker.single, Lanes)
        return self.walker.single

    def measured(self, peak: Peak) -> dict[str, float]:
        """Seconds of the search, of its linearisations alone, of these at the peak, and by the library."""
        started = time.perf_counter()
        solution = self.walker.descend(self.problem, self.start, COARSE)
        seconds = time.perf_counter() - started
        points = int(solution.iterations.sum()) + len(self.start)
        S, d, T = len(self._frequencies()), len(self.surface.model.theta), len(self.surface.density.weights)
        products, angles = products_of_a_point(S, len(self.lanes.open), d, T), angles_of_a_point(S, T)
        return {
            "points": points,
            "seconds": seconds,
            "alone": points * self._alone(),
            "peak": points * (products / peak.products + angles / peak.angles),
            "library": points * self._by_the_library(d, T),
        }

    def _alone(self) -> float:
        """Seconds of one linearisation by itself, without what it takes to begin."""
        once, often = (_timed(partial(self.lanes.linearise, self.problem.tensors(), self.start, n)) for n in _LOOKS)
        return (often - once) / ((_LOOKS[1] - _LOOKS[0]) * len(self.start))

    def _by_the_library(self, d: int, T: int) -> float:
        """Seconds a row of a linearisation's two products, sines and cosines by torch, in single precision."""
        Z = self._frequencies()[:, self.lanes.open].float().contiguous()
        x = torch.rand(_TOGETHER, Z.shape[1])
        slopes, angles = torch.rand(d * _TOGETHER, len(Z)), torch.rand(_TOGETHER, len(Z) + T)
        return _timed(lambda: (torch.mm(x, Z.T), torch.mm(slopes, Z), angles.sin(), angles.cos())) / _TOGETHER

    def _frequencies(self) -> Float[Tensor, "S D"]:
        return self.surface.model.encoder.frequencies  # type: ignore[attr-defined]


def beside_the_peak(subject: Subject, n_rows: int = 2000, repeats: int = 7) -> pd.DataFrame:
    """A line for each search and one for both, on one thread: medians, and the least and the most of the share.

    No line where nothing is compiled.
    """
    searches, threads = list(_searches(subject, n_rows)), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        lines: list[dict[str, Any]] = []
        for repeat in range(repeats):
            report(f"the solver beside the peak, {subject.name}", repeat / repeats)
            peak = peak_of_a_core()
            if not searches or peak is None:
                return pd.DataFrame()
            each = [search.measured(peak) for search in searches]
            rates = {"peak_gigaproducts": 1e-9 * peak.products, "peak_gigaangles": 1e-9 * peak.angles}
            lines += [{"search": one.name} | line | rates for one, line in zip(searches, each, strict=True)]
            lines.append({"search": BOTH} | {name: sum(line[name] for line in each) for name in each[0]} | rates)
    finally:
        torch.set_num_threads(threads)
    return _summary(pd.DataFrame(lines)).assign(dataset=subject.name, rows=n_rows)


def _searches(subject: Subject, n_rows: int) -> Iterator[_Search]:
    """As a plan asks for them; of a data set without categories the first alone, and none where nothing is compiled."""
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    plans, problem, fixed = method._plan_search(), problem_of(subject, n_rows), torch.as_tensor(method.layout_.fixed)
    discrete = torch.as_tensor(method.layout_.discrete)
    first, second = (walker(plans.surface, held) for held in (fixed, fixed | discrete))
    if first is None or second is None or plans.experience is None:
        return
    start = plans.experience.start(plans.surface, problem)
    yield _Search("relaxed", plans.surface, problem, start, first)
    if bool(discrete.any()):
        relaxed = plans.relax(problem).u
        settled = pinned(problem, method.layout_, relaxed)
        yield _Search("categories settled", plans.surface, settled, relaxed, second)


def _summary(lines: pd.DataFrame) -> pd.DataFrame:
    """One line a search."""
    each = lines.assign(
        microseconds_each=1e6 * lines["seconds"] / lines["points"],
        alone_microseconds=1e6 * lines["alone"] / lines["points"],
        library_microseconds=1e6 * lines["library"] / lines["points"],
        linearising=lines["alone"] / lines["seconds"],
        at_peak=lines["peak"] / lines["alone"],
        share=lines["peak"] / lines["seconds"],
    ).drop(columns=["seconds", "alone", "peak", "library"])
    by_search = each.groupby("search", sort=False)
    spread = {"share_least": by_search["share"].min(), "share_most": by_search["share"].max()}
    return by_search.median().assign(**spread).reset_index()


def _timed(work: Callable[[], object]) -> float:
    """The best of some runs."""
    best = float("inf")
    for _ in range(_TIMES):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best
