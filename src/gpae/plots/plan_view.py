"""What a picture or a page needs to know about one person's plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpae.plots.numbers import number, pair, percent

__all__ = ["Change", "LevelChange", "NumberChange", "PlanView", "clipped", "plausibility_text", "survival_text"]

MISSING = "missing"


@dataclass(frozen=True, slots=True, eq=False)
class NumberChange:
    """A numeric feature that the plan changes, in the user's units; None or NaN where it is missing."""

    name: str
    before: float | None
    after: float | None
    reference: NDArray[np.float64]
    """Quantiles of the favourable training rows at even steps from minimum to maximum (101 will do)."""
    decimals: int | None = None
    """Decimal places to print; None: as many as it takes."""
    holds: tuple[float, float] | None = None
    """Between which values the decision stays, all else as in the plan; None: not known."""
    told: str = ""
    """The change as a sentence, where it has been put in words already."""

    def __post_init__(self) -> None:
        for end in ("before", "after"):
            value = getattr(self, end)
            if value is not None and np.isnan(value):
                object.__setattr__(self, end, None)

    @property
    def texts(self) -> tuple[str, str]:
        """Return both values as printed."""
        if self.before is not None and self.after is not None:
            return pair(self.before, self.after, self.decimals)
        return self._text(self.before), self._text(self.after)

    def _text(self, value: float | None) -> str:
        return MISSING if value is None else number(value, 6, self.decimals)

    @property
    def sentence(self) -> str:
        """Return the change as an instruction."""
        if self.told:
            return self.told
        before, after = self.texts
        if self.before is None or self.after is None:
            return f"Change {self.name} from {before} to {after}."
        verb = "Raise" if self.after > self.before else "Lower"
        return f"{verb} {self.name} from {before} to {after}."


@dataclass(frozen=True, slots=True, eq=False)
class LevelChange:
    """A categorical, ordinal or binary feature that the plan changes."""

    name: str
    before: str
    after: str
    shares: Mapping[str, float] = field(default_factory=dict)
    """Share of each level among the favourable training rows, from 0 to 1."""
    told: str = ""
    """The change as a sentence, where it has been put in words already."""

    @property
    def texts(self) -> tuple[str, str]:
        """Return both levels."""
        return self.before, self.after

    @property
    def sentence(self) -> str:
        """Return the change as an instruction."""
        return self.told or f"Change {self.name} from {self.before} to {self.after}."


Change: TypeAlias = NumberChange | LevelChange


@dataclass(frozen=True, slots=True, eq=False)
class PlanView:
    """One plan for one person."""

    outcome: str
    """The outcome wanted, in words, such as ``income >50K``."""
    changes: tuple[Change, ...]
    unchanged: tuple[str, ...]
    probability_before: float
    probability_after: float
    plausibility: float | None = None
    """Percentile, 0 to 100, of the plan's density among the favourable training rows."""
    survival: float | None = None
    """The share of retrained models that favour the plan."""

    @property
    def headline(self) -> str:
        """Return in one line what the plan achieves."""
        before, after = percent(self.probability_before), percent(self.probability_after)
        if not self.changes:
            return f"Nothing changes: the probability of {self.outcome} is {before}"
        many = len(self.changes)
        subject = "1 change takes" if many == 1 else f"{many} changes take"
        return f"{subject} the probability of {self.outcome} from {before} to {after}"


def plausibility_text(percentile: float | None) -> str:
    """Say what the percentile means; empty where there is none."""
    if percentile is None or not np.isfinite(percentile):
        return ""
    return f"More plausible than {percent(percentile / 100)} of the favourable training rows"


def survival_text(share: float | None) -> str:
    """Say what the share means; empty where there is none."""
    if share is None or not np.isfinite(share):
        return ""
    return f"{percent(share)} of retrained models would still say yes"


def clipped(text: str, most: int) -> str:
    """Return the text on one line, its end cut off where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
