"""The choice of each method's settings on validation rows: the same few trials and the same rule for everybody.

A method's default and up to four other settings answer refused validation rows. Each is ranked, metric by metric, among
the defaults of all other methods, and the one with the best mean rank is used on the test rows. Everything that is
trained is trained once, with the defaults; the trials change how the answers are searched, or how much of what was
learnt is used.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pandas as pd

from gpae.benchmark.classifiers import Parts
from gpae.benchmark.ranks import SEVEN, mean_ranks
from gpae.explainer import Explainer
from gpae.models.latent_classifier import LatentClassifier
from gpae.table.layout import Layout

__all__ = ["TRIALS", "Trial", "best_trial", "retuned", "trial_name"]

Settings: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings that differ from the default, and the seven metrics on validation rows."""

    settings: Settings
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Margin:
    """A margin in standard deviations of the training logits, and other settings beside it."""

    spreads: float
    beside: Settings = field(default_factory=dict)

    def __call__(self, model: LatentClassifier) -> Settings:
        return {**self.beside, "margin": self.spreads * model.logit_spread_}


def _each(name: str, *values: Any) -> tuple[Settings, ...]:
    return tuple({name: value} for value in values)


_BOUNDARY = (
    {"beta": 0.001},
    _Margin(0.2, {"beta": 0.001}),
    _Margin(0.5, {"beta": 0.001}),
    _Margin(0.5, {"beta": 0.005}),
)

TRIALS: dict[str, Sequence[Settings | _Margin]] = {
    "logistic": _each("step", 1.0, 1.5, 3.0, 4.0),
    "wachter": (
        {"shrink": True},
        {"distance_weight": 0.1},
        {"distance_weight": 0.1, "shrink": True},
        _Margin(0.5),
    ),
    "cchvae": (
        {"norm": 2},
        {"shared_directions": True},
        {"shell_width": 0.3},
        _Margin(0.5),
    ),
    "revise": (*_each("distance_weight", 0.2, 1.0, 2.0), _Margin(0.5)),
    "cruds": (*_each("distance_weight", 0.1, 1.0, 3.0), _Margin(0.5)),
    "clue": (*_each("distance_weight", 1.0, 2.0, 16.0), _Margin(0.5)),
    "face": ({"min_probability": 0.6}, {"min_probability": 0.75}, {"weights": "distance"}, {"n_neighbours": 20}),
    "sae": _each("step", 1.25, 1.5, 2.5, 3.0),
    "counternet": (),
    "gpae-inducing": _BOUNDARY,
    "gpae": _BOUNDARY,
}
"""Beside the default, which is the first trial of every method. CounterNet has no others: the weight that matters,
w_prox, it chooses itself, from four values and on held-out rows, when it is fitted."""

_AT_FIT = ("face", "gpae-inducing", "gpae")
"""Methods whose settings above matter when they are fitted; the others read them when they search."""


def retuned(name: str, fitted: Explainer, number: int, parts: Parts, layout: Layout) -> tuple[Explainer, Settings]:
    """A fitted method under the settings of one of its trials (0: as it is); what it has trained is kept."""
    if number == 0:
        return fitted, {}
    chosen = TRIALS[name][number - 1]
    settings = chosen(fitted.classifier_) if isinstance(chosen, _Margin) else chosen  # type: ignore[arg-type]
    if name not in _AT_FIT:
        return copy.copy(fitted).set_params(**settings), settings
    learnt = {part: getattr(fitted, f"{part}_") for part in ("classifier", "graph") if hasattr(fitted, f"{part}_")}
    method = type(fitted)(**(fitted.get_params(deep=False) | learnt | dict(settings)))
    method.fit(*parts.train, layout=layout, validation=parts.valid)
    return method, settings


def trial_name(name: str, number: int) -> str:
    """The settings of a trial in words."""
    if number == 0:
        return "default"
    chosen = TRIALS[name][number - 1]
    settings = chosen.beside if isinstance(chosen, _Margin) else chosen
    words = [f"{parameter} {value}" for parameter, value in settings.items()]
    if isinstance(chosen, _Margin):
        words.append(f"margin {chosen.spreads:g} spreads")
    return ", ".join(words)


def best_trial(name: str, trials: Mapping[str, Sequence[Trial]]) -> int:
    """The number of the method's trial with the best mean rank among the others' defaults; the first of equals."""
    field = [_lines(other, every[0]) for other, every in trials.items() if other != name]
    ranks = []
    for trial in trials[name]:
        ranked = mean_ranks(pd.concat([*field, _lines(name, trial)]))
        ranks.append(float(ranked.loc[ranked.method == name, "rank"].iloc[0]))
    return ranks.index(min(ranks))


def _lines(name: str, trial: Trial) -> pd.DataFrame:
    return pd.DataFrame({"dataset": "", "method": name, "metric": SEVEN, "mean": [trial.figures[m] for m in SEVEN]})
