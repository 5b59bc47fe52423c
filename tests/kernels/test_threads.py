"""Rows that several threads take from one queue."""

import threading

import pytest
import torch

from gpae.kernels import threads
from gpae.kernels.threads import from_one_queue


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_CORES", 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)


def test_whoever_asks_works_too_and_one_helper() -> None:
    there, together = [], threading.Barrier(2, timeout=10)

    def work(queue: object) -> int:
        there.append(threading.current_thread())
        together.wait()  # neither goes on before both have come
        return 0

    from_one_queue(1000, work)
    assert len(set(there)) == 2
    assert threading.current_thread() in there


def test_few_rows_are_done_by_whoever_asks_alone() -> None:
    there = []

    def work(queue: object) -> int:
        there.append(threading.current_thread())
        return 0

    from_one_queue(1000, work, alone=1000)
    assert there == [threading.current_thread()]


@pytest.mark.parametrize("mine", [True, False])
def test_a_failure_of_any_thread_is_told(mine: bool) -> None:
    asks = threading.current_thread()
    with pytest.raises(MemoryError):
        from_one_queue(1000, lambda queue: int((threading.current_thread() is asks) == mine))


def test_an_error_here_waits_for_the_helper_before_it_is_raised() -> None:
    asks, done = threading.current_thread(), []

    def work(queue: object) -> int:
        if threading.current_thread() is asks:
            raise ValueError("here")
        done.append(True)
        return 0

    with pytest.raises(ValueError, match="here"):
        from_one_queue(1000, work)
    assert done == [True]
