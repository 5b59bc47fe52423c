"""The classifier that a user brings: asked with tables like its training table, its answers checked and counted."""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpae.errors import InputError
from gpae.table.freedom import Freedom
from gpae.table.levels import Level, find_level, listed
from gpae.table.scaling import Array
from gpae.table.table_maker import TableMaker

__all__ = ["GivenModel", "logit_of"]

_LARGEST_LOGIT = 30.0
"""Of a model that says 0 or 1, or only a label."""
_A_DRAW = 1e-6
"""So near one half, rounding may decide."""
_AT_ONCE = 200_000
"""Rows in one call at most, so that the model's own copies of them fit in memory."""

Scores = Callable[[Any], Array]
"""A table -> the probability, or something like it, of the favourable class."""


@dataclass(slots=True, eq=False)
class GivenModel:
    """A user's model as a function of values in the user's units.

    Parameters
    ----------
    scores
        What the model says of a table: numbers from 0 to 1, above one half for the favourable class.
    speaks
        Where they come from: ``"probabilities"``, ``"decision values"`` (squashed by the logistic function; their zero
        is one half), ``"predictions"`` (of labels, 0 and 1) or, of a function, ``"whatever it returns"``.
    maker
        Makes the tables.
    names
        The columns that the model wants, in its order.
    as_array
        Whether it wants them as a plain array instead of a table.
    calls, rows
        How often it was asked, and about how many rows.
    """

    scores: Scores
    speaks: str
    maker: TableMaker
    names: tuple[str, ...]
    as_array: bool
    favourable: int
    """The position of the favourable class among the model's."""
    calls: int = field(default=0)
    rows: int = field(default=0)

    @classmethod
    def of(
        cls,
        model: Any,
        maker: TableMaker,
        labels: tuple[Level, Level],
        values: Array | None = None,
        speaks: str | None = None,
    ) -> "GivenModel":
        """Find out how a model is asked; one that cannot be asked is refused.

        A model may say its probabilities or decision values, and decide otherwise than by one half or zero: at another
        threshold, say. On rows, ``values``, its scores must tell what it predicts, or else its predictions alone are
        asked for. ``speaks``: how it is asked, where that is known.
        """
        names, as_array = _wanted(model, maker)
        favourable = _favourable(getattr(model, "classes_", None), labels)
        ways = [
            cls(scores, kind, maker, names, as_array, favourable)
            for scores, kind in _ways(model, labels)
            if speaks in (None, kind)
        ]
        if not ways:
            raise InputError(f"the model gives no {speaks}, which the explainer was made with; give the same model")
        if values is None or len(ways) == 1:
            return ways[0]
        predicted = ways[-1](values) > 0.5
        return next(way for way in ways if way._tells(predicted, values))

    def _tells(self, predicted: NDArray[np.bool_], values: Array) -> bool:
        """Whether the scores of rows say what is predicted for them, where they are not a draw."""
        scores = self(values)
        return bool((((scores > 0.5) == predicted) | (np.abs(scores - 0.5) < _A_DRAW)).all())

    def of_table(self, table: Any) -> Array:
        """The scores of a table in the user's units, which holds at least the model's columns."""
        asked = table[list(self.names)] if not hasattr(table, "select") else table.select(list(self.names))
        return self._asked(asked)

    def __call__(self, values: Array) -> Array:
        """The scores of values, n x F (ranks for levels, NaN where missing)."""
        parts = [values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE)]
        return np.concatenate([self._asked(self.maker.table(part, self.names)) for part in parts] or [np.zeros(0)])

    def probability(self, rows: Array, values: Array) -> Array:
        """The scores of rows: encoded ones, which this model does not know, and the same in the user's units."""
        return self(values)

    def logits(self, freedom: Freedom, person: NDArray[np.intp], U: Array) -> Array:
        """The logits of people's plans, which a model that is too sure of itself does not make endless."""
        return logit_of(self(freedom.values(U, person)))

    def _asked(self, table: Any) -> Array:
        n = len(table)
        self.calls += 1
        self.rows += n
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                said = self.scores(np.asarray(table) if self.as_array else table)
            except InputError:
                raise
            except Exception as error:
                raise InputError(
                    f"the model cannot be asked about {n} rows with the columns {listed(self.names)}: "
                    f"{type(error).__name__}: {error}"
                ) from error
        return _checked(said, n)


