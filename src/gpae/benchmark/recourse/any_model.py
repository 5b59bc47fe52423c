"""Plans for the models that users have: valid on the model itself, allowed, several, different."""

import time
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from gpae.benchmark.recourse.check import favoured, violations
from gpae.benchmark.recourse.users_models import fitted
from gpae.dataset import Dataset
from gpae.tabular import TabularExplainer

__all__ = ["FIXED", "Case", "figures"]

FIXED = ("race", "gender", "sex", "age")
"""Never changed, where a data set has them."""


@dataclass(frozen=True, slots=True)
class Case:
    """One model on one data set."""

    dataset: Dataset
    model: str
    seed: int = 0
    rows: int = 500
    train_rows: int = 10_000


def figures(case: Case) -> dict[str, Any]:
    """Fit the model, explain refused test rows with one plan and with four, and judge the answers from outside."""
    train, valid, test = case.dataset.split(seed=case.seed)
    test = pd.concat([test, valid], ignore_index=True)  # no model has seen either, and one alone has too few refused
    train = train.sample(min(case.train_rows, len(train)), random_state=case.seed).reset_index(drop=True)
    features, label = list(case.dataset.features), case.dataset.label
    X, y = train[features], (train[label] == case.dataset.favourable).astype(int)
    model = fitted(case.model, X, y, case.seed)
    fixed = tuple(name for name in features if name.lower() in FIXED)
    explainer = TabularExplainer.explaining(
        model, train, label=label, favourable=case.dataset.favourable, immutable=fixed, seed=case.seed
    )
    refused = test[model.predict(test[features]) == 0][features].head(case.rows).reset_index(drop=True)
    given = explainer.learnt_.given
    assert given is not None
    given.calls = given.rows = 0
    started = time.perf_counter()
    answer = explainer.explain(refused)
    seconds = time.perf_counter() - started
    calls, asked = given.calls, given.rows
    judged = _judged(answer.table, refused, model, X, fixed)
    four = explainer.explain(refused, k=4)
    several = _judged(four.table, refused, model, X, fixed)
    fidelity = explainer.fidelity_
    assert fidelity is not None
    counts = answer.summary()
    return {
        "dataset": case.dataset.paper_name,
        "model": case.model,
        "refused": len(refused),
        "found": counts.get("found", 0),
        "infeasible": counts.get("infeasible", 0),
        "not_found": counts.get("not_found", 0),
        **judged,
        "changes": float(answer.table.changes.mean()),
        "plans_of_four": len(four.table[four.table.found]),
        "valid_of_four": several["valid"],
        "violations_of_four": several["violations"],
        **_different(four.table, four.changes),
        "agreement": fidelity.agreement,
        "calls": calls,
        "rows_asked": asked,
        "rows_per_second": len(refused) / seconds,
    }


def _judged(
    table: pd.DataFrame, people: pd.DataFrame, model: Any, train: pd.DataFrame, fixed: tuple[str, ...]
) -> dict[str, Any]:
    """How many plans the model itself favours as they are written, and how many break a rule."""
    plans = table[table.found]
    rows = plans[list(people)].astype(train.dtypes.to_dict())
    origin = people.iloc[plans.row.to_numpy()]
    return {
        "valid": int(favoured(model, rows, 1).sum()),
        "violations": int(violations(rows, origin, train, fixed).sum()),
    }


def _different(table: pd.DataFrame, changes: pd.DataFrame) -> dict[str, float]:
    """Of the people with a plan: how many have four, and in how many features two of a person's plans differ."""
    sets = changes.groupby(["row", "plan"]).feature.agg(frozenset)
    n_plans = table[table.found].groupby("row").size()
    apart = [len(a ^ b) for _, own in sets.groupby("row") for a, b in combinations(own, 2)]
    return {
        "with_four": float((n_plans >= 4).mean()) if len(n_plans) else float("nan"),
        "features_apart": float(np.mean(apart)) if apart else float("nan"),
    }
