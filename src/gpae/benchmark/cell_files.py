"""The finished cells of a study on disk: figures as JSON, answers as safetensors; an interrupted study goes on."""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from gpae.arrays import Mask, Rows
from gpae.benchmark.plan import Cell
from gpae.benchmark.record import Record
from gpae.benchmark.tuning import Trial
from gpae.files import written_whole

__all__ = ["Answers", "CellFiles"]

_TIMES = "times.jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a method answered: one entry a query, NaN where it has no answer.

    Parameters
    ----------
    favoured
        Queries that the method's own classifier favours as they are: it has nothing to say to these people, although
        the shared classifier refuses them.
    """

    favoured: Mask
    found: Mask
    counterfactual: Rows


@dataclass(frozen=True, slots=True)
class CellFiles:
    """The folder ``cells`` of a study."""

    folder: Path

    def records(self, name: str) -> list[Record] | None:
        """The figures of a finished cell; None if it is not finished."""
        path = self.folder / f"{name}.json"
        if not path.is_file():
            return None
        return [Record(**line) for line in json.loads(path.read_text(encoding="utf-8"))]

    def answers(self, name: str) -> Answers:
        """The answers of a finished cell."""
        arrays = safetensors.numpy.load_file(self.folder / f"{name}.safetensors")
        return Answers(arrays["favoured"].astype(bool), arrays["found"].astype(bool), arrays["counterfactual"])

    def keep(self, name: str, records: Iterable[Record], answers: Answers | None = None) -> None:
        """Write the answers first: a cell with figures is finished."""
        if answers is not None:
            arrays: dict[str, NDArray[np.generic]] = {
                "favoured": answers.favoured.astype(np.uint8),
                "found": answers.found.astype(np.uint8),
                "counterfactual": np.ascontiguousarray(answers.counterfactual),
            }
            with written_whole(self.folder / f"{name}.safetensors") as temporary:
                safetensors.numpy.save_file(arrays, temporary)
        lines = [asdict(record) for record in records]
        with written_whole(self.folder / f"{name}.json") as temporary:
            temporary.write_text(json.dumps(lines, indent=0), encoding="utf-8")

    def trials(self, name: str) -> list[Trial] | None:
        """The trials of a method on validation rows; None if they were not made."""
        path = self.folder / f"{name}.trials.json"
        if not path.is_file():
            return None
        return [Trial(**line) for line in json.loads(path.read_text(encoding="utf-8"))]

    def keep_trials(self, name: str, trials: Iterable[Trial]) -> None:
        """Write the trials of a method."""
        lines = [{"settings": dict(trial.settings), "figures": dict(trial.figures)} for trial in trials]
        with written_whole(self.folder / f"{name}.trials.json") as temporary:
            temporary.write_text(json.dumps(lines, indent=0), encoding="utf-8")

    def choice(self, name: str) -> int | None:
        """The number of the trial that a cell was run with; None if that was not written down."""
        path = self.folder / f"{name}.choice.json"
        return int(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None

    def keep_choice(self, name: str, number: int) -> None:
        """Write down the number of the trial that a cell is run with."""
        with written_whole(self.folder / f"{name}.choice.json") as temporary:
            temporary.write_text(json.dumps(number), encoding="utf-8")

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note how long a finished piece of work took; a study that was interrupted adds up its parts."""
        started = time.perf_counter()
        yield
        line = json.dumps({"cell": name, "seconds": round(time.perf_counter() - started, 2)})
        with (self.folder / _TIMES).open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    def seconds(self, names: Iterable[str]) -> dict[str, float]:
        """What each of these cells has taken; one that was run again counts as often."""
        path, wanted = self.folder / _TIMES, set(names)
        taken = dict.fromkeys(wanted, 0.0)
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            entry = json.loads(line)
            if entry["cell"] in wanted:
                taken[entry["cell"]] += entry["seconds"]
        return taken

    def unfinished(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that have no figures yet."""
        return [cell for cell in cells if not (self.folder / f"{cell.name}.json").is_file()]
