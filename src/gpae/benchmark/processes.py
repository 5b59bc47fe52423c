"""Work side by side, in processes of one thread each; an interrupt ends all of it at once."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

from gpae.progress import instead

__all__ = ["side_by_side"]


def side_by_side(tasks: Sequence[Callable[[], None]], n_workers: int | None, tell: Callable[[], None]) -> None:
    """Run tasks that can be pickled by name; an error of one is raised when the others are done.

    ``n_workers``: None for as many as there are processors; one runs them here, one after the other. ``tell`` says how
    far the work is, and is called now and then.
    """
    if not tasks:
        return
    workers = min(n_workers or os.cpu_count() or 1, len(tasks))
    if workers > 1:
        _in_processes(tasks, workers, tell)
        return
    before = _threads(1)  # as the processes have: times and last bits are to be the same
    try:
        for task in tasks:
            with instead(tell):  # how far one training of thousands is, tells nobody anything
                task()
            tell()
    finally:
        _threads(before)


def _in_processes(tasks: Sequence[Callable[[], None]], workers: int, tell: Callable[[], None]) -> None:
    # spawned, not forked: a forked child inherits the locks of torch's threads
    context = multiprocessing.get_context("spawn")
    errors: list[BaseException] = []
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_threads, initargs=(1,)) as pool:
        waiting: set[Future[None]] = {pool.submit(task) for task in tasks}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
                errors += [error for future in done if (error := future.exception()) is not None]
                tell()
        except BaseException:
            _stop(pool)
            raise
    if errors:
        raise errors[0]


def _stop(pool: ProcessPoolExecutor) -> None:
    """At once: a task may have an hour to go, and what it has finished is on disk."""
    for process in list(pool._processes.values()):
        process.terminate()
    pool.shutdown(wait=False, cancel_futures=True)


def _threads(n: int) -> int:
    """Set PyTorch's threads and return how many there were."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n)
    return before
