"""People who are known to have no plan, and people who are known to have one: what is said of each.

Every case is small enough to know the truth without a search: a linear model is best at the end of the one number that
may change; trees are constant between their thresholds, so one value from each gap stands for all; levels can be
counted out.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gpae.tabular import TabularExplainer

__all__ = ["KINDS", "figures"]

_JOBS = ("cook", "clerk", "nurse", "judge")
_TOWNS = ("north", "south", "east", "west", "centre")
_HOMES = ("rents", "owns", "family")
_SMALL: dict[str, Any] = {"n_features": 200, "max_epochs": 15, "density_features": 100, "density_draws": 2000}
_SAME = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A model, people whom it refuses, what may change, and every row that matters of what each may become."""

    model: Pipeline
    train: pd.DataFrame
    people: pd.DataFrame
    free: tuple[str, ...]
    reachable: dict[str, list[Any]]
    """For each free feature the values that stand for all."""

    def best(self) -> NDArray[np.float64]:
        """The largest probability of a yes that each person can reach."""
        names = list(self.reachable)
        best = np.zeros(len(self.people))
        for values in product(*self.reachable.values()):
            trial = self.people.assign(**dict(zip(names, values, strict=True)))
            best = np.maximum(best, self.model.predict_proba(trial)[:, 1])
        return best


def figures(kind: str, people: int, seed: int = 0) -> dict[str, Any]:
    """Ask about so many people without a plan, and as many with one as there are, and count what is said."""
    case = KINDS[kind](np.random.default_rng(seed), people)
    truth = case.best()
    none, some = (np.flatnonzero(which)[:people] for which in (truth <= 0.5, truth > 0.5))
    explainer = TabularExplainer.explaining(
        case.model, case.train, label="loan", favourable="yes", seed=seed,
        immutable=tuple(name for name in case.people if name not in case.free), **_SMALL,
    )  # fmt: skip
    answer = explainer.explain(case.people.iloc[np.concatenate([none, some])].reset_index(drop=True))
    status = answer.table.groupby("row").status.first().to_numpy()
    proofs = answer.certificates
    hold = [_holds(proofs[i], truth[none[i]]) for i in range(len(none)) if i in proofs]
    grounds = sorted({proof["ground"] for proof in proofs.values()})
    return {
        "kind": kind,
        "without_a_plan": len(none),
        "said_infeasible": int((status[: len(none)] == "infeasible").sum()),
        "certificates": len(hold),
        "certificates_that_hold": int(np.sum(hold)),
        "with_a_plan": len(some),
        "wrongly_infeasible": int((status[len(none) :] == "infeasible").sum()),
        "found": int((status[len(none) :] == "found").sum()),
        "grounds": ", ".join(grounds),
    }


def _holds(proof: dict[str, Any], truth: float) -> bool:
    """Whether a proof's bound lies between the best that there is and what is needed, in the units of the model."""
    needed = proof["needed"]
    best = truth if needed == 0.5 else float(np.log(truth) - np.log1p(-truth))
    return bool(proof["best"] is not None and best - _SAME <= proof["best"] <= needed)


def _table(rng: np.random.Generator, n: int) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "income": rng.uniform(10, 90, n),
            "debt": rng.uniform(0, 50, n),
            "years": rng.integers(0, 20, n),
            "job": rng.choice(_JOBS, n),
            "town": rng.choice(_TOWNS, n),
            "home": rng.choice(_HOMES, n),
        }
    )
    worth = table.income - table.debt + table.years + 10 * (table.job == "judge") + 5 * (table.home == "owns")
    table["loan"] = np.where(worth + rng.normal(0, 5, n) > 45, "yes", "no")
    return table


def _fitted(last: Any, train: pd.DataFrame, names: list[str]) -> Pipeline:
    levels = [name for name in names if name in ("job", "town", "home")]
    before = make_column_transformer((OneHotEncoder(sparse_output=False), levels), remainder="passthrough")
    return make_pipeline(before, last).fit(train[names], train.loan == "yes")


def _linear(rng: np.random.Generator, people: int) -> _Case:
    """Only the debt may change; a linear model likes it best at one of its ends."""
    train = _table(rng, 2000)
    names = ["income", "debt", "years", "job"]
    model = _fitted(LogisticRegression(max_iter=2000), train, names)
    ends = [float(train.debt.min()), float(train.debt.max())]
    return _case(model, train, rng, people, names, {"debt": ends})


def _trees(rng: np.random.Generator, people: int) -> _Case:
    """Debt and years may change; between two thresholds nothing does."""
    train = _table(rng, 1500)
    names = ["income", "debt", "years", "job"]
    model = _fitted(RandomForestClassifier(8, max_depth=4, random_state=0), train, names)
    columns = list(model[0].get_feature_names_out())
    reach = {name: _gaps(model[-1], columns.index(f"remainder__{name}"), train[name]) for name in ("debt", "years")}
    return _case(model, train, rng, people, names, reach)


def _gaps(forest: RandomForestClassifier, column: int, known: pd.Series) -> list[Any]:
    """One value from each gap between the thresholds of a column."""
    cuts = np.unique([t for tree in forest.estimators_ for t in tree.tree_.threshold[tree.tree_.feature == column]])
    low, high = known.min(), known.max()
    if (known % 1 == 0).all():
        return list(range(int(low), int(high) + 1))
    edges = np.concatenate([[low], cuts[(cuts > low) & (cuts < high)], [high]])
    return list((edges[:-1] + edges[1:]) / 2)


def _levels(rng: np.random.Generator, people: int) -> _Case:
    """Town and home may change, of which there are fifteen; the model is a network."""
    train = _table(rng, 2000)
    names = ["income", "job", "town", "home"]
    model = _fitted(MLPClassifier((16,), max_iter=300, random_state=0), train, names)
    return _case(model, train, rng, people, names, {"town": list(_TOWNS), "home": list(_HOMES)})


def _case(
    model: Pipeline,
    train: pd.DataFrame,
    rng: np.random.Generator,
    people: int,
    names: list[str],
    reach: dict[str, list[Any]],
) -> _Case:
    table = _table(rng, 30 * people)[names]
    refused = table[model.predict_proba(table)[:, 1] <= 0.5].reset_index(drop=True)
    # who has a free value outside of what training has could keep it: the values that stand for all do not
    inside = np.all([refused[name].isin(v) | refused[name].between(train[name].min(), train[name].max())
                     if name not in ("town", "home", "job") else refused[name].isin(v)
                     for name, v in reach.items()], axis=0)  # fmt: skip
    return _Case(model, train[[*names, "loan"]], refused[inside].reset_index(drop=True), tuple(reach), reach)


KINDS = {"linear": _linear, "trees": _trees, "levels": _levels}
