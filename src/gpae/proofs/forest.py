"""Trees of any library in one form: what each leaf adds, and which way each split sends a row."""

import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpae.table.constraint import Array

__all__ = ["Forest", "Tree"]

_EXACT = 1e-5
"""How well the sum of leaves must be the model's own score; boosters add up in single precision."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tree:
    """Nodes in arrays; a leaf has column -1.

    A row goes left where its column is at most the threshold (below it, where the split is ``strict``), and where it is
    missing and ``missing_left``.
    """

    column: NDArray[np.intp]
    threshold: Array
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    value: Array
    missing_left: NDArray[np.bool_]
    strict: bool

    def goes_left(self, node: int, x: Array) -> NDArray[np.bool_]:
        """Which values of the node's column go left; in single precision, as the libraries compare."""
        with np.errstate(invalid="ignore"):
            below = x < self.threshold[node] if self.strict else x <= self.threshold[node]
        return np.where(np.isnan(x), self.missing_left[node], below)

    def __call__(self, X: Array) -> Array:
        """The value of each row's leaf."""
        at = np.zeros(len(X), dtype=np.intp)
        while True:
            inner = np.flatnonzero(self.column[at] >= 0)
            if not len(inner):
                return self.value[at]
            node = at[inner]
            x = X[inner, self.column[node]]
            below = np.where(self.strict, x < self.threshold[node], x <= self.threshold[node])
            left = np.where(np.isnan(x), self.missing_left[node], below)
            at[inner] = np.where(left, self.left[node], self.right[node])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forest:
    """A sum of trees on the columns of a matrix: the favourable class's logit, or its probability."""

    trees: tuple[Tree, ...]
    base: float
    needed: float
    """What the sum of a favourable row exceeds."""
    error: float
    of_probabilities: bool = False

    def needed_for(self, margin: float) -> float:
        """What the sum of a row exceeds whose logit exceeds ``margin``."""
        if self.of_probabilities:
            return self.needed + 1.0 / (1.0 + math.exp(-margin)) - 0.5
        return self.needed + margin

    @classmethod
    def of(cls, model: Any, X: NDArray[Any], favourable: int) -> "Forest | None":
        """Read a fitted model's trees and check them on rows of its own input; None if it has none that we can read.

        ``favourable`` is the position of the favourable class among the model's.
        """
        for read in (_sklearn_mean, _sklearn_boosting, _sklearn_histogram, _xgboost, _lightgbm):
            found = read(model)
            if found is None:
                continue
            trees, score, needed, precision = found
            if favourable == 0:
                trees = [_negated(tree) for tree in trees]
                needed = -needed
            sign = 1.0 if favourable == 1 else -1.0
            rows = np.asarray(X, dtype=precision).astype(np.float64)
            total = sum((tree(rows) for tree in trees), np.zeros(len(rows)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of columns without names, which these are
                apart = sign * np.asarray(score(X), dtype=np.float64) - total
            base = float(np.median(apart))
            error = float(np.abs(apart - base).max())
            if error <= _EXACT * (1.0 + float(np.abs(total).max())):
                return cls(tuple(trees), base, needed, 2.0 * error + 1e-9, of_probabilities=read is _sklearn_mean)
        return None


Read = tuple[list[Tree], Callable[[Any], Any], float, type]
"""Trees, the score that they add up to, where the favourable class begins, and the precision of the comparisons."""


def _negated(tree: Tree) -> Tree:
    return Tree(tree.column, tree.threshold, tree.left, tree.right, -tree.value, tree.missing_left, tree.strict)


def _sklearn_tree(tree: Any, value: Array) -> Tree:
    missing = np.asarray(getattr(tree, "missing_go_to_left", np.zeros(tree.node_count)), dtype=np.bool_)
    leaf = tree.children_left < 0
    return Tree(
        np.where(leaf, -1, tree.feature).astype(np.intp),
        np.asarray(tree.threshold, dtype=np.float64),
        tree.children_left.astype(np.intp),
        tree.children_right.astype(np.intp),
        value,
        missing,
        strict=False,
    )


def _sklearn_mean(model: Any) -> Read | None:
    """A decision tree, or a forest whose probabilities are the mean of its trees'."""
    parts = [model] if hasattr(model, "tree_") else getattr(model, "estimators_", None)
    if (
        not hasattr(model, "predict_proba")
        or parts is None
        or not all(hasattr(part, "tree_") for part in np.ravel(parts))
    ):
        return None
    if hasattr(model, "learning_rate") or hasattr(model, "estimator_weights_"):
        return None
    trees = []
    for part in parts:
        counts = part.tree_.value[:, 0, :]
        if counts.shape[1] != 2:
            return None
        trees.append(_sklearn_tree(part.tree_, counts[:, 1] / counts.sum(axis=1) / len(parts)))
    return trees, lambda X: model.predict_proba(X)[:, 1], 0.5, np.float32


def _sklearn_boosting(model: Any) -> Read | None:
    """Gradient boosting: a sum of regression trees."""
    parts = getattr(model, "estimators_", None)
    if (
        not isinstance(parts, np.ndarray)
        or parts.ndim != 2
        or parts.shape[1] != 1
        or not hasattr(model, "learning_rate")
    ):
        return None
    trees = [_sklearn_tree(one.tree_, model.learning_rate * one.tree_.value[:, 0, 0]) for one in parts[:, 0]]
    return trees, model.decision_function, 0.0, np.float32


def _sklearn_histogram(model: Any) -> Read | None:
    """Histogram gradient boosting without categories of its own."""
    rounds = getattr(model, "_predictors", None)
    if rounds is None or not all(len(one) == 1 for one in rounds):
        return None
    trees = []
    for (one,) in rounds:
        nodes = one.nodes
        if "is_categorical" in nodes.dtype.names and nodes["is_categorical"].any():
            return None
        leaf = nodes["is_leaf"].astype(bool)
        trees.append(
            Tree(
                np.where(leaf, -1, nodes["feature_idx"]).astype(np.intp),
                nodes["num_threshold"].astype(np.float64),
                nodes["left"].astype(np.intp),
                nodes["right"].astype(np.intp),
                nodes["value"].astype(np.float64),
                nodes["missing_go_to_left"].astype(bool),
                strict=False,
            )
        )
    return trees, model.decision_function, 0.0, np.float64


def _xgboost(model: Any) -> Read | None:
    """XGBoost's trees of numbers, by its own JSON."""
    if not type(model).__module__.startswith("xgboost"):
        return None
    native = not hasattr(model, "get_booster")
    booster = model if native else model.get_booster()
    best = None if native else getattr(model, "best_iteration", None)
    if best is not None:  # with early stopping, what came after the best is not asked
        booster = booster[: best + 1]
    names = booster.feature_names
    trees = []
    for text in booster.get_dump(dump_format="json"):
        nodes: list[dict[str, Any]] = []
        _flattened(json.loads(text), nodes, "children")
        tree = _from_nodes(nodes, names)
        if tree is None:
            return None
        trees.append(tree)
    if native:
        return trees, lambda X: model.inplace_predict(X, predict_type="margin"), 0.0, np.float32
    return trees, lambda X: model.predict(X, output_margin=True), 0.0, np.float32


def _flattened(node: dict[str, Any], nodes: list[dict[str, Any]], key: str) -> int:
    """Put a nested node and all below it into a list; return its place."""
    place = len(nodes)
    nodes.append(node)
    node["places"] = {child["nodeid"]: _flattened(child, nodes, key) for child in node.get(key, ())}
    return place


def _from_nodes(nodes: list[dict[str, Any]], names: list[str] | None) -> Tree | None:
    n = len(nodes)
    column, left, right = (np.full(n, -1, dtype=np.intp) for _ in range(3))
    threshold, value, missing = np.full(n, np.nan), np.zeros(n), np.zeros(n, dtype=np.bool_)
    for i, node in enumerate(nodes):
        if "leaf" in node:
            value[i] = node["leaf"]
            continue
        if not isinstance(node.get("split_condition"), int | float):
            return None
        split = node["split"]
        column[i] = names.index(split) if names else int(str(split).removeprefix("f"))
        threshold[i] = float(np.float32(node["split_condition"]))
        left[i], right[i] = node["places"][node["yes"]], node["places"][node["no"]]
        missing[i] = node["missing"] == node["yes"]
    return Tree(column, threshold, left, right, value, missing, strict=True)


def _lightgbm(model: Any) -> Read | None:
    """LightGBM's trees of numbers, by its own dump."""
    booster = getattr(model, "booster_", model)
    if not type(booster).__module__.startswith("lightgbm") or not hasattr(booster, "dump_model"):
        return None
    trees = []
    for one in booster.dump_model()["tree_info"]:
        tree = _lightgbm_tree(one["tree_structure"])
        if tree is None:
            return None
        trees.append(tree)
    return trees, lambda X: model.predict(X, raw_score=True), 0.0, np.float64


def _lightgbm_tree(root: dict[str, Any]) -> Tree | None:
    rows: list[list[Any]] = []

    def walk(node: dict[str, Any]) -> int:
        place = len(rows)
        if "leaf_value" in node:
            rows.append([-1, np.nan, -1, -1, node["leaf_value"], False])
            return place
        rows.append([])
        ways = walk(node["left_child"]), walk(node["right_child"])
        rows[place] = [node["split_feature"], node["threshold"], *ways, 0.0, node["default_left"]]
        return place

    if any(kind != "<=" for kind in _decisions(root)):
        return None
    walk(root)
    column, threshold, left, right, value, missing = zip(*rows, strict=True)
    return Tree(
        np.array(column, dtype=np.intp),
        np.array(threshold, dtype=np.float64),
        np.array(left, dtype=np.intp),
        np.array(right, dtype=np.intp),
        np.array(value, dtype=np.float64),
        np.array(missing, dtype=np.bool_),
        strict=False,
    )


def _decisions(node: dict[str, Any]) -> Iterator[str]:
    if "leaf_value" not in node:
        yield node["decision_type"]
        yield from _decisions(node["left_child"])
        yield from _decisions(node["right_child"])
