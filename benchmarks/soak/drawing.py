"""What is drawn: cases as plain JSON values only, so that one can be written down and asked again."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from benchmarks.soak.judge import Array, Json, is_number, known_amounts
from benchmarks.soak.worlds import FEW, MANY, inferred, tables

DATASETS = ("adult", "fico", "gmc", "law", "lcd")
MODELS = ("function", "function", "labels", "forest", "forest", "own")


def _name(i: int) -> str:
    return ("income", "debt", "hours worked", "rate-a", "degree", "job", "married", "region", "n_cars")[i % 9] + str(i)


@st.composite
def _number(draw: st.DrawFn, name: str) -> Json:
    low = draw(st.sampled_from([0, 0, 1, 18, -50]))
    steps = draw(st.one_of(st.integers(3, 12), st.integers(5, 400)))
    missing = draw(st.booleans()) and draw(st.booleans())
    if draw(st.booleans()):
        step: Any = draw(st.sampled_from([1, 1, 1, 2, 5, 25]))
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
    levels: list[Any] = draw(
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
        if is_number(entry) and entry.get("step") and draw(st.integers(0, 5)) == 0:
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
        values = {f["name"]: known_amounts(f, train[f["name"]]) for f in features if is_number(f)}
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
    low: Any
    high: Any
    if is_number(feature):
        low, high = (columns.quantile(feature, share) for share in ends)
    else:
        low, high = (feature["levels"][round(share * (len(feature["levels"]) - 1))] for share in ends)
    if n and is_number(feature) and draw(st.booleans()):
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
