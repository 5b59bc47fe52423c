"""Counted work of a plan, over all that is tried for it: iterations of its relaxed problems, looks in its polish."""

import numpy as np
import pandas as pd

from gpae.benchmark.speed.subject import Subject
from gpae.explainers.gpae import GPAE
from gpae.search.problem import Problem
from gpae.search.work import Work

__all__ = ["problem_of", "work_of_a_plan"]


def problem_of(subject: Subject, n_rows: int) -> Problem:
    """The relaxed problems of some people, as the method itself poses them."""
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    x = subject.encoded(n_rows)
    return method._plan_search().problem(x, np.ones(n_rows, np.int64), *method.layout_.box(x))


def work_of_a_plan(subject: Subject, n_rows: int = 3000) -> pd.DataFrame:
    """Median, 99th percentile and mean of the first relaxed problem, and of all that a whole plan takes.

    ``stalled`` is the share of the people of whose relaxed problems, the first or all, one or more ended before it had
    arrived.
    """
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    search, x = method._plan_search(), subject.encoded(n_rows)
    problem = problem_of(subject, n_rows)
    first = Work.of(problem, search.relax(problem))
    work = search.one_plan(x, np.ones(n_rows, np.int64), *method.layout_.box(x)).work
    counts = {
        "iterations of the first search": (first.iterations, first.stalled),
        "iterations": (work.iterations, work.stalled),
        "looks": (work.looks, work.stalled),
    }
    return pd.DataFrame(
        {
            "dataset": subject.name,
            "counted": name,
            "rows": n_rows,
            "median": np.median(n.numpy()),
            "p99": np.percentile(n.numpy(), 99),
            "mean": np.mean(n.numpy()),
            "stalled": float((stalled > 0).double().mean()),
        }
        for name, (n, stalled) in counts.items()
    )
