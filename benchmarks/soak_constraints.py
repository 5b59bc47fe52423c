"""Plans under constraints that hypothesis draws, judged from outside: does any written plan break what was asked?

``python benchmarks/soak_constraints.py -o results/recourse --plans 200000`` draws tables (the five data sets and
synthetic ones), schemas, models, constraints and questions until so many plans are written, and judges each as a user
would: from the answer's table, the query, the schema's and the constraints' plain values, and the model itself. Nothing
of gpae's own judgement is used. ``constraints.csv`` counts by table and kind; what is wrong goes to
``violations.jsonl`` with the whole case, which ``--replay violations.jsonl`` asks again, and the exit code is 1.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gpae import TabularExplainer, plan_finder
from gpae.benchmark.record import describe_run
from gpae.datasets import load
from gpae.errors import InputError
from gpae.table.schema import Schema

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Json = dict[str, Any]

DATASETS = ("adult", "fico", "gmc", "law", "lcd")
MODELS = ("function", "function", "labels", "forest", "forest", "own")
CHEAP = {
    "n_features": 60, "latent_dim": 2, "max_epochs": 2, "length_scale": 1.0, "classification_weight": 1.0, "beta": 0.01,
    "density_features": 20, "density_draws": 500,
}  # fmt: skip
TOLERANCE = 1e-9
"""Relative to the size of what is compared."""
POOL = 3000
"""Rows of a data set from which people are drawn."""
MANY, FEW = 300, 6
"""People of a call. Only a few are also searched for proofs that they have no plan, which may take seconds each (and
sometimes find one)."""
MOST_VIOLATIONS = 200
"""After so many the run ends: they are one mistake, or a few."""


# ---- what is drawn: plain JSON values only, so that a case can be written down and asked again


def _name(i: int) -> str:
    return ("income", "debt", "hours worked", "rate-a", "degree", "job", "married", "region", "n_cars")[i % 9] + str(i)


@st.composite
def _number(draw: st.DrawFn, name: str) -> Json:
    low = draw(st.sampled_from([0, 0, 1, 18, -50]))
    steps = draw(st.integers(5, 400))
    missing = draw(st.booleans()) and draw(st.booleans())
    if draw(st.booleans()):
        step = draw(st.sampled_from([1, 1, 1, 2, 5, 25]))
        codes = [-9.0, -8.0][: draw(st.integers(0, 2))] if low >= 0 else []
        entry: Json = {"kind": "integer", "minimum": low, "maximum": low + step * steps, "step": step, "codes": codes}
    else:
        step = draw(st.sampled_from([None, None, 0.5, 0.1, 0.01]))
        high = low + steps * (step or 0.37)
        entry = {"kind": "continuous", "minimum": float(low), "maximum": round(high, 10), "step": step}
    return {"name": name, **entry, "missing": missing}


@st.composite
def _levelled(draw: st.DrawFn, name: str) -> Json:
    kind = draw(st.sampled_from(["ordinal", "categorical", "binary"]))
    n = 2 if kind == "binary" else draw(st.integers(3, 6))
    levels = draw(
        st.sampled_from([["e", "d", "c", "b", "a", "f"], [3, 1, 2, 5, 4, 9], ["no", "yes", "I", "II", "V", "?"]])
    )
    return {"name": name, "kind": kind, "levels": levels[:n], "missing": draw(st.booleans()) and draw(st.booleans())}


@st.composite
def _synthetic_features(draw: st.DrawFn) -> list[Json]:
    kinds = ["number", "number", *draw(st.lists(st.sampled_from(["number", "level"]), min_size=2, max_size=6))]
    names = [_name(i) for i in range(len(kinds))]
    return [draw(_number(n) if kind == "number" else _levelled(n)) for n, kind in zip(names, kinds, strict=True)]


@st.composite
def _edited(draw: st.DrawFn, features: list[Json]) -> list[Json]:
    """An inferred schema as somebody might edit it: orders, narrower ranges."""
    edited = []
    for feature in features:
        entry = dict(feature)
        if entry["kind"] == "categorical" and draw(st.booleans()):
            entry["kind"] = "ordinal"
        if _is_number(entry) and entry.get("step") and draw(st.integers(0, 5)) == 0:
            reach = int((entry["maximum"] - entry["minimum"]) / entry["step"])
            first, last = sorted(draw(st.tuples(st.integers(0, reach // 3), st.integers(reach // 2, reach))))
            low = entry["minimum"]
            entry |= {"minimum": _rounded(low + first * entry["step"]), "maximum": _rounded(low + last * entry["step"])}
        edited.append(entry)
    return edited


@st.composite
def _with_ways(draw: st.DrawFn, features: list[Json]) -> list[Json]:
    """Which way each feature may change; a third at least may go anywhere."""
    ways = ["any", "any", "any", "any", "up", "down", "fixed"]
    drawn = []
    for i, feature in enumerate(features):
        way = "any" if i % 3 == 0 else draw(st.sampled_from(ways))
        way = "any" if feature["kind"] == "categorical" and way in ("up", "down") else way
        drawn.append({**feature, "change": way})
    return drawn


@dataclass(frozen=True)
class _Columns:
    """What constraints can be about: the features, and their training values."""

    features: list[Json]
    values: dict[str, Array]
    """Of each number, those that are known and no codes."""

    @classmethod
    def of(cls, features: list[Json], train: pd.DataFrame) -> "_Columns":
        values = {f["name"]: _amounts(f, train[f["name"]]) for f in features if _is_number(f)}
        return cls(features, values)

    def named(self, *kinds: str) -> list[Json]:
        return [f for f in self.features if f["kind"] in kinds]

    @property
    def numbers(self) -> list[Json]:
        return [f for f in self.named("continuous", "integer") if len(self.values[f["name"]])]

    @property
    def levelled(self) -> list[Json]:
        return self.named("categorical", "ordinal", "binary")

    @property
    def ordered(self) -> list[Json]:
        return [*self.numbers, *self.named("ordinal", "binary")]

    def quantile(self, feature: Json, share: float) -> float:
        return float(np.quantile(self.values[feature["name"]], share, method="nearest"))


def _rounded(number: float) -> float:
    return round(number, 10) if isinstance(number, float) else number


def _is_number(feature: Json) -> bool:
    return feature["kind"] in ("continuous", "integer")


def _amounts(feature: Json, column: pd.Series) -> Array:
    values = pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)
    return values[~np.isnan(values) & ~np.isin(values, feature.get("codes", []))]


_SHARES = st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0])


@st.composite
def _fixed(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    names = st.sampled_from([f["name"] for f in columns.features])
    return {"kind": "fixed", "features": draw(st.lists(names, min_size=1, max_size=2, unique=True))}


@st.composite
def _direction(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    feature = draw(st.sampled_from(columns.ordered))
    return {"kind": "direction", "feature": feature["name"], "change": draw(st.sampled_from(["up", "down"]))}


@st.composite
def _range(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    """``n`` people: bounds may be each person's own; 0: one bound for everybody."""
    feature = draw(st.sampled_from(columns.ordered))
    ends = sorted(draw(st.tuples(_SHARES, _SHARES)))
    if _is_number(feature):
        low, high = (columns.quantile(feature, share) for share in ends)
    else:
        low, high = (feature["levels"][round(share * (len(feature["levels"]) - 1))] for share in ends)
    if n and _is_number(feature) and draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        width = max(high - low, 1e-6)
        low = [None if rng.random() < 0.3 else low - round(width * rng.random(), 3) for _ in range(n)]
        high = [None if rng.random() < 0.3 else high + round(width * rng.random(), 3) for _ in range(n)]
    which = draw(st.sampled_from([("minimum",), ("maximum",), ("minimum", "maximum")]))
    bounds = {"minimum": low, "maximum": high}
    return {"kind": "range", "feature": feature["name"], **{end: bounds[end] for end in which}}


