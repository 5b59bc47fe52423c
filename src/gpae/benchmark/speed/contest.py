"""One case of the comparison: all contenders in turn, each at its best batch; finished rounds are kept."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpae.benchmark.peers.case import Case
from gpae.benchmark.peers.crew import Crew, Method
from gpae.benchmark.peers.worker import Worker
from gpae.benchmark.speed.part import Terms
from gpae.files import written_whole
from gpae.progress import report

__all__ = ["Contest"]

_PAUSE = 1.0
"""Seconds before anybody is timed: threads of who worked before spin for a while before they go to sleep."""
_WARM_UP = 1000
"""Rows at most that everybody answers first in each turn: who has waited for minutes is slow at the first call."""


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """Who meets on which case, and the folder of what is finished."""

    name: str
    case: Case
    methods: Sequence[Method]
    terms: Terms
    cells: Path

    def rounds(self, crew: Callable[[Path], Crew]) -> list[dict[str, Any]]:
        """Run the rounds that are not finished yet; return all.

        ``crew`` brings the workers for the folder of a case; it is not asked where every round is finished.
        """
        self.cells.mkdir(parents=True, exist_ok=True)
        numbers = range(self.terms.rounds)
        files = [self.cells / f"{self.name}-{self.terms.file(number)}" for number in numbers]
        todo = [number for number in numbers if not files[number].is_file()]
        if todo:
            ready = crew(self.case.folder)
            with ready.at_work(self.cells, self.terms.threads) as workers:
                batches = self._batches(workers)
                for number in todo:
                    _write(files[number], self._round(number, workers, batches) | {"versions": ready.versions})
        return [_read(file) for file in files]

    def _batches(self, workers: Mapping[str, Worker]) -> dict[str, int]:
        """The best batch of each method, found once; and everything warm: compiled, loaded, made at the first call."""
        file = self.cells / f"{self.name}-{self.terms.words}-batches.json"
        known: dict[str, int] = _read(file) if file.is_file() else {}
        for method in self.methods:
            worker, batch = workers[method.worker], known.get(method.name, method.batches[0])
            if method.name in known or len(method.batches) == 1:
                worker.answer(method.call, self._crowd([], batch), tell=0)
            else:
                batch = self._best_batch(worker, method)
            known[method.name] = batch
        _write(file, known)
        return known

    def _best_batch(self, worker: Worker, method: Method) -> int:
        """The size with most answers a second; larger ones are not tried where they would run into the limit."""
        rates: dict[int, float] = {}
        for size in method.batches:
            report(f"{self.name}: the best batch of {method.name}", len(rates) / len(method.batches))
            if rates and size / max(rates.values()) > self.terms.limit:
                break
            crowd = self._crowd([], size)
            worker.answer(method.call, crowd, tell=0)  # compiled for this size
            reply = worker.answer(method.call, crowd, tell=0)
            rates[size] = reply.answered / max(reply.seconds, 1e-9)
        return max(rates, key=lambda size: rates[size])

    def _round(self, number: int, workers: Mapping[str, Worker], batches: Mapping[str, int]) -> dict[str, Any]:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        answered = {}
        for place, method in enumerate(self.methods):
            share = (number + place / len(self.methods)) / self.terms.rounds
            report(f"{self.name}: {method.name}", share)
            answered[method.name] = self._answered(workers[method.worker], method, number, batches[method.name])
        report(self.name, (number + 1) / self.terms.rounds)
        return {"load": load, "methods": answered}

    def _answered(self, worker: Worker, method: Method, number: int, batch: int) -> dict[str, Any]:
        """Answers for a block; people who fill up its last batch count for the speed and for nothing else."""
        worker.answer(method.call, self._crowd([], min(batch, _WARM_UP)), tell=0)
        time.sleep(_PAUSE)
        block = self.terms.block(number)
        crowd = self._crowd(block, batch * -(-len(block) // batch))
        reply = worker.answer(method.call, crowd, batch=batch, limit=self.terms.limit, tell=len(block))
        return {
            "rows": block[: len(reply.answers)],
            "answers": reply.answers,
            "batch": batch,
            "timed_rows": reply.asked,
            "timed_answers": reply.answered,
            "seconds": reply.seconds,
        }

    def _crowd(self, first: Sequence[int], size: int) -> list[int]:
        """So many people: these first, then all others, over and over."""
        everybody = np.arange(len(self.case.queries))
        order = np.concatenate([np.array(first, dtype=np.intp), np.setdiff1d(everybody, first)])
        return [int(row) for row in np.resize(order, size)]


def _write(file: Path, content: Mapping[str, Any]) -> None:
    with written_whole(file) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8")))
