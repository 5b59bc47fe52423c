"""What we want to hold against the peers, and whether it does."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gpae.benchmark.peers.measures import Scores
from gpae.benchmark.peers.plain.columns import Array

__all__ = ["DEFAULT", "SPARSE", "Condition", "both", "conditions", "spread"]

DEFAULT, SPARSE = "gpae plausible", "gpae sparse"
_PLAUSIBLE_PEER, _SPARSE_PEER = "DiCE genetic", "NICE sparsity"
_NEARER, _AS_PLAUSIBLE, _MORE_CHANGES, _VALID = 0.6, 1.1, 0.3, 0.995
_FASTER = {"DiCE random": 100, "DiCE genetic": 100, "NICE sparsity": 10, "NICE plausibility": 10}


@dataclass(frozen=True, slots=True)
class Condition:
    """In words, with the figure that decides, and whether it holds."""

    condition: str
    figure: str
    holds: bool


def conditions(scores: Mapping[str, Scores], rates: Mapping[str, Array]) -> list[Condition]:
    """Judge answers and rows per second (of each round), both by method."""
    return [*_plausible(scores), *_sparse(scores), *_sound(scores), *_fast(rates)]


def _plausible(scores: Mapping[str, Scores]) -> Iterator[Condition]:
    for name, measure, most in (("L2", "l2", _NEARER), ("5-NN", "neighbours", _AS_PLAUSIBLE)):
        ours, peer, rows = both(scores, DEFAULT, _PLAUSIBLE_PEER, measure)
        words = f"{DEFAULT}: {name} at most {most:g} of {_PLAUSIBLE_PEER}'s"
        share = ours / peer if peer else np.nan
        yield Condition(words, f"{ours:.2f} / {peer:.2f} = {share:.2f} ({rows} rows)", bool(share <= most))


def _sparse(scores: Mapping[str, Scores]) -> Iterator[Condition]:
    ours, peer, rows = both(scores, SPARSE, _SPARSE_PEER, "changes")
    words = f"{SPARSE}: changes at most {_SPARSE_PEER}'s + {_MORE_CHANGES:g}"
    yield Condition(words, f"{ours:.2f} against {peer:.2f} ({rows} rows)", bool(ours <= peer + _MORE_CHANGES))
    ours, peer, rows = both(scores, SPARSE, _SPARSE_PEER, "l2")
    words = f"{SPARSE}: L2 smaller than {_SPARSE_PEER}'s"
    yield Condition(words, f"{ours:.2f} against {peer:.2f} ({rows} rows)", bool(ours < peer))


def both(scores: Mapping[str, Scores], ours: str, peer: str, measure: str) -> tuple[float, float, int]:
    """The means of two methods over the people to whom both gave a valid answer.

    Else a peer would be the nearer for not answering those from whom it is far.
    """
    common = scores[ours].valid & scores[peer].valid
    if not common.any():
        return float("nan"), float("nan"), 0
    mine, theirs = (float(getattr(scores[name], measure)[common].mean()) for name in (ours, peer))
    return mine, theirs, int(common.sum())


def _sound(scores: Mapping[str, Scores]) -> Iterator[Condition]:
    for name in (DEFAULT, SPARSE):
        ours = scores[name].quality()
        yield Condition(f"{name}: valid at least {_VALID:g}", f"{ours.valid:.4g}", ours.valid >= _VALID)
        yield Condition(f"{name}: integers whole", f"{ours.whole:.4g}", ours.whole == 1.0)
        yield Condition(f"{name}: immutables untouched", f"{ours.immutables_kept:.4g}", ours.immutables_kept == 1.0)


def _fast(rates: Mapping[str, Array]) -> Iterator[Condition]:
    """Ratios within a round, in which all were timed one after the other; their median decides."""
    for name in (DEFAULT, SPARSE):
        for peer, times in _FASTER.items():
            ratio = rates[name] / rates[peer]
            words = f"{name}: at least {times} x {peer}'s rows/s"
            yield Condition(words, spread(ratio), bool(np.median(ratio) >= times))


def spread(figures: Array) -> str:
    """The median of several figures, and their range."""
    return f"{np.median(figures):.3g} ({figures.min():.3g}–{figures.max():.3g})"
