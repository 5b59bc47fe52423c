"""Our side of a worker: a process that answers lines of JSON with lines of JSON (:mod:`plain.serving` is its side)."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpae.errors import GpaeError

__all__ = ["Reply", "Worker", "WorkerError", "working"]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
_PLAIN = {"PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}
"""Only the packages of the environment; and a log that is complete when a worker is ended."""
_LAST_LINES = 15


class WorkerError(GpaeError):
    """A worker ended before its time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker said.

    Parameters
    ----------
    answers
        One entry a row, None where there is no answer; not more than were to be told.
    asked, answered
        The rows that were reached within the limit, and those of them with an answer.
    seconds
        That finding the answers took.
    """

    answers: list[dict[str, Any] | None]
    asked: int
    answered: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Worker:
    """A process that has loaded its library and its files, and waits."""

    name: str
    process: "subprocess.Popen[str]"
    log: Path

    def answer(
        self,
        method: str,
        rows: Sequence[int],
        *,
        batch: int | None = None,
        limit: float | None = None,
        tell: int | None = None,
    ) -> Reply:
        """Ask for rows of the queries, by their positions.

        Parameters
        ----------
        batch
            So many rows go into one call of the method; None: all.
        limit
            Seconds after which no further call is begun; None: all rows are answered.
        tell
            Only the first so many answers are sent back; None: all.
        """
        assert self.process.stdin is not None
        asked = {"method": method, "rows": list(rows), "batch": batch or len(rows), "limit": limit, "tell": tell}
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; reading says why
        said = self.heard()
        return Reply(**said)

    def heard(self) -> dict[str, Any]:
        """The next line that the worker says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise WorkerError(self._last_words())
        return dict(json.loads(line))

    def _last_words(self) -> str:
        code = self.process.wait()
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = "\n  ".join(lines[-_LAST_LINES:])
        return f"the worker {self.name!r} ended with exit code {code}; the end of its log {self.log}:\n  {last}"


@contextmanager
def working(name: str, command: Sequence[str], log: Path, threads: int, path: Path | None = None) -> Iterator[Worker]:
    """Start a worker, wait until it is ready, and end it with the block.

    Parameters
    ----------
    log
        The file for everything that it prints.
    threads
        How many the mathematics below NumPy and PyTorch may use.
    path
        Where it finds modules beside its environment's own.
    """
    with log.open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            env=_surroundings(threads, path),
        )
        try:
            worker = Worker(name, process, log)
            worker.heard()
            yield worker
        finally:
            process.kill()
            process.communicate()


def _surroundings(threads: int, path: Path | None) -> dict[str, str]:
    """The variables of a worker: nothing of ours that would put other packages in the place of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    kept |= dict.fromkeys(_THREADS, str(threads)) | _PLAIN
    return kept | ({} if path is None else {"PYTHONPATH": str(path)})
