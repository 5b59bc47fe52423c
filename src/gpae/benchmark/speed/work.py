"""Counted work of a plan, over all that is tried for it: iterations of its relaxed problems, looks in its polish."""

import numpy as np
import pandas as pd

from gpae.benchmark.speed.subject import Subject
from gpae.explainers.gpae import GPAE
from gpae.search.problem import Problem

__all__ = ["problem_of", "work_of_a_plan"]


def problem_of(subject: Subject, n_rows: int) -> Problem:
    """The relaxed problems of some people, as the method itself poses them."""
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    x = subject.encoded(n_rows)
    return method._plan_search().problem(x, np.ones(n_rows, np.int64), *method.layout_.box(x))


def work_of_a_plan(subject: Subject, n_rows: int = 3000) -> pd.DataFrame:
    """Median, 99th percentile and mean of the first relaxed problem, and of all that a whole plan takes.

    ``stalled`` is the share of the people of whose relaxed problems one or more ended before they had arrived.
    """
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    search, x = method._plan_search(), subject.encoded(n_rows)
    first = search.relax(problem_of(subject, n_rows)).iterations
    work = search.one_plan(x, np.ones(n_rows, np.int64), *method.layout_.box(x)).work
    counts = {"iterations of the first search": first, "iterations": work.iterations, "looks": work.looks}
    return pd.DataFrame(
        {
            "dataset": subject.name,
            "counted": name,
            "rows": n_rows,
            "median": np.median(n),
            "p99": np.percentile(n, 99),
            "mean": np.mean(n),
            "stalled": float((work.stalled > 0).double().mean()),
        }
        for name, n in ((name, count.numpy()) for name, count in counts.items())
    )
