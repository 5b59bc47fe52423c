"""Counted work of a plan: iterations of the relaxed problem, and looks at the map in the polish."""

import numpy as np
import pandas as pd

from gpae.benchmark.speed.subject import Subject
from gpae.explainers.gpae import GPAE
from gpae.search.compiled import finisher
from gpae.search.problem import Problem

__all__ = ["problem_of", "work_of_a_plan"]


def problem_of(subject: Subject, n_rows: int) -> Problem:
    """The relaxed problems of some people, as the method itself poses them."""
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    x = subject.encoded(n_rows)
    return method._plan_search().problem(x, np.ones(n_rows, np.int64), *method.layout_.box(x))


def work_of_a_plan(subject: Subject, n_rows: int = 3000) -> pd.DataFrame:
    """Median and 99th percentile; looks are those at one snapped solution, where the polish is compiled."""
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    search, problem = method._plan_search(), problem_of(subject, n_rows)
    solution = search.relax(problem)
    counts = {"iterations": solution.iterations.numpy()}
    if (polish := finisher(search.surface, search.layout)) is not None:
        counts["looks"] = polish.finish(problem.tensors(), solution.u).looks.numpy()
    return pd.DataFrame(
        {"dataset": subject.name, "counted": name, "rows": n_rows, "median": np.median(n), "p99": np.percentile(n, 99)}
        for name, n in counts.items()
    )