def logit_of(p: Array) -> Array:
    """log p / (1 - p), at most 30 either way."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(p) - np.log1p(-p), -_LARGEST_LOGIT, _LARGEST_LOGIT))


def _checked(said: Array, n: int) -> Array:
    if said.shape != (n,):
        raise InputError(f"the model was asked about {n} rows and answered with an array of shape {said.shape}")
    odd = np.flatnonzero(~np.isfinite(said))
    if len(odd):
        raise InputError(f"the model answers {said[odd[0]]} for {len(odd)} of {n} rows; it must give a number for each")
    outside = np.flatnonzero((said < 0) | (said > 1))
    if len(outside):
        raise InputError(
            f"the model answers {said[outside[0]]:g}, which is no probability; give a function of a table that returns "
            "probabilities of the favourable label, or labels"
        )
    return said


def _wanted(model: Any, maker: TableMaker) -> tuple[tuple[str, ...], bool]:
    """Which columns a model wants, and whether as a plain array."""
    names = _names_in(model)
    if names is not None:
        unknown = [name for name in names if name not in maker.names]
        if unknown:
            raise InputError(
                f"the model was fitted with a column {unknown[0]!r}, which is no feature of the training table; "
                f"its features are {listed(maker.names, 50)}"
            )
        return names, False
    fitted_on_array = hasattr(model, "n_features_in_") or _is_torch(model)
    return maker.names, bool(fitted_on_array)


def _names_in(model: Any) -> tuple[str, ...] | None:
    """The names that a fitted model remembers, under whichever name its library keeps them."""
    for attribute in ("feature_names_in_", "feature_names_", "feature_names", "feature_name"):
        try:
            names = getattr(model, attribute, None)
        except Exception:  # a property of a model that is not fitted may raise anything
            continue
        names = names() if callable(names) else names
        if names is None or not len(names) or not all(isinstance(name, str) for name in names):
            continue
        if not all(re.fullmatch(r"Column_\d+", name) for name in names):  # LightGBM's, where it was given none
            return tuple(names)
    return None


def _ways(model: Any, labels: tuple[Level, Level]) -> list[tuple[Scores, str]]:
    """How a model can be asked, and what it answers with; what says most comes first, what decides last."""
    if isinstance(model, type):
        raise InputError(f"{model.__name__} is a class; give a fitted model")
    if _is_torch(model):
        return [(lambda array: _of_torch(model, array), "probabilities")]
    if _is_booster(model):
        return [(lambda table: np.asarray(model.inplace_predict(table), dtype=np.float64), "probabilities")]
    at = _favourable(getattr(model, "classes_", None), labels)
    ways: list[tuple[Scores, str]] = []
    if callable(getattr(model, "predict_proba", None)):
        ways.append(
            (lambda table: _column(np.asarray(model.predict_proba(table), dtype=np.float64), at), "probabilities")
        )
    if callable(getattr(model, "decision_function", None)):
        sign = 1.0 if at == 1 else -1.0
        ways.append(
            (lambda table: _squashed(sign * np.asarray(model.decision_function(table), np.float64)), "decision values")
        )
    if callable(getattr(model, "predict", None)):
        return [*ways, (_of_anything(model.predict, labels), "predictions")]
    if ways or callable(model):
        return ways or [(_of_anything(model, labels), "whatever it returns")]
    raise InputError(
        f"a {type(model).__name__} cannot be explained: it has no predict_proba, decision_function or predict, and "
        "cannot be called; give a fitted model, or a function of a table that returns probabilities or labels"
    )


def _favourable(classes: Any, labels: tuple[Level, Level]) -> int:
    """The position of the favourable label among the model's classes; without any the second is."""
    if classes is None:
        return 1
    if len(classes) != 2:
        raise InputError(f"the model knows {len(classes)} classes ({listed(classes)}); two are needed")
    known = [value.item() if isinstance(value, np.generic) else value for value in classes]
    at = find_level(known, labels[1])
    if at is not None:
        return at
    if find_level(known, labels[0]) is not None:
        return 1 - find_level(known, labels[0])  # type: ignore[operator]
    if sorted(map(str, known)) in (["0", "1"], ["False", "True"], ["-1", "1"]):
        # fitted on labels that were coded: by custom the second class is the wanted one
        return 1
    raise InputError(
        f"the model's classes are {listed(known)}; none of them is a label of the table ({listed(labels)})"
    )


def _column(p: NDArray[np.float64], at: int) -> Array:
    if p.ndim == 2 and p.shape[1] == 2:
        return p[:, at]
    return p[:, 0] if p.ndim == 2 and p.shape[1] == 1 else p


def _squashed(d: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(d, -_LARGEST_LOGIT, _LARGEST_LOGIT))))


def _of_anything(ask: Callable[[Any], Any], labels: tuple[Level, Level]) -> Scores:
    """A function that returns probabilities, two columns of them, or labels: which of these, every answer shows."""

    def scores(table: Any) -> Array:
        said = np.asarray(ask(table))
        said = _column(said, 1) if said.ndim == 2 else said
        if said.dtype.kind == "f" or (said.dtype.kind == "O" and all(isinstance(one, float) for one in said.flat)):
            said = said.astype(np.float64)
            coded = ((said < 0) | (said > 1)).any() and all(find_level(labels, one) is not None for one in set(said))
            return _of_labels(said, labels) if coded else said
        return _of_labels(said, labels)

    return scores


def _of_labels(said: NDArray[Any], labels: tuple[Level, Level]) -> Array:
    values, index = np.unique(said, return_inverse=True)
    codes = []
    for value in values.tolist():
        code = find_level(labels, value)
        if code is None and value in (0, 1, -1):
            code = int(value == 1)
        if code is None:
            raise InputError(f"the model answers {value!r}, which is no label of the table ({listed(labels)})")
        codes.append(code)
    return np.array(codes, dtype=np.float64)[index.reshape(said.shape)]


def _is_torch(model: Any) -> bool:
    import torch

    return isinstance(model, torch.nn.Module)


def _of_torch(module: Any, array: NDArray[Any]) -> Array:
    """A module of a matrix of numbers gives one logit a row, or two of classes."""
    import torch

    learning = module.training
    module.eval()  # what drops out at random in training decides nothing
    weights = next((part for part in module.parameters() if part.is_floating_point()), torch.zeros(0))
    rows = torch.as_tensor(np.asarray(array, dtype=np.float64))
    try:
        with torch.no_grad():
            out = module(rows.to(weights.device, weights.dtype))
    finally:
        module.train(learning)
    out = out.double().cpu().numpy()
    if out.ndim == 2 and out.shape[1] == 2:
        return _squashed(out[:, 1] - out[:, 0])
    return _squashed(out.reshape(len(out), -1)[:, 0]) if out.size == len(out) else out


def _is_booster(model: Any) -> bool:
    return type(model).__module__.startswith("xgboost") and hasattr(model, "inplace_predict")
