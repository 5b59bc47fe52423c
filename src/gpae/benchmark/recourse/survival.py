"""Whether plans survive retraining as often as was foretold."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from gpae.benchmark.recourse.users_models import fitted
from gpae.dataset import Dataset
from gpae.progress import instead, report
from gpae.tabular import TabularExplainer

__all__ = ["calibration_error", "figures", "figures_of_users_model"]

_BINS = 10
_TRAIN_ROWS = 10_000
ASKED = 0.9

Says = Callable[[pd.DataFrame], NDArray[np.bool_]]
"""Which rows of a table a model favours."""


def figures(dataset: Dataset, *, seed: int = 0, rows: int = 500, bootstraps: int = 10) -> list[dict[str, Any]]:
    """Explain refused test rows by default and with a survival asked, retrain on fresh bootstraps, and compare."""
    train, _, test = dataset.split(seed=seed)
    options: dict[str, Any] = {"label": dataset.label, "favourable": dataset.favourable, "seed": seed}
    explainer = TabularExplainer(**options, immutable=dataset.masked).fit(train)
    features = list(explainer.schema_.names)

    def retrained(again: pd.DataFrame, draw: int) -> Says:
        model = TabularExplainer(**options, schema=explainer.schema_).fit(again)
        return lambda plans: model.predict_proba(plans[features])[:, 1] > 0.5

    refused = test[explainer.predict(test) != dataset.favourable].head(rows)
    plans = _plans(explainer, refused) | {"plausible": explainer.explain(refused, prefer="plausible").table}
    return _compared(dataset, "own", plans, train, retrained, seed, bootstraps)


def figures_of_users_model(
    dataset: Dataset, name: str, *, seed: int = 0, rows: int = 500, bootstraps: int = 40
) -> list[dict[str, Any]]:
    """The same for a model that a user brings, which is retrained as the user would.

    More often: where a model has few weights, a bootstrap moves all plans at its boundary the same way, and of ten that
    do so the share alone is off by a sixth.
    """
    train, _, test = dataset.split(seed=seed)
    train = train.sample(min(_TRAIN_ROWS, len(train)), random_state=seed).reset_index(drop=True)
    features, types = list(dataset.features), train[list(dataset.features)].dtypes.to_dict()

    def trained(table: pd.DataFrame, draw: int) -> Pipeline:
        return fitted(name, table[features], (table[dataset.label] == dataset.favourable).astype(int), draw)

    def retrained(again: pd.DataFrame, draw: int) -> Says:
        model = trained(again, draw)
        return lambda plans: np.asarray(model.predict(plans[features].astype(types)) == 1)

    model = trained(train, seed)
    explainer = TabularExplainer.explaining(
        model, train, label=dataset.label, favourable=dataset.favourable, immutable=dataset.masked, seed=seed
    )
    refused = test[model.predict(test[features]) == 0][features].head(rows).reset_index(drop=True)
    return _compared(dataset, name, _plans(explainer, refused), train, retrained, seed, bootstraps)


def _plans(explainer: TabularExplainer, refused: pd.DataFrame) -> dict[str, pd.DataFrame]:
    asked = explainer.explain(refused, survival=ASKED).table
    return {"default": explainer.explain(refused).table, f"survival >= {ASKED}": asked}


def _compared(
    dataset: Dataset,
    model: str,
    plans: dict[str, pd.DataFrame],
    train: pd.DataFrame,
    retrained: Callable[[pd.DataFrame, int], Says],
    seed: int,
    bootstraps: int,
) -> list[dict[str, Any]]:
    """One line for each kind of plans: what was foretold of them, and what came."""
    plans = {name: table[table.found] for name, table in plans.items()}
    kept: dict[str, list[NDArray[np.bool_]]] = {name: [] for name in plans}
    for draw in range(bootstraps):
        tell = partial(report, "retraining", draw / bootstraps)
        tell()
        again = train.sample(len(train), replace=True, random_state=1000 * (seed + 1) + draw).reset_index(drop=True)
        with instead(tell):
            says = retrained(again, draw)
        for name, table in plans.items():
            kept[name].append(says(table))
    return [_line(dataset, model, name, plans[name], np.array(kept[name])) for name in plans]


def _line(dataset: Dataset, model: str, name: str, plans: pd.DataFrame, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """``kept`` says of each retrained model (first axis) which plans it favours."""
    foretold, actual = plans.survival.to_numpy(dtype=np.float64), kept.mean(axis=0)
    return {
        "dataset": dataset.paper_name,
        "model": model,
        "plans": name,
        "n": len(plans),
        "foretold": float(foretold.mean()),
        "actual": float(actual.mean()),
        "calibration_error": calibration_error(foretold, actual),
        "bootstraps": len(kept),
        "calibration_error_of_ten": calibration_error(foretold, kept[:10].mean(axis=0)),
    }


def calibration_error(foretold: NDArray[np.float64], actual: NDArray[np.float64]) -> float:
    """The mean distance between what was foretold and what came, over ten bins of what was foretold.

    Examples
    --------
    >>> import numpy as np
    >>> round(calibration_error(np.array([0.9, 0.9, 0.1, 0.1]), np.array([1.0, 0.6, 0.1, 0.3])), 3)
    0.1
    """
    bins = np.minimum((foretold * _BINS).astype(int), _BINS - 1)
    each = [
        abs(foretold[bins == at].mean() - actual[bins == at].mean()) * (bins == at).mean() for at in np.unique(bins)
    ]
    return float(np.sum(each))