@st.composite
def _within(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    feature, relative = draw(st.sampled_from(columns.numbers)), draw(st.booleans())
    unit = 1.0 if relative else float(np.ptp(columns.values[feature["name"]]))
    ways = draw(st.sampled_from([("up",), ("down",), ("up", "down")]))
    amounts = {way: round(draw(st.sampled_from([0.05, 0.1, 0.3, 0.5])) * unit, 6) for way in ways}
    return {"kind": "within", "feature": feature["name"], **amounts, "relative": relative}


@st.composite
def _step(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    feature = draw(st.sampled_from(columns.numbers))
    finer = feature.get("step") or (1 if feature["kind"] == "integer" else None)
    spread = feature["maximum"] - feature["minimum"]
    step = _rounded(finer * draw(st.sampled_from([2, 3, 5]))) if finer else max(round(spread / 20, 3), 0.001)
    rule = {"kind": "step", "feature": feature["name"], "step": step}
    if draw(st.booleans()):
        rule["start"] = _rounded(feature["minimum"] + draw(st.integers(-3, 4)) * (finer or 0.25))
    return rule


@st.composite
def _one_of(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    feature = draw(st.sampled_from(columns.levelled))
    levels = draw(st.lists(st.sampled_from(feature["levels"]), min_size=1, max_size=5, unique=True))
    return {"kind": "one_of", "feature": feature["name"], "levels": levels}


@st.composite
def _transitions(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    feature = draw(st.sampled_from(columns.levelled))
    some = st.lists(st.sampled_from(feature["levels"]), max_size=3, unique=True)
    allowed = {str(level): draw(some) for level in draw(some)}
    otherwise = draw(st.sampled_from(["any", "none"]))
    return {"kind": "transitions", "feature": feature["name"], "allowed": allowed, "otherwise": otherwise}


@st.composite
def _linear(draw: st.DrawFn, columns: _Columns, n: int) -> Json | str:
    chosen = draw(st.lists(st.sampled_from(columns.numbers), min_size=2, max_size=3, unique_by=lambda f: f["name"]))
    weights = [draw(st.sampled_from([1.0, -1.0, 2.0, 0.5, -0.4])) for _ in chosen]
    rng = np.random.default_rng(0)
    drawn = [rng.choice(columns.values[f["name"]], 200) for f in chosen]
    total = sum(w * v for w, v in zip(weights, drawn, strict=True))
    low, high = (round(float(np.quantile(total, share)), 3) for share in sorted(draw(st.tuples(_SHARES, _SHARES))))
    form = draw(st.sampled_from(["at_most", "at_least", "both", "equal", "text", "text", "text", "ratio"]))
    names = [f["name"] for f in chosen]
    if form == "text":
        relation = draw(st.sampled_from(["<=", "<=", ">=", ">=", "=", "=="]))
        return _text(names, weights, relation, low if relation == ">=" else high)
    if form == "ratio" and all(f["minimum"] >= 0 for f in chosen):
        relation, ratio = draw(st.sampled_from(["<=", ">="])), draw(st.sampled_from([0.25, 0.5, 1, 2]))
        return f"`{names[0]}` / `{names[1]}` {relation} {ratio}"
    bounds = {"at_most": {"at_most": high}, "at_least": {"at_least": low}, "equal": {"equal": low}}
    terms = dict(zip(names, weights, strict=True))
    return {"kind": "linear", "terms": terms, **bounds.get(form, {"at_least": low, "at_most": high})}


def _text(names: list[str], weights: list[float], relation: str, bound: float) -> str:
    """A rule as people write it, with positive terms only on either side."""
    sides: tuple[list[str], list[str]] = ([], [])
    for name, weight in zip(names, weights, strict=True):
        sides[weight < 0].append(f"{abs(weight)} * `{name}`")
    sides[bound >= 0].append(repr(abs(bound)))
    left, right = (" + ".join(side) or "0" for side in sides)
    return f"{left} {relation} {right}"


@st.composite
def _implies(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    when, then = draw(
        st.lists(st.sampled_from(columns.features), min_size=2, max_size=2, unique_by=lambda f: f["name"])
    )
    way = st.sampled_from(["any", "up", "down"])
    rule = {"kind": "implies", "when": when["name"], "then": then["name"]}
    if when["kind"] != "categorical":
        rule["when_change"] = draw(way)
    if then["kind"] != "categorical":
        rule["then_change"] = draw(way)
        most = (
            float(np.ptp(columns.values[then["name"]]))
            if then in columns.numbers
            else len(then.get("levels", "ab")) - 1
        )
        rule["by"] = round(draw(st.sampled_from([0.0, 0.0, 0.05, 0.2])) * most, 3)
    return rule


@st.composite
def _at_most(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    rule: Json = {"kind": "at_most", "changes": draw(st.sampled_from([1, 2, 2, 3, 4]))}
    if draw(st.booleans()):
        names = st.sampled_from([f["name"] for f in columns.features])
        rule["features"] = draw(st.lists(names, min_size=2, max_size=6, unique=True))
    return rule


@st.composite
def _cost(draw: st.DrawFn, columns: _Columns, n: int) -> Json:
    names = draw(st.lists(st.sampled_from([f["name"] for f in columns.features]), min_size=1, max_size=3, unique=True))
    return {"kind": "cost", "weights": {name: draw(st.sampled_from([0.2, 3.0, 10.0])) for name in names}}


def _rules(columns: _Columns, n: int, most: int) -> st.SearchStrategy[list[Any]]:
    kinds = [_fixed, _direction, _range, _range, _within, _step, _linear, _linear, _implies, _at_most, _cost]
    kinds += [_one_of, _transitions] if columns.levelled else []
    return st.lists(st.one_of([kind(columns, n) for kind in kinds]), max_size=most)


_GIVEN, _OWN = [None] * 11 + [0.3], [0.7] * 11 + [0.3]
"""Deadlines in seconds: gpae's own model has a search of its own, which is left out where there is a deadline."""


@st.composite
def _question(draw: st.DrawFn, columns: _Columns, model: str) -> Json:
    names = [f["name"] for f in columns.features]
    few = draw(st.integers(0, 11)) == 7
    n = FEW if few else MANY
    rules = draw(_rules(columns, n, 3))
    plain = not rules and draw(st.booleans())
    n = n // 6 if plain and model == "own" and not few else n  # by the method itself, which takes its time
    deadlines = _OWN if model == "own" else _GIVEN
    return {
        "n": n,
        "seed": draw(st.integers(0, 2**16)),
        "k": 1 if plain else draw(st.sampled_from([1, 2, 3, 4, 4])),
        "prefer": None if plain else draw(st.sampled_from([None, "plausible", "near", "sparse"])),
        "margin": None if plain else draw(st.sampled_from([None, None, 0.1, 0.4])),
        "immutable": draw(st.lists(st.sampled_from(names), max_size=2, unique=True)),
        "constraints": rules,
        "deadline": None if few or plain else draw(st.sampled_from(deadlines)),
    }


@st.composite
def cases(draw: st.DrawFn) -> Json:
    """A table, its schema, a model, and what is asked of it."""
    table = draw(st.sampled_from([*DATASETS, "synthetic", "synthetic", "synthetic"]))
    case: Json = {"table": table, "rows": draw(st.sampled_from([300, 500, 800])), "seed": draw(st.integers(0, 2**16))}
    if table == "synthetic":
        features = draw(_synthetic_features())
        schema: Json = {"label": "granted", "favourable": "yes", "labels": ["no", "yes"]}
    else:
        schema = inferred(table, case["rows"])
        features = draw(_edited(schema["features"]))
    features = draw(_with_ways(features))
    case |= {"schema": {**schema, "features": features}, "model": draw(st.sampled_from(MODELS))}
    case["scaling"] = draw(st.sampled_from(["minmax", "minmax", "robust", "quantile"]))
    train, _ = tables(case)
    columns = _Columns.of(features, train)
    if draw(st.integers(0, 3)) == 0:
        case["schema"]["constraints"] = draw(_rules(columns, 0, 2))
    case["questions"] = draw(st.lists(_question(columns, case["model"]), min_size=3, max_size=5))
    return case


# ---- tables and models of a case


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
    if not _is_number(feature):
        cells = pd.Series(rng.choice(np.array(feature["levels"], dtype=object), n))
        return cells.where(rng.random(n) > 0.1 * feature["missing"], None).infer_objects()
    low, high, step = feature["minimum"], feature["maximum"], feature.get("step")
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
        known = {f["name"]: _amounts(f, train[f["name"]]) for f in features if _is_number(f)}
        self.numbers = {
            name: (float(values.mean()), float(values.std()) or 1.0, rng.normal(), rng.normal())
            for name, values in known.items()
        }
        self.levels = {
            f["name"]: {level: float(rng.normal()) for level in f["levels"]} for f in features if not _is_number(f)
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
        label = {"label": schema.label, "favourable": schema.favourable}
        if case["model"] == "own":
            explainer = TabularExplainer(**label, schema=schema, scaling=scaling, **CHEAP).fit(train)
            return cls(case, train, people, explainer, lambda frame: explainer.predict_proba(frame)[:, 1])
        model, probability = _model(case, train)
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
            if not _is_number(feature):
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
        return lambda frame: labels[(scoring(frame) > 0.5).astype(int)], lambda frame: (scoring(frame) > 0.5) * 1.0
    forest = make_pipeline(
        make_column_transformer(
            (SimpleImputer(keep_empty_features=True), [f["name"] for f in features if _is_number(f)]),
            (OneHotEncoder(handle_unknown="ignore"), [f["name"] for f in features if not _is_number(f)]),
        ),
        RandomForestClassifier(8, max_depth=4, random_state=case["seed"] % 1000),
    )
    names = [f["name"] for f in features]
    forest.fit(train[names], scoring(train) + np.random.default_rng(case["seed"]).normal(0, 0.1, len(train)) > 0.5)
    at = list(forest.classes_).index(True)
    return forest, lambda frame: forest.predict_proba(frame[names])[:, at]


# ---- the outside judge


@dataclass(frozen=True)
class Finding:
    """What one rule says of all plans."""

    kind: str
    rule: Any
    broken: Mask


@dataclass(frozen=True)
class Judge:
    """Plans (one line each) beside the people they are for, feature by feature as numbers: ranks for levels."""

    features: dict[str, Json]
    before: dict[str, Array]
    after: dict[str, Array]
    row: NDArray[np.int64]
    """Whose plan each is, by the query's order."""

    @classmethod
    def of(cls, schema: Json, people: pd.DataFrame, plans: pd.DataFrame) -> "Judge":
        features, row = {f["name"]: f for f in schema["features"]}, plans["row"].to_numpy(np.int64)
        own = people.iloc[row]
        return cls(features, *({n: _read(f, frame[n]) for n, f in features.items()} for frame in (own, plans)), row)

    def changed(self, name: str) -> Mask:
        before, after = self.before[name], self.after[name]
        return (before != after) & ~(np.isnan(before) & np.isnan(after))

    def findings(
        self, schema: Json, question: Json, plans: pd.DataFrame, train: pd.DataFrame | None = None
    ) -> Iterator[Finding]:
        """Everything that plans have to obey, whether or not it was said.

        ``train``: the table that the schema was read off, where it was.
        """
        for name, feature in self.features.items():
            yield from self._of_feature(name, feature, None if train is None else train[name])
        for name in question["immutable"]:
            yield Finding("immutable", name, self.changed(name))
        for rule in (*schema.get("constraints", ()), *question["constraints"]):
            yield self.of_rule(rule)
        yield from self._of_plans(plans, question["k"])

    def _of_feature(self, name: str, feature: Json, column: pd.Series | None) -> Iterator[Finding]:
        before, after, changed = self.before[name], self.after[name], self.changed(name)
        yield Finding("missing", name, changed & np.isnan(after))
        way = feature.get("change", "any")
        if way == "fixed":
            yield Finding("schema fixed", name, changed)
        if way in ("up", "down"):
            yield Finding("schema direction", name, after < before if way == "up" else after > before)
        if not _is_number(feature):
            yield Finding("levels", name, after == UNKNOWN)
            return
        amount = changed & ~np.isin(after, feature.get("codes", ())) & ~np.isnan(after)
        yield Finding("observed range", name, amount & self._outside(name, feature, column))
        step = feature.get("step", 1 if feature["kind"] == "integer" else None)
        if step is not None:
            yield Finding("steps", name, amount & ~_on_steps(after, feature["minimum"], step))
        if feature["kind"] == "integer":
            yield Finding("whole numbers", name, changed & ~np.isnan(after) & (after != np.floor(after)))

    def _outside(self, name: str, feature: Json, column: pd.Series | None) -> Mask:
        """Beyond what the schema, the training table that it was read off, and the person have."""
        before, after = self.before[name], self.after[name]
        own = np.where(np.isin(before, feature.get("codes", ())), np.nan, before)
        low, high = feature["minimum"], feature["maximum"]
        if column is not None:  # beside codes the range begins at 0
            seen = _amounts(feature, column)
            low, high = max(low, 0 if feature.get("codes") else seen.min()), min(high, seen.max())
        return np.asarray((after < np.fmin(low, own)) | (after > np.fmax(high, own)))

    def _of_plans(self, plans: pd.DataFrame, k: int) -> Iterator[Finding]:
        sets = pd.DataFrame({"row": self.row, **{name: self.changed(name) for name in self.features}})
        yield Finding("different plans", k, sets.duplicated().to_numpy())
        yield Finding("number of plans", k, plans.groupby("row").cumcount().to_numpy() >= k)
        dearer = plans.groupby("row")["cost"].diff().to_numpy(np.float64)
        yield Finding("order of plans", k, dearer < -TOLERANCE)

    def of_rule(self, rule: Any) -> Finding:
        """One constraint, by its plain values."""
        if isinstance(rule, str):
            return Finding("linear", rule, self._text(rule))
        return Finding(rule["kind"], rule, np.asarray(getattr(self, f"_{rule['kind']}")(rule), dtype=np.bool_))

    def _fixed(self, rule: Json) -> Mask:
        return np.any([self.changed(name) for name in rule["features"]], axis=0)

    def _direction(self, rule: Json) -> Mask:
        before, after = self.before[rule["feature"]], self.after[rule["feature"]]
        return after < before if rule["change"] == "up" else after > before

    def _range(self, rule: Json) -> Mask:
        name = rule["feature"]
        low, high = (self._bound(self.features[name], rule.get(end)) for end in ("minimum", "maximum"))
        return self._is_amount(name) & ((self.after[name] < low) | (self.after[name] > high))

    def _bound(self, feature: Json, bound: Any) -> Array:
        """One value for each plan; NaN says nothing."""
        if isinstance(bound, list | tuple):
            return np.array([np.nan if bound[row] is None else float(bound[row]) for row in self.row])
        if bound is None:
            return np.full(len(self.row), np.nan)
        return np.full(len(self.row), float(bound if _is_number(feature) else _rank(feature["levels"], bound)))

    def _is_amount(self, name: str) -> Mask:
        """Whether a rule about amounts applies: not to what is missing, nor to a code that stays."""
        kept_code = np.isin(self.after[name], self.features[name].get("codes", ())) & ~self.changed(name)
        return ~np.isnan(self.after[name]) & ~kept_code

    def _within(self, rule: Json) -> Mask:
        name = rule["feature"]
        before, after = self.before[name], self.after[name]
        unit = np.abs(before) if rule.get("relative") else np.ones_like(before)
        had = ~np.isin(before, self.features[name].get("codes", ())) & ~np.isnan(before)
        slack, far = TOLERANCE * np.maximum(1.0, np.abs(before)), np.zeros(len(before), dtype=np.bool_)
        for way, sign in (("up", 1.0), ("down", -1.0)):
            if rule.get(way) is not None:
                far |= sign * (after - before) > rule[way] * unit + slack
        return had & far

    def _step(self, rule: Json) -> Mask:
        name = rule["feature"]
        start = rule["start"] if rule.get("start") is not None else self.features[name]["minimum"]
        applies = self.changed(name) & ~np.isnan(self.after[name])
        return applies & ~_on_steps(self.after[name], start, rule["step"])

    def _one_of(self, rule: Json) -> Mask:
        name = rule["feature"]
        ranks = [_rank(self.features[name]["levels"], level) for level in rule["levels"]]
        return ~np.isnan(self.after[name]) & ~np.isin(self.after[name], ranks)

    def _transitions(self, rule: Json) -> Mask:
        name = rule["feature"]
        levels = self.features[name]["levels"]
        ways = {_rank(levels, o): {_rank(levels, to) for to in tos} for o, tos in rule["allowed"].items()}
        anywhere = rule.get("otherwise", "any") == "any"
        return np.array(
            [
                moved and not np.isnan(b) and not (a in ways[int(b)] if int(b) in ways else anywhere)
                for b, a, moved in zip(self.before[name], self.after[name], self.changed(name), strict=True)
            ],
            dtype=np.bool_,
        )

    def _linear(self, rule: Json) -> Mask:
        terms = np.stack([weight * self.after[name] for name, weight in rule["terms"].items()])
        total, slack = terms.sum(axis=0), TOLERANCE * np.maximum(1.0, np.abs(terms).sum(axis=0))
        low = rule["equal"] if rule.get("equal") is not None else rule.get("at_least")
        high = rule["equal"] if rule.get("equal") is not None else rule.get("at_most")
        broken = np.zeros(len(total), dtype=np.bool_)
        broken |= False if low is None else total < low - slack
        broken |= False if high is None else total > high + slack
        return broken & np.all([self._is_amount(name) for name in rule["terms"]], axis=0)

    def _text(self, rule: str) -> Mask:
        """A rule as text: pandas reckons either side."""
        left, relation, right = _sides(rule)
        names = [name for name in self.features if f"`{name}`" in rule]
        frame = pd.DataFrame({name: self.after[name] for name in names})
        applies = np.all([self._is_amount(name) for name in names], axis=0)
        scale: Any = 1.0
        if " / " in left:
            left, divisor = left.split(" / ")
            scale = frame.eval(divisor)
        one, other = (np.broadcast_to(frame.eval(side), len(frame)) for side in (left, right))
        other = other * scale
        slack = TOLERANCE * np.maximum(1.0, np.abs(one) + np.abs(other))
        over, under = one > other + slack, one < other - slack
        return applies & {"<=": over, ">=": under, "=": over | under}[relation]

    def _implies(self, rule: Json) -> Mask:
        drawn = self._goes(rule["when"], rule.get("when_change", "any"))
        then = rule["then"]
        enough = np.abs(self.after[then] - self.before[then]) >= rule.get("by", 0.0) * (1 - TOLERANCE)
        followed = self._goes(then, rule.get("then_change", "any")) & (enough | np.isnan(self.before[then]))
        return drawn & ~followed

    def _goes(self, name: str, way: str) -> Mask:
        """What was missing and is given now has changed, whichever way was asked."""
        before, after = self.before[name], self.after[name]
        if way == "any":
            return self.changed(name)
        return (after > before if way == "up" else after < before) | (np.isnan(before) & ~np.isnan(after))

    def _at_most(self, rule: Json) -> Mask:
        names = rule.get("features") or list(self.features)
        return np.sum([self.changed(name) for name in names], axis=0) > rule["changes"]

    def _cost(self, rule: Json) -> Mask:
        """It forbids nothing."""
        return np.zeros(len(self.row), dtype=np.bool_)


UNKNOWN = -1.0
"""The rank of a level that the schema does not have."""


def _sides(rule: str) -> tuple[str, str, str]:
    """The left side, the relation and the right side of a rule."""
    for sign in ("<=", ">=", "==", "="):
        if sign in rule:
            left, right = rule.split(sign)
            return left.strip(), "=" if sign == "==" else sign, right.strip()
    raise ValueError(f"{rule!r} has no relation")


def _on_steps(values: Array, start: float, step: float) -> Mask:
    """Whether values are whole steps from the start, up to what float64 can say of them."""
    whole = start + np.rint((values - start) / step) * step
    return np.asarray(np.abs(values - whole) <= 1e-6 * step + 4 * np.spacing(np.abs(values)))


def _rank(levels: list[Any], value: Any) -> int:
    """The place of a level, by its value or its text; -1: it is none."""
    for place, level in enumerate(levels):
        if level == value or str(level) == str(value):
            return place
    return int(UNKNOWN)


def _read(feature: Json, column: pd.Series) -> Array:
    """A column as numbers: the amounts, or the ranks of levels; NaN where missing."""
    if _is_number(feature):
        return np.asarray(pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan))
    ranks = {value: float(_rank(feature["levels"], value)) for value in column.dropna().unique()}
    return np.asarray(column.map(ranks).to_numpy(np.float64, na_value=np.nan))


def unfavourable(probability: Array, margin: float | None) -> Mask:
    """Which plans the model does not favour by as much as was asked."""
    with np.errstate(divide="ignore"):
        logit = np.log(probability) - np.log1p(-probability)
    return np.asarray((probability <= 0.5) | (logit < (margin or 0.0) - TOLERANCE))


# ---- the run


@dataclass
class Tally:
    """Counts by table and kind, and what went wrong."""

    counts: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    violations: list[Json] = field(default_factory=list)
    plans: int = 0
    cases: int = 0
    refused: int = 0
    """Questions that gpae refused as contradictory."""
    asked: set[str] = field(default_factory=set)
    """What was asked already: hypothesis likes to draw the same again, slightly changed."""

    def is_new(self, case: Json, question: Json) -> bool:
        """Whether a question was not asked before; from now on it was."""
        key = json.dumps([case["table"], question])
        new = key not in self.asked
        self.asked.add(key)
        return new

    def add(self, world: World, number: int, people: pd.DataFrame, plans: pd.DataFrame) -> None:
        """Judge the plans of a question."""
        question, schema = world.case["questions"][number], world.case["schema"]
        judge = Judge.of(schema, people, plans)
        p = world.probability(world.as_trained(plans))
        refused = unfavourable(p, question["margin"])
        train = None if world.case["table"] == "synthetic" else world.train
        findings = [*judge.findings(schema, question, plans, train), Finding("favourable", None, refused)]
        for finding in findings:
            self._note(world, number, finding, judge, p)
        of_kind = {f.kind: [g.broken for g in findings if g.kind == f.kind] for f in findings}
        for kind, broken in of_kind.items():
            entry = self.counts.setdefault((world.case["table"], kind), [0, 0, 0])
            for i, n in enumerate((len(plans), int(np.any(broken, axis=0).sum()), int(refused.sum()))):
                entry[i] += n
        self.plans += len(plans)

    def _note(self, world: World, number: int, finding: Finding, judge: Judge, p: Array) -> None:
        for at in np.flatnonzero(finding.broken)[:3]:
            before, after = ({n: float(v[at]) for n, v in side.items()} for side in (judge.before, judge.after))
            case = world.case | {"questions": [world.case["questions"][number]]}
            note = {"kind": finding.kind, "rule": finding.rule, "row": int(judge.row[at]), "probability": float(p[at])}
            self.violations.append(note | {"before": before, "after": after, "case": case})

    def frame(self) -> pd.DataFrame:
        """One line a table and kind."""
        lines = [(*key, *counts) for key, counts in sorted(self.counts.items())]
        return pd.DataFrame(lines, columns=["table", "kind", "plans", "violations", "unfavourable"])


def ask(case: Json, tally: Tally) -> None:
    """Ask everything that a case asks, and judge the answers."""
    new = [number for number, question in enumerate(case["questions"]) if tally.is_new(case, question)]
    if not new:
        return
    world = World.of(case)
    for number in new:
        question = case["questions"][number]
        people = world.asking(question)
        if not len(people):
            continue
        try:
            plans = world.answer(question, people)
        except InputError:
            tally.refused += 1
            continue
        if len(plans):
            tally.add(world, number, people, plans)
    tally.cases += 1


def soak(wanted: int, first_seed: int, tally: Tally) -> None:
    """Draw cases until so many plans were judged, or too much went wrong."""
    start, said = time.monotonic(), 0.0
    rounds = 0

    def one(case: Json) -> None:
        nonlocal said
        if tally.plans >= wanted or len(tally.violations) >= MOST_VIOLATIONS:
            return
        try:
            ask(case, tally)
        except InputError as error:  # a table that nothing can be learnt from
            tally.refused += 1
            print(f"  refused: {error}", file=sys.stderr)
        if time.monotonic() - said > 5:
            said = time.monotonic()
            _progress(tally, wanted, said - start)

    while tally.plans < wanted and len(tally.violations) < MOST_VIOLATIONS:
        seed(first_seed * 1_000_003 + rounds)(_DRAWING(given(cases())(one)))()
        rounds += 1
    _progress(tally, wanted, time.monotonic() - start)


_DRAWING = settings(
    max_examples=20, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


def _progress(tally: Tally, wanted: int, seconds: float) -> None:
    rate, wrong = tally.plans / max(seconds, 1e-9), len(tally.violations)
    print(
        f"{tally.plans:,} of {wanted:,} plans, {tally.cases} cases, {wrong} violations, {seconds:.0f} s, {rate:.0f}/s",
        file=sys.stderr,
        flush=True,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, help="the folder for constraints.csv and run.json")
    parser.add_argument("--plans", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=Path, help="a violations.jsonl to ask again instead of drawing")
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    tally, start = Tally(), time.monotonic()
    if options.replay:
        for line in options.replay.read_text(encoding="utf-8").splitlines():
            ask(json.loads(line)["case"], tally)
    else:
        soak(options.plans, options.seed, tally)
    seconds = time.monotonic() - start
    tally.frame().to_csv(options.out / "constraints.csv", index=False)
    wrong = options.out / "violations.jsonl"
    wrong.unlink(missing_ok=True)
    if tally.violations:
        wrong.write_text("".join(json.dumps(one) + "\n" for one in tally.violations), encoding="utf-8")
    describe_run(
        options.out,
        ["python", "benchmarks/soak_constraints.py", *(sys.argv[1:] if argv is None else argv)],
        plans=tally.plans, cases=tally.cases, refused=tally.refused, violations=len(tally.violations),
        seconds=round(seconds, 1), plans_per_second=round(tally.plans / max(seconds, 1e-9), 1),
    )  # fmt: skip
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
