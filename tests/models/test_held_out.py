"""Rows that a training is stopped by: a model has never seen them, nor a copy of them."""

import numpy as np
from sklearn.model_selection import train_test_split

from gpae import GPAEClassifier
from gpae.models.held_out import tenth_without_copies


def bootstrap(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    y = (X[:, 0] + 0.3 * rng.standard_normal(n) > 0.5).astype(np.int64)
    drawn = rng.integers(0, n, n)
    return X[drawn], y[drawn]


def shared(X: np.ndarray, learn: np.ndarray, watch: np.ndarray) -> set[bytes]:
    return {X[i].tobytes() for i in learn} & {X[i].tobytes() for i in watch}


def test_copies_of_a_row_stay_on_one_side() -> None:
    X, y = bootstrap()
    learn, watch = tenth_without_copies(X, y, seed=1)
    assert sorted([*learn, *watch]) == list(range(len(X)))
    assert not shared(X, learn, watch)
    assert 0.07 < len(watch) / len(X) < 0.13
    assert abs(y[watch].mean() - y.mean()) < 0.1
    plain = train_test_split(np.arange(len(X)), test_size=0.1, stratify=y, random_state=1)
    assert shared(X, *plain), "the rows of this test have no copies to keep apart"


def test_rows_without_copies_are_split_as_ever() -> None:
    X = np.random.default_rng(2).random((200, 2))
    y = (X[:, 0] > 0.5).astype(np.int64)
    ours = tenth_without_copies(X, y, seed=3)
    theirs = train_test_split(np.arange(len(X)), test_size=0.1, stratify=y, random_state=3)
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_too_few_distinct_rows_are_split_all_the_same() -> None:
    X = np.repeat([[0.0], [1.0]], 30, axis=0)
    y = np.repeat([0, 1], 30)
    learn, watch = tenth_without_copies(X, y, seed=0)
    assert len(watch) == 6
    assert len(learn) == 54


def test_a_classifier_is_stopped_by_rows_it_has_not_learnt() -> None:
    X, y = bootstrap()
    model = GPAEClassifier(latent_dim=2, n_features=50, max_epochs=2, length_scale=1.0, random_state=0).fit(X, y)
    learnt = np.setdiff1d(np.arange(len(X)), model.watched_)
    assert not shared(X, learnt, model.watched_)
