"""The run: cases are drawn and asked, the answers judged, and what is found is counted and written down."""

import json
import sys
import time
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.soak.drawing import cases
from benchmarks.soak.judge import Array, Finding, Json, Judge, unfavourable
from benchmarks.soak.worlds import World
from gpae.errors import InputError

MOST_VIOLATIONS = 200
"""After so many the run ends: they are one mistake, or a few."""


@dataclass
class Tally:
    """Counts by table and kind, and what went wrong."""

    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    violations: list[Json] = field(default_factory=list)
    plans: int = 0
    cases: int = 0
    refused: int = 0
    """Questions that gpae refused as contradictory."""
    asked: set[str] = field(default_factory=set)
    """What was asked already: hypothesis likes to draw the same again, slightly changed."""

    def is_new(self, case: Json, question: Json) -> bool:
        """Whether a question was not asked before; from now on it was."""
        key = json.dumps([case["table"], question])
        new = key not in self.asked
        self.asked.add(key)
        return new

    def add(self, world: World, number: int, people: pd.DataFrame, plans: pd.DataFrame) -> None:
        """Judge the plans of a question."""
        question, schema = world.case["questions"][number], world.case["schema"]
        judge = Judge.of(schema, people, plans)
        p = world.probability(world.as_trained(plans))
        refused = unfavourable(p, question["margin"])
        train = None if world.case["table"] == "synthetic" else world.train
        findings = [*judge.findings(schema, question, plans, train), Finding("favourable", None, refused)]
        for finding in findings:
            self._note(world, number, finding, judge, p)
        of_kind = {f.kind: [g.broken for g in findings if g.kind == f.kind] for f in findings}
        for kind, broken in of_kind.items():
            entry = self.counts.setdefault((world.case["table"], kind), [0, 0, 0])
            for i, n in enumerate((len(plans), int(np.any(broken, axis=0).sum()), int(refused.sum()))):
                entry[i] += n
        self.plans += len(plans)

    def _note(self, world: World, number: int, finding: Finding, judge: Judge, p: Array) -> None:
        for at in np.flatnonzero(finding.broken)[:3]:
            before, after = ({n: float(v[at]) for n, v in side.items()} for side in (judge.before, judge.after))
            case = world.case | {"questions": [world.case["questions"][number]]}
            note = {"kind": finding.kind, "rule": finding.rule, "row": int(judge.row[at]), "probability": float(p[at])}
            self.violations.append(note | {"before": before, "after": after, "case": case})

    def frame(self) -> pd.DataFrame:
        """One line a table and kind."""
        lines = [(*key, *counts) for key, counts in sorted(self.counts.items())]
        return pd.DataFrame(lines, columns=["table", "kind", "plans", "violations", "unfavourable"])


def ask(case: Json, tally: Tally) -> None:
    """Ask everything that a case asks, and judge the answers."""
    new = [number for number, question in enumerate(case["questions"]) if tally.is_new(case, question)]
    if not new:
        return
    world = World.of(case)
    for number in new:
        question = case["questions"][number]
        people = world.asking(question)
        if not len(people):
            continue
        try:
            plans = world.answer(question, people)
        except InputError:
            tally.refused += 1
            continue
        if len(plans):
            tally.add(world, number, people, plans)
    tally.cases += 1


def soak(wanted: int, first_seed: int, tally: Tally) -> None:
    """Draw cases until so many plans were judged, or too much went wrong."""
    start, said = time.monotonic(), 0.0
    rounds = 0

    def one(case: Json) -> None:
        nonlocal said
        if tally.plans >= wanted or len(tally.violations) >= MOST_VIOLATIONS:
            return
        try:
            ask(case, tally)
        except InputError as error:  # a table that nothing can be learnt from
            tally.refused += 1
            print(f"  refused: {error}", file=sys.stderr)
        if time.monotonic() - said > 5:
            said = time.monotonic()
            _progress(tally, wanted, said - start)

    while tally.plans < wanted and len(tally.violations) < MOST_VIOLATIONS:
        seed(first_seed * 1_000_003 + rounds)(_DRAWING(given(cases())(one)))()
        rounds += 1
    _progress(tally, wanted, time.monotonic() - start)


_DRAWING = settings(
    max_examples=20, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


def _progress(tally: Tally, wanted: int, seconds: float) -> None:
    rate, wrong = tally.plans / max(seconds, 1e-9), len(tally.violations)
    print(
        f"{tally.plans:,} of {wanted:,} plans, {tally.cases} cases, {wrong} violations, {seconds:.0f} s, {rate:.0f}/s",
        file=sys.stderr,
        flush=True,
    )
