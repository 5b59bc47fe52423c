"""Whether plans survive retraining as often as was foretold."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpae.dataset import Dataset
from gpae.progress import report
from gpae.tabular import TabularExplainer

__all__ = ["calibration_error", "figures"]

_BINS = 10
ASKED = 0.9


def figures(dataset: Dataset, *, seed: int = 0, rows: int = 500, bootstraps: int = 10) -> list[dict[str, Any]]:
    """Explain refused test rows by default and with a survival asked, retrain on fresh bootstraps, and compare."""
    train, _, test = dataset.split(seed=seed)
    options: dict[str, Any] = {"label": dataset.label, "favourable": dataset.favourable, "seed": seed}
    explainer = TabularExplainer(**options, immutable=dataset.masked).fit(train)
    refused = test[explainer.predict(test) != dataset.favourable].head(rows)
    plans = {
        "default": explainer.explain(refused).table,
        "plausible": explainer.explain(refused, prefer="plausible").table,
        f"survival >= {ASKED}": explainer.explain(refused, survival=ASKED).table,
    }
    plans = {name: table[table.found] for name, table in plans.items()}
    features = list(explainer.schema_.names)
    kept: dict[str, list[NDArray[np.bool_]]] = {name: [] for name in plans}
    for draw in range(bootstraps):
        report("retraining", draw / bootstraps)
        again = train.sample(len(train), replace=True, random_state=1000 * (seed + 1) + draw).reset_index(drop=True)
        retrained = TabularExplainer(**options, schema=explainer.schema_).fit(again)
        for name, table in plans.items():
            kept[name].append(retrained.predict_proba(table[features])[:, 1] > 0.5)
    return [_line(dataset, name, plans[name], np.mean(kept[name], axis=0)) for name in plans]


def _line(dataset: Dataset, name: str, plans: pd.DataFrame, actual: NDArray[np.float64]) -> dict[str, Any]:
    foretold = plans.survival.to_numpy(dtype=np.float64)
    return {
        "dataset": dataset.paper_name,
        "plans": name,
        "n": len(plans),
        "foretold": float(foretold.mean()),
        "actual": float(actual.mean()),
        "calibration_error": calibration_error(foretold, actual),
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
