"""Where the time of a call goes: its stages, by what a profile says of the functions that are theirs."""

import cProfile
import pstats
import time
from types import ModuleType

import pandas as pd

from gpae import answer_writer, explainer, plan_finder, relaxation
from gpae.benchmark.speed.subject import Subject
from gpae.kernels import finisher, lanes
from gpae.progress import report
from gpae.search import plans, polish
from gpae.table import codec

__all__ = ["STAGES", "by_stage"]

STAGES: dict[str, tuple[ModuleType, str]] = {
    "reading the table": (codec, "encode"),
    "what each person may become": (relaxation, "freedom"),
    "who is refused": (plan_finder, "first_look"),
    "relaxed problem": (plans, "relax"),
    "categories settled": (polish, "_settle"),
    "repaired and tightened": (finisher, "finish"),
    "verified": (explainer, "_verified"),
    "what plans cost": (plan_finder, "priced"),
    "writing the answer": (answer_writer, "write"),
}
"""A stage's name, and the function whose time, with all that it calls, is the stage's.

Writing the answer reads the table of plans back, which is not counted as reading.
"""
_SOLVER = (lanes, "solve")


def by_stage(subject: Subject, n_rows: int = 4000) -> pd.DataFrame:
    """Seconds and shares of the stages of one call, on one profile; the rest is the last line."""
    table = subject.rows(n_rows)
    subject.explainer.explain(table.head(200))
    report(f"profiling {subject.name}", 0.0)
    profile = cProfile.Profile()
    started = time.perf_counter()
    profile.runcall(subject.explainer.explain, table)
    whole = time.perf_counter() - started
    stats = pstats.Stats(profile)
    taken = {stage: _cumulative(stats, *place) for stage, place in STAGES.items()}
    taken["reading the table"] -= _called_by(stats, STAGES["reading the table"], "_read_back")
    taken["everything else"] = whole - sum(taken.values())
    lines = pd.DataFrame({"dataset": subject.name, "stage": list(taken), "seconds": list(taken.values())})
    return lines.assign(
        share=lines["seconds"] / whole,
        microseconds_per_row=1e6 * lines["seconds"] / n_rows,
        compiled_solver_of_all=_cumulative(stats, *_SOLVER) / whole,
    )


def _cumulative(stats: pstats.Stats, module: ModuleType, function: str) -> float:
    """Seconds in a function of a module, with all that it calls."""
    entries = stats.stats.items()  # type: ignore[attr-defined]
    return sum(entry[3] for (file, _, name), entry in entries if name == function and file == module.__file__)


def _called_by(stats: pstats.Stats, place: tuple[ModuleType, str], caller: str) -> float:
    """Of a function's seconds those for one that called it."""
    module, function = place
    entries = stats.stats.items()  # type: ignore[attr-defined]
    return sum(
        times[3]
        for (file, _, name), entry in entries
        if name == function and file == module.__file__
        for (_, _, who), times in entry[4].items()
        if who == caller
    )
