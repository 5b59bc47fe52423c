"""Answers judged from the outside: the written tables, the training table and the model, and nothing of the search."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["favoured", "violations"]

_CLOSE = 1e-9


def favoured(model: Any, plans: pd.DataFrame, favourable: Any) -> NDArray[np.bool_]:
    """Which rows a scikit-learn model decides in favour of."""
    return np.asarray(model.predict(plans) == favourable) if len(plans) else np.zeros(0, dtype=np.bool_)


def violations(
    plans: pd.DataFrame, people: pd.DataFrame, train: pd.DataFrame, fixed: Sequence[str]
) -> NDArray[np.bool_]:
    """Which plans (n x F, one row each of ``people``) break what every answer must keep.

    A fixed feature must not move; a changed number stays between what training and the person have, and is whole where
    training is; a changed level is one of training's.
    """
    broken = np.zeros(len(plans), dtype=np.bool_)
    for name in plans:
        before, after, known = people[name].to_numpy(), plans[name].to_numpy(), train[name].dropna()
        moved = ~((before == after) | (pd.isna(before) & pd.isna(after)))
        if name in fixed:
            broken |= moved
        elif pd.api.types.is_numeric_dtype(known):
            amount = np.asarray(after, dtype=np.float64)
            own = np.asarray(before, dtype=np.float64)
            low, high = (np.fmin(own, known.min()), np.fmax(own, known.max()))
            whole = bool((known % 1 == 0).all())
            wrong = (amount < low - _CLOSE) | (amount > high + _CLOSE) | (np.isnan(amount) & ~train[name].isna().any())
            broken |= moved & (wrong | (whole & ~np.isnan(amount) & (amount % 1 != 0)))
        else:
            broken |= moved & ~pd.Series(after).isin(set(known)).to_numpy()
    return broken
