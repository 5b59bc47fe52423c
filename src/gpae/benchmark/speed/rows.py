"""How cost and memory grow with the number of people: tables in portions, as a stream, and some in one piece."""

import resource
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from gpae.benchmark.speed.growth import exponent
from gpae.benchmark.speed.subject import Subject
from gpae.progress import report

__all__ = ["by_rows"]

_PORTION = 10_000
"""People in a call at most: so memory does not grow with the table."""
_AT_ONCE = 100_000
"""People in one call at most, where it is measured what that takes."""
_FROM = 1000
"""From how many people on the exponent is fitted: below, what a call takes by itself is seen."""
_LEAST_SECONDS = 2.0
"""A small table is explained over and over for so long."""


def by_rows(subject: Subject, sizes: Sequence[int] = (100, 1000, 10_000, 100_000, 1_000_000)) -> pd.DataFrame:
    """Seconds and peak memory (MiB) of explaining n people, for rising n, and the exponent from a thousand on.

    ``at_once_mib`` is the peak where all n are explained in one call, whose answer holds them all.
    """
    subject.explainer.explain(subject.rows(min(sizes[-1], _PORTION)))  # what is made at the first call only
    lines = []
    for number, n in enumerate(sorted(sizes)):
        report(f"explaining {n:,} people of {subject.name}", number / len(sizes))
        _forget_peak()
        seconds, found = _explained(subject, n)
        lines.append({"dataset": subject.name, "rows": n, "seconds": seconds, "found": found, "peak_mib": _peak()})
    table = pd.DataFrame(lines).assign(rows_per_second=lambda t: t["rows"] / t["seconds"])
    large = table[table["rows"] >= _FROM]
    table["at_once_mib"] = [_at_once(subject, n) for n in table["rows"]]  # last: what it leaves behind is no stream's
    return table.assign(exponent=exponent(large["rows"], large["seconds"]) if len(large) > 1 else float("nan"))


def _explained(subject: Subject, n: int) -> tuple[float, float]:
    """Mean seconds for n people, portion by portion, and the share of them who got a plan."""
    seconds, times, found = 0.0, 0, 0
    while not times or seconds < _LEAST_SECONDS:
        for first in range(0, n, _PORTION):
            part = subject.rows(min(_PORTION, n - first), first)
            started = time.perf_counter()
            answer = subject.explainer.explain(part)
            seconds += time.perf_counter() - started  # neither the making of the table nor what is asked of the answer
            found += answer.summary().get("found", 0)
        times += 1
    return seconds / times, found / (n * times)


def _at_once(subject: Subject, n: int) -> float:
    """The peak of one call; of as many as a portion it is the stream's."""
    if not _PORTION < n <= _AT_ONCE:
        return float("nan")
    table = subject.rows(n)
    _forget_peak()
    subject.explainer.explain(table)
    return _peak()


def _forget_peak() -> None:
    """Linux begins to count anew; elsewhere the peak is that of the process so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak() -> float:
    """The largest resident memory of this process since the last was forgotten, in MiB."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
