import numpy as np
import pytest
import torch

from gpae.errors import InputError
from gpae.models.class_autoencoders import ClassAutoencoders, Schedule
from gpae.progress import listening


def two_planes(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Class 0 lies in one plane of six dimensions, class 1 in another."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3 // 2
    planes = np.random.default_rng(42).normal(size=(2, 2, 6)) * 0.3
    return 0.5 + np.einsum("nk,nkd->nd", rng.uniform(-1, 1, (n, 2)), planes[y]), y


@pytest.fixture(scope="module")
def fitted() -> ClassAutoencoders:
    return ClassAutoencoders.fit(*two_planes(), latent_dim=2, schedule=Schedule(max_epochs=40))


def errors(model: ClassAutoencoders, X: np.ndarray, label: int) -> np.ndarray:
    return np.square(X - model.of_class(X, np.full(len(X), label))).sum(axis=1)


def test_each_class_is_rebuilt_best_by_its_own_auto_encoder(fitted: ClassAutoencoders) -> None:
    X, y = two_planes(300, seed=1)
    for label in (0, 1):
        own, other = (errors(fitted, X[y == label], kind) for kind in (label, 1 - label))
        assert (own < 0.5 * other).mean() > 0.8
        whole = np.square(X - fitted.of_all(X)).sum(axis=1)
        assert errors(fitted, X[y == label], label).mean() < whole[y == label].mean()


def test_each_row_is_rebuilt_by_the_class_named_for_it(fitted: ClassAutoencoders) -> None:
    X, y = two_planes(20, seed=2)
    mixed = fitted.of_class(X, y)
    for label in (0, 1):
        np.testing.assert_array_equal(mixed[y == label], fitted.of_class(X, np.full(20, label))[y == label])


def test_a_row_of_nan_stays_one(fitted: ClassAutoencoders) -> None:
    X, y = two_planes(3)
    X[1] = np.nan
    assert np.isnan(fitted.of_class(X, y)[1]).all()
    assert np.isfinite(fitted.of_all(X)[[0, 2]]).all()


def test_the_latent_has_half_the_columns_from_two_to_six() -> None:
    few = Schedule(max_epochs=1)
    for width, latent in ((3, 2), (7, 3), (13, 6), (39, 6)):
        rows = np.random.default_rng(0).random((30, width))
        assert ClassAutoencoders.fit(rows, np.arange(30) % 2, schedule=few).latent_dim == latent


def test_the_seed_decides_and_nothing_global_does() -> None:
    X, y = two_planes(90)
    few, before = Schedule(max_epochs=2), torch.get_rng_state()
    one, same, other = (ClassAutoencoders.fit(X, y, seed=seed, schedule=few).of_all(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_stops_when_the_rows_held_out_gain_nothing_more_or_the_steps_are_used_up() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)), np.arange(60) % 2  # noise: there is nothing to learn for long
    epochs: list[float] = []
    with listening(lambda stage, share: epochs.append(share)):
        ClassAutoencoders.fit(X, y, schedule=Schedule(0.02, batch_size=8, patience=5))
    assert 5 < len(epochs) < 100
    epochs.clear()
    with listening(lambda stage, share: epochs.append(share)):
        ClassAutoencoders.fit(X, y, schedule=Schedule(max_steps=220, batch_size=8))
    assert epochs == [0.25, 0.5, 0.75, 1.0]


def test_the_best_of_all_epochs_is_kept() -> None:
    """The same path, cut later and later: what is kept never gets worse, though the path does."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)), np.arange(60) % 2
    schedules = [Schedule(0.05, batch_size=8, max_epochs=epochs, patience=400) for epochs in range(1, 10)]
    kept = np.array([ClassAutoencoders.fit(X, y, schedule=schedule).errors for schedule in schedules])
    assert (np.diff(kept, axis=0) <= 0).all()
    assert (np.diff(kept, axis=0) == 0).any()


def test_rows_beyond_the_most_are_not_used_but_a_small_class_is() -> None:
    X, y = two_planes(600)
    y[:] = 0
    y[:5] = 1
    model = ClassAutoencoders.fit(X, y, schedule=Schedule(max_epochs=2, max_rows=100))
    assert np.isfinite(model.of_class(X, y)).all()
    with pytest.raises(InputError, match="at least two rows"):
        ClassAutoencoders.fit(X, np.zeros(600, dtype=int))


def test_it_survives_being_saved(fitted: ClassAutoencoders) -> None:
    X, y = two_planes(10)
    again = ClassAutoencoders.from_state(fitted.state())
    np.testing.assert_array_equal(again.of_class(X, y), fitted.of_class(X, y))
    np.testing.assert_array_equal(again.of_all(X), fitted.of_all(X))
    assert again.errors == fitted.errors
