"""Answers and references made by hand, for examples that can be checked on paper."""

import numpy as np
import pandas as pd

from gpae.metric import Reference
from gpae.results import Counterfactuals
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema


def answers(factual: object, counterfactual: object, target: object = 1, status: object = None) -> Counterfactuals:
    """One answer a query; a row of NaN is none."""
    x, u = np.array(factual, dtype=float), np.array(counterfactual, dtype=float)
    found = ~np.isnan(u).any(axis=1)
    n = len(x)
    return Counterfactuals(
        row=np.arange(n),
        plan=np.zeros(n, dtype=np.int64),
        factual=x,
        counterfactual=u,
        target=np.broadcast_to(np.asarray(target, dtype=np.int64), n).copy(),
        found=found,
        status=np.where(found, "found", "not_found" if status is None else status).astype(np.str_),
    )


class Threshold:
    """A classifier on one column: favourable above (or between) given values, undecided at them."""

    def __init__(self, low: float, high: float = np.inf, column: int = 0) -> None:
        self.low, self.high, self.column = low, high, column

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        assert not np.isnan(X).any(), "nobody may ask about a row that is not there"
        x = X[:, self.column]
        favourable = np.where((x > self.low) & (x < self.high), 1.0, 0.0)
        favourable = np.where((x == self.low) | (x == self.high), 0.5, favourable)
        return np.column_stack([1 - favourable, favourable])


def layout_of(frame: pd.DataFrame, immutable: tuple[str, ...] = ()) -> Layout:
    frame = frame.assign(label=np.arange(len(frame)) % 2)
    return Codec.fit(frame, Schema.infer(frame, label="label", favourable=1, immutable=immutable)).layout


def two_numbers_and_a_level() -> Layout:
    """Encoded columns a, b, c=u, c=v, c=w."""
    rng = np.random.default_rng(0)
    ab = np.concatenate([[[0.0, 0.0], [1.0, 1.0]], rng.random((58, 2))])
    return layout_of(pd.DataFrame({"a": ab[:, 0], "b": ab[:, 1], "c": ["u", "v", "w"] * 20}))


def reference(
    layout: Layout | None = None,
    classifier: object = None,
    test: object = None,
    made: dict[str, object] | None = None,
    fixed: np.ndarray | None = None,
) -> Reference:
    layout = two_numbers_and_a_level() if layout is None else layout
    rng = np.random.default_rng(0)
    train = rng.random((40, layout.width))
    return Reference(
        train=train,
        labels=np.arange(40) % 2,
        test=train if test is None else np.array(test, dtype=float),
        layout=layout,
        classifier=Threshold(0.5) if classifier is None else classifier,  # type: ignore[arg-type]
        fixed=fixed,
        made={} if made is None else made,
    )
