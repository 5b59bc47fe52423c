"""Run a plan: benches side by side, finished cells kept, time left foretold."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gpae.benchmark.cell_files import CellFiles
from gpae.benchmark.plan import Bench, Cell, Plan
from gpae.benchmark.processes import side_by_side
from gpae.progress import report

__all__ = ["run_cells"]

Work = Callable[[Path, Plan, Bench, Sequence[Cell]], None]
"""Run the cells of one bench and keep each in the folder as soon as it is done."""


def run_cells(folder: Path, plan: Plan, work: Work, n_workers: int | None = None) -> None:
    """Run what is not finished yet.

    An interrupt loses the cells under way, and models that were fitted but not kept, and nothing else. An error in one
    bench is raised when the others are done.
    """
    files = CellFiles(folder / "cells")
    files.folder.mkdir(parents=True, exist_ok=True)
    todo = files.unfinished(plan.cells)
    if not todo:
        return
    benches = _largest_first(plan.by_bench(todo))
    tasks = [partial(work, folder, plan, bench, cells) for bench, cells in benches]
    side_by_side(tasks, n_workers, partial(_report, files, plan))


def _largest_first(benches: dict[Bench, list[Cell]]) -> list[tuple[Bench, list[Cell]]]:
    """Adult takes longest; started last it would leave the other cores idle at the end."""
    return sorted(benches.items(), key=lambda item: (item[0].dataset != "adult", -len(item[1]), item[0]))


def _report(files: CellFiles, plan: Plan) -> None:
    left = len(files.unfinished(plan.cells))
    report("running the study", 1.0 - left / len(plan.cells))
