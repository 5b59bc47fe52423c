"""How much a share among replicas flatters the plans of a search, rehearsed without training anything.

A search finds the places where a model errs in its favour, and a model trained anew does not err there in the same way.
So the fitted model takes the part of the one trained anew: a rival g + r, as far from it as training alone would lead,
is searched for people whom it refuses, and at those plans u two shares over the replicas d are compared,

    of the rival, as it would be foretold:   d > -(g + r)(u),        and of the fitted model:   d > -g(u).

With rivals in pairs, r and -r, what is left of the odds on average is what the plans of the fitted model lose too.

The spread of retraining, T, is measured in terms of the last layer's own; on five data sets, bootstraps trained in full
moved like T = 1 to 2.4, and T = 1.6 foretells best over all of them. The last layer's part of that is the data's, which
a bootstrap shares with the model it is drawn from: training alone leads sqrt(T^2 - 1) as far.
"""

import copy
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import brentq

from gpae.arrays import Rows
from gpae.explainers.gpae import GPAE
from gpae.models.replicas import Replicas, believed
from gpae.progress import report
from gpae.table.constraint import Array

__all__ = ["AT_MOST", "RETRAINED", "rehearsed"]

RETRAINED = 1.6
"""T: how far training anew moves the logits, in terms of what the last layer alone would."""
AT_MOST = 2.25
"""T where it is largest (FICO): a plan that is asked to last must stand that."""
_TRAINING_ALONE = math.sqrt(RETRAINED**2 - 1.0) / RETRAINED
_PAIRS = 36
_PEOPLE = 16
"""Whom each rival refuses."""
_FEWEST = 100
"""Plans below which nothing is said."""
_LEAST = 0.05
"""Of the odds, what remains at least."""


def rehearsed(method: GPAE, replicas: Replicas, X: Rows, seed: int = 0) -> Replicas:
    """The replicas with the odds that a search of ``method`` leaves of a share.

    ``X``: encoded rows to search for, as far as they are refused.
    """
    foretold, actual = (np.concatenate(shares) for shares in zip(*_shares(method, replicas, X, seed), strict=True))
    if len(foretold) < _FEWEST:
        return replicas

    def gap(log_odds: float) -> float:
        return float(believed(foretold, math.exp(log_odds)).mean() - actual.mean())

    # a search does not find the places where the model errs to its own harm: what seems so is chance
    least = math.log(_LEAST)
    log_odds = 0.0 if gap(0.0) <= 0 else least if gap(least) >= 0 else brentq(gap, least, 0.0)
    return replace(replicas, odds=torch.tensor(math.exp(log_odds), dtype=torch.float64))


def _shares(method: GPAE, replicas: Replicas, X: Rows, seed: int) -> Iterator[tuple[Array, Array]]:
    """Of each rival's plans, the shares that were foretold and that came."""
    fitted = method.classifier_
    generator = np.random.Generator(np.random.Philox(seed))
    some = X[generator.permutation(len(X))[: 10 * _PAIRS * _PEOPLE]]
    logits, moved = fitted.decision_function(some), replicas.moved(some)
    which = np.linspace(0, moved.shape[1] - 1, _PAIRS).astype(int)
    for done, (rival, sign) in enumerate((rival, sign) for rival in which for sign in (1.0, -1.0)):
        report("rehearsing", done / (2 * _PAIRS))
        far = sign * _TRAINING_ALONE
        refused = some[logits + far * moved[:, rival] < 0]
        people = np.roll(refused, -done * _PEOPLE, axis=0)[:_PEOPLE]
        plans = _of_rival(method, far * replicas.shifts[:, rival]).explain(people, 1, seed=seed)
        u = plans.counterfactual[plans.found]
        at, by = fitted.decision_function(u) if len(u) else np.zeros(0), replicas.moved(u)
        yield ((at + far * by[:, rival])[:, None] + by > 0).mean(axis=1), (at[:, None] + by > 0).mean(axis=1)
    report("rehearsing", 1.0)


def _of_rival(method: GPAE, shift: torch.Tensor) -> GPAE:
    """The same method on a classifier whose logit is moved by shift'phi(x): its latents move along theta."""
    rival, classifier = copy.copy(method), copy.copy(method.classifier_)
    rival.solver = "newton"  # the paper's updates lead to the same plans in a hundred times the time
    model = classifier.model_
    along = torch.outer(shift[:-1], model.theta) / model.theta.square().sum()
    classifier.model_ = replace(model, encoder_weights=model.encoder_weights + along, theta0=model.theta0 + shift[-1])
    rival.classifier_ = classifier
    return rival
