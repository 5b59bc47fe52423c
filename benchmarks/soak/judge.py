"""The outside judge: what plans break, by plain values and the table alone. Nothing of gpae is used here."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Json = dict[str, Any]

TOLERANCE = 1e-9
"""Relative to the size of what is compared."""


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
        before, after = ({n: _read(f, frame[n]) for n, f in features.items()} for frame in (own, plans))
        return cls(features, before, after, row)

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
        if not is_number(feature):
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
            seen = known_amounts(feature, column)
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
        feature, slack = self.features[name], 0.0
        if is_number(feature) and feature.get("step"):  # a step and a bound may be one number, computed in two ways
            slack = 1e-14 * max(abs(feature[end]) for end in ("minimum", "maximum"))
        return self._is_amount(name) & ((self.after[name] < low - slack) | (self.after[name] > high + slack))

    def _bound(self, feature: Json, bound: Any) -> Array:
        """One value for each plan; NaN says nothing."""
        if isinstance(bound, list | tuple):
            return np.array([np.nan if bound[row] is None else float(bound[row]) for row in self.row])
        if bound is None:
            return np.full(len(self.row), np.nan)
        return np.full(len(self.row), float(bound if is_number(feature) else _rank(feature["levels"], bound)))

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
        sides: list[Any] = [frame.eval(side) for side in (left, right)]
        one, other = (np.broadcast_to(side, len(frame)) for side in sides)
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
    return np.asarray(np.abs(values - whole) <= 1e-6 * step + 4 * np.spacing(np.maximum(np.abs(values), abs(start))))


def _rank(levels: list[Any], value: Any) -> int:
    """The place of a level, by its value or its text; -1: it is none."""
    for place, level in enumerate(levels):
        if level == value or str(level) == str(value):
            return place
    return int(UNKNOWN)


def _read(feature: Json, column: pd.Series) -> Array:
    """A column as numbers: the amounts, or the ranks of levels; NaN where missing."""
    if is_number(feature):
        return np.asarray(pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan))
    ranks = {value: float(_rank(feature["levels"], value)) for value in column.dropna().unique()}
    return np.asarray(column.map(ranks).to_numpy(np.float64, na_value=np.nan))


def is_number(feature: Json) -> bool:
    return feature["kind"] in ("continuous", "integer")


def known_amounts(feature: Json, column: Any) -> Array:
    """Of a column of numbers, those that are known and no codes."""
    values = pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)
    return values[~np.isnan(values) & ~np.isin(values, feature.get("codes", []))]


def unfavourable(probability: Array, margin: float | None) -> Mask:
    """Which plans the model does not favour by as much as was asked."""
    with np.errstate(divide="ignore"):
        logit = np.log(probability) - np.log1p(-probability)
    return np.asarray((probability <= 0.5) | (logit < (margin or 0.0) - TOLERANCE))
