"""Ours beside DiCE and NICE: the same people and the same model, block after block in turn."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpae.benchmark.peers.case import Case
from gpae.benchmark.peers.conditions import DEFAULT, SPARSE, Condition, conditions
from gpae.benchmark.peers.crew import OURS, Crew, Method, crew_of
from gpae.benchmark.peers.environment import DICE, NICE
from gpae.benchmark.peers.measures import Measures
from gpae.benchmark.peers.plain.columns import Array
from gpae.benchmark.peers.terms import Terms
from gpae.benchmark.peers.worker import Worker
from gpae.dataset import Dataset
from gpae.files import written_whole
from gpae.progress import report

__all__ = ["METHODS", "Comparison", "Crew", "Method", "Terms", "compare", "whole_crew"]

_TOGETHER = 1000
"""People in one call of ours, which answers many at once; the peers go through their block row by row."""

METHODS = (
    Method("DiCE random", "dice", "random"),
    Method("DiCE genetic", "dice", "genetic"),
    Method("NICE sparsity", "nice", "sparsity"),
    Method("NICE plausibility", "nice", "plausibility"),
    Method(DEFAULT, OURS, "plausible"),
    Method("gpae near", OURS, "near"),
    Method(SPARSE, OURS, "sparse"),
)


def whole_crew(case: Path, environments: Path) -> Crew:
    """DiCE and NICE in their environments, and ours in this one."""
    return crew_of((DICE, NICE), case, environments)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What came out."""

    figures: pd.DataFrame
    """One line a method."""
    conditions: list[Condition]
    about: dict[str, Any]
    """The model, the peers' versions, and how busy the machine was when each round began."""


def compare(folder: Path, dataset: Dataset, terms: Terms, crew: Callable[[Path], Crew]) -> Comparison:
    """Run the rounds that are not finished yet, measure, and write ``peers.csv`` and ``conditions.csv``.

    Parameters
    ----------
    folder
        Finished rounds are kept in its ``cells``, the model and the rows in its ``shared``.
    crew
        Brings the workers for the folder of a model; not asked where every round is finished.
    """
    case = Case.of(folder / "shared" / f"{dataset.name}-{terms.seed}", dataset, terms.seed)
    people, cells = case.first(terms.rows), folder / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    todo = [number for number in range(terms.rounds) if not (cells / terms.file(number)).is_file()]
    if todo:
        _run(case, terms, todo, crew(case.folder), cells)
    rounds = [json.loads((cells / terms.file(n)).read_text(encoding="utf-8")) for n in range(terms.rounds)]
    compared = _compared(case, people, rounds)
    tables = {"peers": compared.figures, "conditions": pd.DataFrame([asdict(one) for one in compared.conditions])}
    for name, table in tables.items():
        with written_whole(folder / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False, float_format="%.6g")
    return compared


def _run(case: Case, terms: Terms, todo: Sequence[int], crew: Crew, cells: Path) -> None:
    with crew.at_work(cells, terms.threads) as workers:
        for method in METHODS:  # what is made at the first call only, and caches that are cold
            workers[method.worker].answer(method.call, [0])
        for number in todo:
            load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
            answered = {}
            for place, method in enumerate(METHODS):
                report("comparing", (number + place / len(METHODS)) / terms.rounds)
                answered[method.name] = _answered(workers[method.worker], method, terms.block(number), case)
            done = {"versions": crew.versions, "load": load, "methods": answered}
            with written_whole(cells / terms.file(number)) as temporary:
                temporary.write_text(json.dumps(done), encoding="utf-8")
        report("comparing", 1.0)


def _answered(worker: Worker, method: Method, block: Sequence[int], case: Case) -> dict[str, Any]:
    """Answers for a block; to ours further people are added, who count for its speed and for nothing else."""
    others = np.setdiff1d(np.arange(len(case.queries)), block)[: max(_TOGETHER - len(block), 0)].tolist()
    asked = [*block, *others] if method.worker == OURS else block
    reply = worker.answer(method.call, asked)
    return {"answers": reply.answers[: len(block)], "timed_rows": len(asked), "seconds": reply.seconds}


def _compared(case: Case, people: pd.DataFrame, rounds: Sequence[dict[str, Any]]) -> Comparison:
    measures, lines, scores, rates = Measures.of(case), [], {}, {}
    for method in METHODS:
        mine = [done["methods"][method.name] for done in rounds]
        answers = [answer for part in mine for answer in part["answers"]]
        scored = scores[method.name] = measures.scores(people, answers)
        rate = rates[method.name] = _rates(mine)
        speed = {"rows_per_second": float(np.median(rate)), "slowest": float(rate.min()), "fastest": float(rate.max())}
        timed = {"timed_rows": sum(part["timed_rows"] for part in mine)}
        lines.append({"method": method.name} | asdict(scored.quality()) | speed | timed)
    about = {
        "peers": rounds[-1]["versions"],
        "load": [done["load"] for done in rounds],
        "model": {"accuracy": case.model.meta["accuracy"], "refused": len(case.queries)},
    }
    return Comparison(pd.DataFrame(lines), conditions(scores, rates), about)


def _rates(parts: Sequence[dict[str, Any]]) -> Array:
    """Rows per second of each round."""
    return np.array([part["timed_rows"] / max(part["seconds"], 1e-9) for part in parts])
