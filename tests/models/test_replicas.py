"""Replicas: the Newton step by hand, draws as wide as the posterior, and what survives them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gpae import GPAEClassifier
from gpae.artefact import flatten, unflatten
from gpae.models import replicas as module
from gpae.models.replicas import Replicas, believed

TINY = {"latent_dim": 2, "n_features": 6, "max_epochs": 4, "density_features": 10, "density_draws": 200}
SEED = 3


def rows(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, (X.sum(axis=1) + rng.normal(0, 0.3, n) > 1.2).astype(np.int64)


def fitted(**options: Any) -> GPAEClassifier:
    return GPAEClassifier(**TINY | options, length_scale=1.0, random_state=0).fit(*rows())


@pytest.fixture(scope="module")
def classifier() -> GPAEClassifier:
    return fitted()


@pytest.fixture(scope="module")
def wide() -> GPAEClassifier:
    """One with enough features for a boundary worth the name."""
    return fitted(n_features=80, max_epochs=10)


def by_hand(classifier: GPAEClassifier, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features with a one behind them, the weights of the logit, and the prior's precision: plain numpy."""
    model = classifier.model_
    Z, c = model.encoder.frequencies.numpy(), model.encoder.phases.numpy()
    phi = np.column_stack([np.sqrt(2.0 / len(c)) * np.cos(X @ Z.T + c), np.ones(len(X))])
    theta = model.theta.numpy()
    v = np.append(model.encoder_weights.numpy() @ theta, float(model.theta0))
    prior = np.eye(len(v)) / (classifier.classification_weight_ * (theta**2).sum())
    return phi, v, prior


def hessian(classifier: GPAEClassifier, X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    phi, v, prior = by_hand(classifier, X)
    p = 1.0 / (1.0 + np.exp(-phi @ v))
    return (phi.T * (weights * p * (1 - p))) @ phi + prior


def counts(n: int, half: int) -> np.ndarray:
    """How often each row is in each bootstrap: the first draws of the generator."""
    generator = torch.Generator().manual_seed(SEED)
    return torch.poisson(torch.ones(n, half, dtype=torch.float64), generator=generator).numpy()


@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 5.0}])
def test_a_bootstrap_moves_the_weights_by_one_newton_step(class_weight: dict[int, float] | None) -> None:
    classifier, (X, y) = fitted(class_weight=class_weight), rows()
    weights = np.ones(len(y)) if class_weight is None else np.where(y == 1, 5.0, 1.0)
    phi, v, _ = by_hand(classifier, X)
    p = 1.0 / (1.0 + np.exp(-phi @ v))
    pull = phi.T @ ((counts(len(y), 5) - 1) * (weights * (y - p))[:, None])
    step = np.linalg.solve(hessian(classifier, X, weights), pull)
    drawn = Replicas.of(classifier, X, y, n=10, seed=SEED, spread=1.5)
    np.testing.assert_allclose(drawn.shifts[:, :5].numpy(), 1.5 * step, rtol=1e-6, atol=1e-9)


def test_many_rows_are_taken_in_parts_that_add_up(classifier: GPAEClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    """The posterior's half does not depend on the bootstrap's draws but through the Hessian, a sum over parts."""
    X, y = rows()
    whole = torch.linalg.inv(torch.as_tensor(hessian(classifier, X, np.ones(len(y)))))
    monkeypatch.setattr(module, "_CHUNK", 64)
    drawn = Replicas.of(classifier, X, y, n=4000, seed=SEED).shifts[:, 2000:]
    scale = float(whole.diagonal().max())
    torch.testing.assert_close(drawn.cov() / scale, whole / scale, atol=0.1, rtol=0.15)


def test_draws_of_the_posterior_are_as_wide_as_the_inverse_hessian(classifier: GPAEClassifier) -> None:
    """In the metric of the Hessian their covariance is the unit matrix, up to what 20,000 draws can tell."""
    X, y = rows()
    drawn = Replicas.of(classifier, X, y, n=40_000, seed=SEED, spread=3.0).shifts[:, 20_000:].numpy() / 3.0
    root = np.linalg.cholesky(hessian(classifier, X, np.ones(len(y))))
    np.testing.assert_allclose(np.cov(root.T @ drawn), np.eye(len(root)), atol=0.05)
    np.testing.assert_allclose(root.T @ drawn.mean(axis=1), 0.0, atol=0.05)


def test_class_weights_enter(classifier: GPAEClassifier) -> None:
    X, y = rows()
    plain = Replicas.of(classifier, X, y, n=40, seed=SEED).shifts
    weighted = Replicas.of(
        GPAEClassifier.from_state(classifier.state()).set_params(class_weight={0: 1.0, 1: 5.0}), X, y, n=40, seed=SEED
    ).shifts
    assert not torch.allclose(plain, weighted)
    assert weighted[:, 20:].norm() < plain[:, 20:].norm()  # more weight, more said, less left open


def test_the_moved_logits_are_those_of_the_moved_weights(classifier: GPAEClassifier) -> None:
    X, y = rows()
    drawn = Replicas.of(classifier, X, y, n=6, seed=SEED)
    phi, v, _ = by_hand(classifier, X[:9])
    direct = phi @ (v[:, None] + drawn.shifts.numpy()) - (phi @ v)[:, None]
    np.testing.assert_allclose(drawn.moved(X[:9]), direct, atol=5e-6)  # single precision: a share is read off them


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 1.0])
@pytest.mark.parametrize(("odds", "caution"), [(1.0, 1.0), (0.4, 1.0), (0.8674, 1.0), (0.300138, 1.5)])
def test_the_logit_at_a_level_is_above_zero_only_where_so_many_agree(
    wide: GPAEClassifier, level: float, odds: float, caution: float
) -> None:
    X, y = rows()
    drawn = Replicas.of(wide, X, y, n=100, seed=SEED, caution=caution)
    drawn = replace(drawn, odds=torch.tensor(odds, dtype=torch.float64))
    logits = wide.decision_function(X)
    at, survival = drawn.at_level(X, logits, level, careful=caution > 1), drawn.survival(X, logits)
    assert (at > 0).any()
    assert (survival[at > 0] >= level).all()
    assert (at[survival < level] <= 0).all()


