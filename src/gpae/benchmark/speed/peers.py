"""Ours beside the peers: the same classifier, people and immutables, three cases, each method at its best batch."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpae.benchmark.peers.case import Case, Learn, gpae_classifier, perceptron
from gpae.benchmark.peers.conditions import Condition
from gpae.benchmark.peers.crew import OURS, Crew, Method, crew_of
from gpae.benchmark.peers.environment import CFNOW, CFRL, DICE, NICE, RELAX, default_folder
from gpae.benchmark.peers.measures import Measures
from gpae.benchmark.speed.contest import Contest
from gpae.benchmark.speed.part import Outcome, Terms
from gpae.benchmark.speed.standings import (
    ARRAYS_NAME,
    CFRL_ARRAYS_NAME,
    CFRL_NAME,
    OURS_NAME,
    Standing,
    standing_conditions,
)
from gpae.datasets import load
from gpae.files import written_whole
from gpae.plots.speed import speed_figure
from gpae.plots.style import to_png, to_svg

__all__ = ["CASES", "FURTHER", "LEARNERS", "METHODS", "SpeedCase", "measure_peers"]

_MANY = (200, 1_000, 10_000, 30_000)
_ENOUGH = 200
"""People whom a fast method is timed on who takes them one by one: a dozen would say little."""
METHODS = (
    Method("DiCE random", "dice", "random"),
    Method("DiCE genetic", "dice", "genetic"),
    Method("NICE sparsity", "nice", "sparsity", (_ENOUGH,)),
    Method("CFNOW greedy", "cfnow", "greedy"),
    Method("ReLax Wachter", "relax", "wachter", _MANY),
    Method("ReLax spheres", "relax", "spheres", _MANY),
    Method("ReLax ProtoCF", "relax", "proto", _MANY),
    Method(OURS_NAME, OURS, "own", _MANY),
)
FURTHER = (
    Method(ARRAYS_NAME, OURS, "arrays", _MANY),
    Method("gpae plausible", OURS, "plausible", (1_000,)),
    Method("gpae near", OURS, "near", (1_000,)),
)
"""On our own classifier: the search alone, from encoded rows to encoded rows, as several of the peers work; and plans
every change of which is needed."""
LEARNERS = (
    Method(CFRL_NAME, "cfrl", "library", (10_000,)),
    Method(CFRL_ARRAYS_NAME, "cfrl", "arrays", (10_000,)),
)
"""Who learns for minutes to answer for one model: on a classifier that is given. One policy, its rows prepared as the
library does it and by plain arithmetic; its worker goes through them in the portions that are best for it."""
_PEERS = (DICE, NICE, CFNOW, RELAX, CFRL)
_LEARNING = "cfrl.json"
"""What its worker leaves in the folder of a case: how long learning took, and how many steps."""
_SHOWN = {
    "case": "case",
    "method": "method",
    "rows": "rows",
    "valid": "valid",
    "l2": "L2",
    "neighbours": "5-NN",
    "violations": "broken",
    "answers_per_second": "answers/s",
    "batch": "batch",
}


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """A data set and a classifier; ``own``: that it is ours, and searched without any detour."""

    name: str
    dataset: str
    learn: Learn
    own: bool

    @property
    def methods(self) -> tuple[Method, ...]:
        """Who meets here."""
        return (*METHODS, *FURTHER) if self.own else (*METHODS, *LEARNERS)


CASES = (
    SpeedCase("adult, GPAE", "adult", gpae_classifier, own=True),
    SpeedCase("fico, GPAE", "fico", gpae_classifier, own=True),
    SpeedCase("adult, MLP", "adult", perceptron, own=False),
)


def measure_peers(folder: Path, terms: Terms) -> Outcome:
    """Run what is not finished, measure, and write ``peers.csv`` and the figure ``peers`` as PNG and SVG."""
    lines: list[dict[str, Any]] = []
    conditions: list[Condition] = []
    about: dict[str, Any] = {}
    for one in CASES:
        contest = _contest(folder, one, terms)
        rounds = _rounds(contest, terms)
        standings = _standings(contest.case, one.methods, rounds, terms)
        lines += [_line(one, name, standing, rounds) for name, standing in standings.items()]
        conditions += standing_conditions(one.name, standings, raced=one.own)
        about[one.name] = _about(contest.case, rounds)
    figures = pd.DataFrame(lines)
    with written_whole(folder / "peers.csv") as temporary:
        figures.to_csv(temporary, index=False, float_format="%.6g")
    _draw(folder, figures)
    return Outcome(figures, _SHOWN, conditions, about)


def _contest(folder: Path, one: SpeedCase, terms: Terms) -> Contest:
    stem = one.name.replace(", ", "-").lower()
    case = Case.of(folder / "shared" / f"{stem}-{terms.seed}", load(one.dataset), terms.seed, one.learn)
    case.first(terms.rows)  # refuse at once what there are not enough people for
    return Contest(stem, case, one.methods, terms, folder / "cells" / "peers")


def _rounds(contest: Contest, terms: Terms) -> list[dict[str, Any]]:
    return contest.rounds(lambda case: _whole_crew(case, contest.methods, terms))


def _whole_crew(case: Path, methods: Sequence[Method], terms: Terms) -> Crew:
    at_work = {method.worker for method in methods}
    peers = [peer for peer in _PEERS if peer.name in at_work]
    return crew_of(peers, case, terms.environments or default_folder())


def _standings(
    case: Case, methods: Sequence[Method], rounds: Sequence[Mapping[str, Any]], terms: Terms
) -> dict[str, Standing]:
    people, measures = case.first(terms.rows), Measures.of(case)
    found = {}
    for method in methods:
        mine = [done["methods"][method.name] for done in rounds]
        answers: list[dict[str, Any] | None] = [None] * len(people)
        asked = np.zeros(len(people), dtype=np.bool_)
        for part in mine:
            asked[part["rows"]] = True
            for row, answer in zip(part["rows"], part["answers"], strict=True):
                answers[row] = answer
        rates = np.array([part["timed_answers"] / max(part["seconds"], 1e-9) for part in mine])
        found[method.name] = Standing(measures.scores(people, answers), asked, rates, method.worker == OURS)
    return found


def _line(one: SpeedCase, name: str, standing: Standing, rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    mine = [done["methods"][name] for done in rounds]
    speed = {
        "answers_per_second": standing.rate,
        "slowest": float(standing.rates.min()),
        "fastest": float(standing.rates.max()),
        "batch": mine[0]["batch"],
        "timed_rows": sum(part["timed_rows"] for part in mine),
    }
    return {"case": one.name, "method": name} | asdict(standing.scores.of(standing.asked).quality()) | speed


def _about(case: Case, rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "peers": rounds[-1]["versions"],
        "load": [done["load"] for done in rounds],
        "model": {"accuracy": case.model.meta["accuracy"], "refused": len(case.queries)},
        "learning": _learning(case.folder / _LEARNING),
    }


def _learning(file: Path) -> dict[str, Any]:
    return {CFRL_NAME: json.loads(file.read_text(encoding="utf-8"))} if file.is_file() else {}


def _draw(folder: Path, figures: pd.DataFrame) -> None:
    figure = speed_figure(figures)
    writers: dict[str, Callable[..., bytes]] = {"png": to_png, "svg": to_svg}
    for suffix, write in writers.items():
        with written_whole(folder / f"peers.{suffix}") as temporary:
            temporary.write_bytes(write(figure))
