"""The world of a case: its tables, its model, and gpae fitted to them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from benchmarks.soak.judge import Array, Json, is_number, known_amounts
from gpae import TabularExplainer, plan_finder
from gpae.datasets import load
from gpae.table.schema import Schema

CHEAP: Json = {
    "n_features": 60, "latent_dim": 2, "max_epochs": 2, "length_scale": 1.0, "classification_weight": 1.0, "beta": 0.01,
    "density_features": 20, "density_draws": 500,
}  # fmt: skip
POOL = 3000
"""Rows of a data set from which people are drawn."""
MANY, FEW = 300, 6
"""People of a call. Only a few are also searched for proofs that they have no plan, which may take seconds each (and
sometimes find one)."""


@lru_cache
def dataset(name: str) -> pd.DataFrame:
    """The first training rows of a data set."""
    return load(name).split(0)[0].head(POOL)


@lru_cache
def inferred(name: str, rows: int) -> Json:
    """The schema that gpae reads off the first rows."""
    entry = load(name)
    return Schema.infer(dataset(name).head(rows), label=entry.label, favourable=entry.favourable).to_dict()


def tables(case: Json) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The training table, and one of people who may ask."""
    if case["table"] != "synthetic":
        pool = dataset(case["table"])
        return pool.head(case["rows"]), pool.iloc[case["rows"] // 2 :]
    rng = np.random.default_rng(case["seed"])
    features = case["schema"]["features"]
    train, people = (
        pd.DataFrame({f["name"]: _cells(f, n, rng, strange) for f in features})
        for n, strange in ((case["rows"], 0.0), (900, 0.05))
    )
    worth = Scoring(train, features, case["seed"] + 1).logit(train) + rng.normal(0, 0.5, len(train))
    return train.assign(granted=np.where(worth > np.median(worth), "yes", "no")), people


def _cells(feature: Json, n: int, rng: np.random.Generator, strange: float) -> Any:
    """A column; a share of ``strange`` numbers lies beside the steps or outside of the range."""
    if not is_number(feature):
        cells = pd.Series(rng.choice(np.array(feature["levels"], dtype=object), n))
        return cells.where(rng.random(n) > 0.1 * feature["missing"], None).infer_objects()
    low, high = feature["minimum"], feature["maximum"]
    step: Any = feature.get("step")
    share = rng.beta(1.2, 2.0, n)
    values = low + (high - low) * share if step is None else low + step * np.floor(share * ((high - low) / step + 1))
    beside = 0.003 if feature["kind"] == "continuous" else 1 if step > 1 else 0.5
    values = np.where(rng.random(n) < strange, values + beside, values)
    values = np.where(rng.random(n) < strange, high + np.ceil(0.1 * (high - low)), np.round(values, 10))
    for code in feature.get("codes", ()):
        values = np.where(rng.random(n) < 0.08, code, values)
    values = np.where(rng.random(n) < 0.1 * feature["missing"], np.nan, values)
    return values.astype(np.int64) if feature["kind"] == "integer" and (values == np.floor(values)).all() else values


class Scoring:
    """A random logistic score of a frame, with levels and missing values; each row is summed on its own."""

    def __init__(self, train: pd.DataFrame, features: list[Json], seed: int) -> None:
        rng = np.random.default_rng(seed)
        known = {f["name"]: known_amounts(f, train[f["name"]]) for f in features if is_number(f)}
        self.numbers = {
            name: (float(values.mean()), float(values.std()) or 1.0, rng.normal(), rng.normal())
            for name, values in known.items()
        }
        self.levels = {
            f["name"]: {level: float(rng.normal()) for level in f["levels"]} for f in features if not is_number(f)
        }
        self.offset = float(np.quantile(self._sum(train), 0.6))

    def _sum(self, frame: pd.DataFrame) -> Array:
        total = np.zeros(len(frame))
        for name, (mean, spread, weight, absent) in self.numbers.items():
            z = np.clip((frame[name].to_numpy(np.float64, na_value=np.nan) - mean) / spread, -4, 4)
            total = total + np.where(np.isnan(z), absent, weight * z)
        for name, weights in self.levels.items():
            total = total + frame[name].map(weights).fillna(0.0).to_numpy(np.float64)
        return total

    def logit(self, frame: pd.DataFrame) -> Array:
        return self._sum(frame) - self.offset

    def __call__(self, frame: pd.DataFrame) -> Array:
        return np.asarray(1.0 / (1.0 + np.exp(-self.logit(frame))))


@dataclass(frozen=True)
class World:
    """A case with everything fitted."""

    case: Json
    train: pd.DataFrame
    people: pd.DataFrame
    explainer: TabularExplainer
    probability: Callable[[pd.DataFrame], Array]
    """The model itself: a frame like the training table -> the probability of the favourable label."""

    @classmethod
    def of(cls, case: Json) -> "World":
        train, people = tables(case)
        schema, scaling = Schema.from_dict(case["schema"]), case["scaling"]
        label: Json = {"label": schema.label, "favourable": schema.favourable}
        if case["model"] == "own":
            explainer = TabularExplainer(**label, schema=schema, scaling=scaling, **CHEAP).fit(train)
            return cls(case, train, people, explainer, lambda frame: explainer.predict_proba(frame)[:, 1])
        model, probability = _model(case, train)
        # a drawn model knows nothing of the labels; one that says the opposite of them would be refused
        no, yes = case["schema"]["labels"]
        train = train.assign(**{schema.label: np.where(probability(train) > 0.5, yes, no)})
        explainer = TabularExplainer.explaining(model, train, **label, schema=schema, scaling=scaling, **CHEAP)
        return cls(case, train, people, explainer, probability)

    def asking(self, question: Json) -> pd.DataFrame:
        """Refused people; the constraints may hold one bound for each of them."""
        rng = np.random.default_rng(question["seed"])
        some = self.people.iloc[rng.permutation(len(self.people))[: 6 * question["n"]]]
        known = self._readable(some)
        refused = known[self.probability(known) <= 0.5]
        again = np.arange(question["n"]) % max(len(refused), 1)  # exactly n of them, some twice if need be
        return refused.iloc[again[: question["n"] if len(refused) else 0]].reset_index(drop=True)

    def _readable(self, people: pd.DataFrame) -> pd.DataFrame:
        """People whose levels occur in the schema."""
        good = np.ones(len(people), dtype=np.bool_)
        for feature in self.case["schema"]["features"]:
            if not is_number(feature):
                good &= (people[feature["name"]].isin(feature["levels"]) | people[feature["name"]].isna()).to_numpy()
        return people[good]

    def answer(self, question: Json, people: pd.DataFrame) -> pd.DataFrame:
        """The plans as written, one line each."""
        asked = {name: question[name] for name in ("k", "prefer", "margin", "immutable", "constraints", "deadline")}
        with _proofs(within=_SECONDS if question["n"] <= FEW else 0.0):
            table = self.explainer.explain(people, **asked).table
        return table[table.found.to_numpy(bool)].reset_index(drop=True)

    def as_trained(self, plans: pd.DataFrame) -> pd.DataFrame:
        """Plans in the types of the training table, as the model knows them; a half that a person has stays one."""
        types = {f["name"]: self.train[f["name"]].dtype for f in self.case["schema"]["features"]}
        halves = [name for name, kind in types.items() if kind.kind == "i" and (plans[name] % 1 != 0).any()]
        return plans[[*types]].astype(types | dict.fromkeys(halves, np.float64))


_SECONDS = 0.2


@contextmanager
def _proofs(within: float) -> Iterator[None]:
    """Let each proof take so many seconds: plans are what is judged here, and people without one are many."""
    before = plan_finder._PROOF_SECONDS
    plan_finder._PROOF_SECONDS = within
    try:
        yield
    finally:
        plan_finder._PROOF_SECONDS = before


def _model(case: Json, train: pd.DataFrame) -> tuple[Any, Callable[[pd.DataFrame], Array]]:
    """A cheap model, and the same as a function of a frame to its probability of the favourable label."""
    schema = case["schema"]
    features = schema["features"]
    scoring = Scoring(train, features, case["seed"])
    if case["model"] == "function":
        return scoring, scoring
    if case["model"] == "labels":
        labels = np.array(schema["labels"], dtype=object)
        return (
            lambda frame: labels[(scoring(frame) > 0.5).astype(int)],
            lambda frame: (scoring(frame) > 0.5).astype(np.float64),
        )
    forest = make_pipeline(
        make_column_transformer(
            (SimpleImputer(keep_empty_features=True), [f["name"] for f in features if is_number(f)]),
            (OneHotEncoder(handle_unknown="ignore"), [f["name"] for f in features if not is_number(f)]),
        ),
        RandomForestClassifier(8, max_depth=4, random_state=case["seed"] % 1000),
    )
    names = [f["name"] for f in features]
    forest.fit(train[names], scoring(train) + np.random.default_rng(case["seed"]).normal(0, 0.1, len(train)) > 0.5)
    at = list(forest.classes_).index(True)
    return forest, lambda frame: forest.predict_proba(frame[names])[:, at]