def test_none_and_all_stay_so_to_the_last_bit() -> None:
    odds = np.linspace(0.05, 1.0, 2001)
    for share in (0.0, 1.0):
        for odd in odds:
            assert believed(share, odd) == share
            assert believed(share, 1.0 / odd) == share


def test_caution_asks_for_more(wide: GPAEClassifier) -> None:
    X, y = rows()
    plain, careful = (Replicas.of(wide, X, y, n=100, seed=SEED, caution=caution) for caution in (1.0, 1.5))
    logits = wide.decision_function(X)
    at, less = (drawn.at_level(X, logits, 0.9, careful=True) for drawn in (plain, careful))
    np.testing.assert_array_equal(careful.at_level(X, logits, 0.9), at)
    assert (less <= at).all()
    assert (less < at).mean() > 0.9
    np.testing.assert_array_equal(plain.survival(X, logits), careful.survival(X, logits))


def test_what_is_far_inside_survives_and_the_boundary_is_a_coin(wide: GPAEClassifier) -> None:
    X, y = rows()
    drawn = Replicas.of(wide, X, y, n=2000, seed=SEED)
    reach = np.abs(drawn.moved(X)).max()
    np.testing.assert_array_equal(drawn.survival(X, np.full(len(X), reach + 1.0)), 1.0)
    np.testing.assert_array_equal(drawn.survival(X, np.full(len(X), -reach - 1.0)), 0.0)
    assert np.abs(drawn.survival(X, np.zeros(len(X))) - 0.5).max() < 0.1
    favourable = wide.decision_function(X).argmax()
    assert drawn.survival(X[[favourable]], wide.decision_function(X[[favourable]]))[0] > 0.95


def test_survival_rises_with_the_logit_and_does_not_depend_on_the_others(wide: GPAEClassifier) -> None:
    X, y = rows()
    drawn = Replicas.of(wide, X, y, n=60, seed=SEED)
    low, high = (drawn.survival(X, np.full(len(X), logit)) for logit in (0.1, 0.6))
    assert (high >= low).all()
    np.testing.assert_array_equal(drawn.survival(X[7:8], np.array([0.1])), low[7:8])


def test_odds_take_from_every_share_but_none_and_all(wide: GPAEClassifier) -> None:
    X, y = rows()
    plain = Replicas.of(wide, X, y, n=60, seed=SEED)
    share = plain.survival(X, wide.decision_function(X))
    less = replace(plain, odds=torch.tensor(0.5, dtype=torch.float64)).survival(X, wide.decision_function(X))
    between = (share > 0) & (share < 1)
    assert between.any()
    np.testing.assert_array_equal(less[~between], share[~between])
    share, less = share[between], less[between]
    np.testing.assert_allclose(less / (1 - less), 0.5 * share / (1 - share))


def test_the_same_seed_gives_the_same_replicas(classifier: GPAEClassifier) -> None:
    X, y = rows()
    one, again, other = (Replicas.of(classifier, X, y, n=8, seed=seed).shifts for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_replicas_come_back_from_their_arrays_bit_for_bit(classifier: GPAEClassifier) -> None:
    X, y = rows()
    drawn = Replicas.of(classifier, X, y, n=8, seed=SEED)
    again = unflatten(Replicas, flatten(drawn, "replicas"), "replicas")
    assert torch.equal(again.shifts, drawn.shifts)
    np.testing.assert_array_equal(again.moved(X[:5]), drawn.moved(X[:5]))
