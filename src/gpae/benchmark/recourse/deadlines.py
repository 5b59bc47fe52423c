"""Whether an answer comes in time, whatever is asked."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from gpae.progress import instead, report
from gpae.tabular import TabularExplainer

__all__ = ["figures"]

_SHORTEST, _LONGEST = 0.05, 2.0
_PREFER = (None, "plausible", "near", "sparse")


def figures(
    explainers: dict[str, TabularExplainer],
    people: pd.DataFrame,
    rules: Sequence[Any],
    *,
    calls: int = 1000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Ask at random: how many people, how many plans, by which taste, under which rules, within which time."""
    rng = np.random.default_rng(seed)
    names = list(explainers)
    lines = []
    for call in range(calls):
        tell = partial(report, "asking", call / calls)
        tell()
        name = names[int(rng.integers(len(names)))]
        deadline = float(np.exp(rng.uniform(np.log(_SHORTEST), np.log(_LONGEST))))
        n = int(np.exp(rng.uniform(0, np.log(len(people)))))
        chosen = people.iloc[rng.choice(len(people), n, replace=False)].reset_index(drop=True)
        asked: dict[str, Any] = {
            "k": int(rng.integers(1, 5)),
            "prefer": _PREFER[int(rng.integers(len(_PREFER)))],
            "constraints": [rule for rule in rules if rng.random() < 0.5],
        }
        started = time.perf_counter()
        with instead(tell):  # how far one call of a thousand is, tells nobody anything
            answer = explainers[name].explain(chosen, deadline=deadline, **asked)
        seconds = time.perf_counter() - started
        lines.append(
            {
                "model": name,
                "deadline": deadline,
                "seconds": seconds,
                "late": seconds > 1.2 * deadline + 0.05,
                "people": n,
                "answered": int(answer.table[answer.table.found].row.nunique()),
                "k": asked["k"],
                "rules": len(asked["constraints"]),
            }
        )
    return lines
