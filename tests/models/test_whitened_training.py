"""Training in whitened coordinates: the gradient, where it ends, and how much work it is allowed."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from gpae import GPAEClassifier
from gpae.models import whitened_training
from gpae.models.loss_gradient import Scratch, gradient
from gpae.models.starting_point import random_start, start_from_convex_parts
from gpae.models.training import LossWeights, Rows, Schedule, _loss, _with, train
from gpae.models.whitened_training import WhitenedTraining
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.fourier import draw_map, features

WEIGHTS = LossWeights(1.0, 3.0)
SCHEDULE = Schedule(learning_rate=1e-2, batch_size=64, max_epochs=100, patience=10)


def rows(n: int, seed: int) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 6, generator=generator, dtype=torch.float64)
    x[:, 3:] = torch.stack([x[:, 0] * x[:, 1], (6 * x[:, 2]).sin(), x[:, :2].amax(1)], 1)
    weight = 0.5 + torch.rand(n, generator=generator, dtype=torch.float64)
    return Rows(x, (x[:, 0] + 0.5 * x[:, 1] > 0.75).double(), weight)


def maps() -> tuple[AutoEncoder, torch.Generator]:
    generator = torch.Generator().manual_seed(0)
    encoder, decoder = draw_map(60, 6, 1.0, generator), draw_map(60, 2, 1.0, generator)
    return random_start(encoder, decoder, 6, generator), generator


def convex(learn: Rows) -> AutoEncoder:
    random, generator = maps()
    return start_from_convex_parts(learn, random.encoder, random.decoder, 2, generator)


def test_the_gradient_is_that_of_the_loss() -> None:
    model, _ = maps()
    batch = rows(40, 0)
    phi = features(model.encoder, batch.x)
    free = [
        t.clone().requires_grad_() for t in (model.encoder_weights, model.decoder_weights, model.theta, model.theta0)
    ]
    expected = torch.autograd.grad(_loss(_with(model, free), phi, batch, WEIGHTS, 300), free)
    found = gradient(model, phi, batch, WEIGHTS, 300, Scratch.of(40, model))
    for a, b in zip((found.encoder_weights, found.decoder_weights, found.theta, found.theta0), expected, strict=True):
        torch.testing.assert_close(a, b)


def test_it_ends_at_least_as_low_as_plain_adam_after_many_times_the_epochs() -> None:
    learn, watch = rows(640, 0), rows(400, 1)
    start, generator = convex(learn), torch.Generator().manual_seed(1)
    ours = WhitenedTraining.of(start, learn, watch, SCHEDULE, generator)
    _, trace = ours(start, WEIGHTS, generator)
    long = Schedule(learning_rate=1e-3, batch_size=64, max_epochs=300, patience=300)
    _, plain = train(maps()[0], learn, watch, WEIGHTS, long, torch.Generator().manual_seed(1))
    loss, slow = (WEIGHTS.total(t.reconstruction[t.best], t.cross_entropy[t.best]) for t in (trace, plain))
    assert len(trace.reconstruction) - 1 == 50
    assert loss <= slow


@pytest.fixture
def gradients(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The batches whose gradient was computed."""
    sizes: list[int] = []

    def counted(model: AutoEncoder, phi: torch.Tensor, *others: object) -> object:
        sizes.append(len(phi))
        return gradient(model, phi, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(whitened_training, "gradient", counted)
    return sizes


@pytest.mark.parametrize(("n", "steps"), [(512, 100 + 2 * 100), (5120, 500 + 2 * 200), (51200, 500 + 2 * 200)])
def test_a_fit_takes_some_nine_hundred_steps_whatever_the_rows(n: int, steps: int, gradients: list[int]) -> None:
    """The race's two runs and the last one; max_epochs bounds each where the rows fill one batch only."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    model = GPAEClassifier(2, 20, length_scale=1.0, density_features=10, density_draws=200, random_state=0)
    model.fit(X, y, validation=(X[:100], y[:100]))
    assert steps <= len(gradients) <= 1.5 * steps
    assert set(gradients) == {512}


def test_many_rows_are_seen_at_least_five_times() -> None:
    learn = rows(64 * 300, 0)
    training = WhitenedTraining.of(maps()[0], learn, rows(50, 1), SCHEDULE, torch.Generator())
    assert training.epochs() == 5
    assert training.epochs(race=True) == 2


def test_a_training_that_diverges_keeps_where_it_started() -> None:
    learn, watch = rows(200, 0), rows(100, 1)
    wild = Schedule(learning_rate=1e5, batch_size=64, max_epochs=5, patience=2)
    start, generator = convex(learn), torch.Generator().manual_seed(1)
    model, trace = WhitenedTraining.of(start, learn, watch, wild, generator)(start, WEIGHTS, generator)
    assert trace.best == 0
    assert torch.equal(model.encoder_weights, start.encoder_weights)


def test_features_too_large_to_keep_are_computed_batch_by_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    learn, watch = rows(200, 0), rows(100, 1)
    start, ends = convex(learn), []
    for entries in (250_000_000, 10):
        monkeypatch.setattr("gpae.models.training._CACHED_ENTRIES", entries)
        generator = torch.Generator().manual_seed(1)
        training = WhitenedTraining.of(start, learn, watch, SCHEDULE, generator)
        ends.append(training(start, WEIGHTS, generator)[0].encoder_weights)
    torch.testing.assert_close(*ends)


def test_plain_adam_is_still_there() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    model = GPAEClassifier(2, 50, optimiser="adam", learning_rate=1e-3, max_epochs=4, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


def test_the_bias_follows_the_validation_rows_shares_of_the_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((4000, 2))
    y = (X[:, 0] + rng.normal(0, 0.25, 4000) > 0.9).astype(int)
    even = np.r_[np.flatnonzero(y == 1)[:300], np.flatnonzero(y == 0)[:300]]
    others = np.setdiff1d(np.arange(4000), even)
    model = GPAEClassifier(2, 60, max_epochs=10, density_features=20, density_draws=500, random_state=0)
    model.fit(X[others], y[others], validation=(X[even], y[even]))
    assert model.predict_proba(X[even])[:, 1].mean() == pytest.approx(0.5, abs=0.02)
