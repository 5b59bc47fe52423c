"""The comparison of our fit with plain Adam, on rows that take a second."""

import math

import numpy as np

from gpae.benchmark.classifiers import Parts
from gpae.benchmark.speed.training import PAPER, by_training
from gpae.models.training import Schedule


def parts() -> Parts:
    rng = np.random.default_rng(0)
    X = rng.random((900, 5))
    y = (X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=900) > 0.8).astype(int)
    return Parts((X[:600], y[:600]), (X[600:750], y[600:750]), (X[750:], y[750:]))


def test_both_lines_are_of_one_loss_and_the_ratio_is_of_their_times() -> None:
    options = {"latent_dim": 2, "n_features": 60, "density_features": 30, "density_draws": 500}
    brief = Schedule(learning_rate=1e-3, batch_size=128, max_epochs=12, patience=10)
    table = by_training(parts(), options=options, schedule=brief).set_index("training")
    ours, plain = table.loc["ours"], table.loc["plain Adam"]
    assert plain.epochs == 12
    assert ours.loss < plain.loss  # 60 steps at the paper's rate are few
    assert math.isnan(plain.reached)
    assert plain.ratio == ours.seconds / plain.seconds
    assert ours.accuracy > 0.8


def test_the_time_to_our_loss_is_that_of_the_first_epoch_below_it() -> None:
    options = {"latent_dim": 2, "n_features": 60, "max_epochs": 1, "density_features": 30, "density_draws": 500}
    long = Schedule(learning_rate=1e-2, batch_size=64, max_epochs=120, patience=60)
    plain = by_training(parts(), options=options, schedule=long).set_index("training").loc["plain Adam"]
    assert 0 < plain.reached < plain.seconds


def test_the_settings_are_the_papers() -> None:
    assert (PAPER.learning_rate, PAPER.batch_size, PAPER.patience) == (1e-3, 512, 10)
