"""A small table of people to compare methods on."""

from typing import ClassVar

import numpy as np
import pandas as pd


class Jobs:
    """A table of whole numbers and levels, in which some levels are missing."""

    name, label, favourable, masked = "jobs", "pay", "high", ("sex",)
    features: tuple[str, ...] = ("age", "job", "sex", "hours")
    codes: ClassVar[dict[str, tuple[int, ...]]] = {}

    def split(self, seed: int) -> tuple[pd.DataFrame, ...]:
        rng = np.random.default_rng(seed)
        n = 700
        age, hours = rng.integers(18, 80, n), rng.integers(10, 60, n)
        job = rng.choice(np.array(["clerk", "cook", "owner", None], dtype=object), n)
        worth = 0.05 * (age - 45) + 0.06 * (hours - 35) + (job == "owner") + rng.normal(0, 0.3, n)
        table = pd.DataFrame({"age": age, "job": job, "sex": rng.choice(["f", "m"], n), "hours": hours})
        table["pay"] = np.where(worth > 0, "high", "low")
        return table[:500], table[500:600].reset_index(drop=True), table[600:].reset_index(drop=True)


class Records(Jobs):
    """The same with a number that has states: -9 and -7 for "no record"."""

    name = "records"
    features = ("age", "job", "months", "sex", "hours")
    codes: ClassVar[dict[str, tuple[int, ...]]] = {"months": (-9, -8, -7)}

    def split(self, seed: int) -> tuple[pd.DataFrame, ...]:
        rng = np.random.default_rng(seed + 1)
        parts = []
        for part in super().split(seed):
            months, state = rng.integers(1, 120, len(part)), rng.choice([-9, -7], len(part))
            parts.append(part.assign(months=np.where(rng.random(len(part)) < 0.2, state, months)))
        return tuple(part[[*self.features, self.label]] for part in parts)
