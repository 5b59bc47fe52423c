"""Run a plan: benches side by side in processes of one thread each, finished cells kept, time left foretold."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from gpae.benchmark.cell_files import CellFiles
from gpae.benchmark.plan import Bench, Cell, Plan
from gpae.progress import instead, report

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
    workers = min(n_workers or os.cpu_count() or 1, len(benches))
    if workers > 1:
        _side_by_side(folder, plan, work, benches, files, workers)
        return
    before = _threads(1)  # as the processes have: times and last bits are to be the same
    try:
        for bench, cells in benches:
            with instead(lambda: _report(files, plan)):  # how far one training of thousands is, tells nobody anything
                work(folder, plan, bench, cells)
            _report(files, plan)
    finally:
        _threads(before)


def _side_by_side(
    folder: Path, plan: Plan, work: Work, benches: list[tuple[Bench, list[Cell]]], files: CellFiles, workers: int
) -> None:
    # spawned, not forked: a forked child inherits the locks of torch's threads
    context = multiprocessing.get_context("spawn")
    errors: list[BaseException] = []
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_threads, initargs=(1,)) as pool:
        waiting: set[Future[None]] = {pool.submit(work, folder, plan, bench, cells) for bench, cells in benches}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
                errors += [error for future in done if (error := future.exception()) is not None]
                _report(files, plan)
        except BaseException:
            _stop(pool)
            raise
    if errors:
        raise errors[0]


def _stop(pool: ProcessPoolExecutor) -> None:
    """At once: a bench may have an hour to go, and what it has finished is on disk."""
    for process in list(pool._processes.values()):
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def _largest_first(benches: dict[Bench, list[Cell]]) -> list[tuple[Bench, list[Cell]]]:
    """Adult takes longest; started last it would leave the other cores idle at the end."""
    return sorted(benches.items(), key=lambda item: (item[0].dataset != "adult", -len(item[1]), item[0]))


def _threads(n: int) -> int:
    """Set PyTorch's threads and return how many there were."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n)
    return before


def _report(files: CellFiles, plan: Plan) -> None:
    left = len(files.unfinished(plan.cells))
    report("running the study", 1.0 - left / len(plan.cells))
