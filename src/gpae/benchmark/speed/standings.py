"""What we want to hold against the peers on speed, and whether it does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gpae.benchmark.peers.conditions import Condition, both, spread
from gpae.benchmark.peers.measures import Scores
from gpae.benchmark.peers.plain.columns import Array, Mask

__all__ = [
    "ARRAYS_NAME",
    "CFRL_ARRAYS_NAME",
    "CFRL_NAME",
    "DICE_NAMES",
    "OURS_NAME",
    "Standing",
    "standing_conditions",
]

OURS_NAME, ARRAYS_NAME = "gpae", "gpae on arrays"
"""A whole call, from a table to an answer in words; and the search alone, as peers who work on arrays are timed."""
DICE_NAMES = ("DiCE random", "DiCE genetic")
CFRL_NAME, CFRL_ARRAYS_NAME = "CFRL", "CFRL on arrays"
"""One policy: its rows prepared by the library's own functions, and by plain arithmetic, which is faster."""
_SOUND, _FASTER, _FASTER_THAN_DICE = 0.99, 50, 1000


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What a method did on a case."""

    scores: Scores
    """Of all people."""
    asked: Mask
    """Whom of them it reached within the limit."""
    rates: Array
    """Answers a second, round by round."""
    ours: bool

    @property
    def rate(self) -> float:
        """The median over rounds."""
        return float(np.median(self.rates))

    @property
    def sound(self) -> bool:
        """Whether nearly all answers are valid once they are rounded."""
        return self.scores.of(self.asked).quality().valid >= _SOUND


def standing_conditions(case: str, standings: Mapping[str, Standing], *, raced: bool) -> list[Condition]:
    """Judge a case; ``raced``: also how many times faster ours is."""
    found = [*_sound(case, standings[OURS_NAME]), *_beside_cfrl(case, standings)]
    return [*found, *_faster(case, standings), *_faster_than_dice(case, standings)] if raced else found


def _sound(case: str, ours: Standing) -> Iterator[Condition]:
    quality = ours.scores.of(ours.asked).quality()
    yield Condition(f"{case}: ours valid after rounding, all", f"{quality.valid:.4g}", quality.valid == 1.0)
    yield Condition(f"{case}: ours violate nothing", f"{quality.violations:.4g}", quality.violations == 0.0)


def _faster(case: str, standings: Mapping[str, Standing]) -> Iterator[Condition]:
    """Against the fastest of those peers whose answers hold."""
    peers = {name: one for name, one in standings.items() if not one.ours and one.sound}
    words = f"{case}: ours at least {_FASTER} x the fastest peer with {_SOUND:g} valid"
    ways = {ARRAYS_NAME: f"{words}, arrays to arrays, as it is timed", OURS_NAME: f"{words}, whole calls"}
    nearer = f"{case}: ours at most as far (L2) as that peer"
    if not peers:
        yield from (Condition(way, "no such peer", False) for way in ways.values())
        yield Condition(nearer, "no such peer", False)
        return
    name = max(peers, key=lambda peer: peers[peer].rate)
    for mine, way in ways.items():
        ratio = standings[mine].rates / peers[name].rates
        yield Condition(way, f"{spread(ratio)}, {name}", bool(np.median(ratio) >= _FASTER))
    own, theirs, rows = both({n: one.scores for n, one in standings.items()}, OURS_NAME, name, "l2")
    yield Condition(nearer, f"{own:.2f} against {theirs:.2f} ({rows} rows)", bool(own <= theirs))


def _faster_than_dice(case: str, standings: Mapping[str, Standing]) -> Iterator[Condition]:
    for name in DICE_NAMES:
        ratio = standings[OURS_NAME].rates / standings[name].rates
        words = f"{case}: ours at least {_FASTER_THAN_DICE:,} x {name}"
        yield Condition(words, spread(ratio), bool(np.median(ratio) >= _FASTER_THAN_DICE))


def _beside_cfrl(case: str, standings: Mapping[str, Standing]) -> Iterator[Condition]:
    """Where it takes part, who has learnt for this one model before; whole calls of ours."""
    there = [name for name in (CFRL_NAME, CFRL_ARRAYS_NAME) if name in standings]
    for name in there:
        ratio = standings[OURS_NAME].rates / standings[name].rates
        figure = f"{spread(ratio)} of its answers a second"
        yield Condition(f"{case}: ours faster than {name}", figure, bool(np.median(ratio) > 1.0))
    for name in there[:1]:  # both give the same answers
        own, theirs, rows = both({n: one.scores for n, one in standings.items()}, OURS_NAME, name, "l2")
        words = f"{case}: ours at most as far (L2) as {name}"
        yield Condition(words, f"{own:.2f} against {theirs:.2f} ({rows} rows)", bool(own <= theirs))
