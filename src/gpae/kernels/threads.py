"""Rows that the threads of a compiled function take from one queue."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch

__all__ = ["from_one_queue"]

_CORES = os.cpu_count() or 1
_FEW = 512
"""Rows that one thread does alone where they take a few microseconds each: others would have to be woken."""


class _Queue(ctypes.Structure):
    """queue.h's."""

    _fields_ = (("next", ctypes.c_int64), ("end", ctypes.c_int64))


def from_one_queue(n: int, work: Callable[[Any], int], alone: int = _FEW) -> None:
    """Call ``work(queue)`` on as many threads as torch may use; each takes rows until none of the n are left.

    ``work`` returns 0 if all is well. This thread works too, and does up to ``alone`` rows by itself; ctypes lets go of
    the interpreter's lock while C runs.
    """
    queue = _Queue(0, n)
    workers = min(torch.get_num_threads(), _CORES) if n > alone else 1
    # whoever asks works as well: one thread less to wake and to wait for
    helpers = [_threads(workers - 1, os.getpid()).submit(work, ctypes.byref(queue)) for _ in range(workers - 1)]
    try:
        failed = work(ctypes.byref(queue))
    finally:
        failures = [helper.result() for helper in helpers]
    if failed or any(failures):
        raise MemoryError("the compiled search found no memory for its rows")


@lru_cache(maxsize=4)
def _threads(workers: int, process: int) -> ThreadPoolExecutor:
    """Threads that wait for work, made once: a forked process has none of its parent's."""
    return ThreadPoolExecutor(workers, thread_name_prefix="gpae")
