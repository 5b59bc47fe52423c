"""How long one person waits, everything being warm."""

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpae.benchmark.speed.subject import Subject
from gpae.progress import report

__all__ = ["one_row"]

_WARM = 5


def one_row(subject: Subject, plans: Sequence[int] = (1, 4), people: int = 200) -> pd.DataFrame:
    """The median and the 95th percentile of the milliseconds of one call for one person, by the number of plans."""
    lines = []
    for k in plans:
        taken = []
        for person in range(-_WARM, people):
            report(f"one person of {subject.name}, k = {k}", max(person, 0) / people)
            table = subject.rows(1, person % len(subject.people))
            started = time.perf_counter()
            subject.explainer.explain(table, k=k)
            taken.append(1e3 * (time.perf_counter() - started))
        p50, p95 = np.percentile(taken[_WARM:], [50, 95])
        lines.append({"dataset": subject.name, "k": k, "people": people, "p50_ms": p50, "p95_ms": p95})
    return pd.DataFrame(lines)
