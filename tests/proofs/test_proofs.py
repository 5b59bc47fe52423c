"""Proofs against brute force: there is one exactly where no allowed row is favourable."""

from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.proofs.small_table import EVERY, RULES, SCHEMA, allowed, asked

from gpae.proofs.affine import Affine, by_linear_program
from gpae.proofs.enumeration import by_every_row
from gpae.proofs.forest import Forest
from gpae.proofs.rules import by_rules
from gpae.proofs.trees import ForestOfFeatures, by_trees
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Continuous, Integer, Schema

CASES = st.tuples(
    st.lists(st.sampled_from(RULES), unique_by=str, max_size=4),
    st.integers(0, len(EVERY) - 1),
)


def columns(values: np.ndarray) -> np.ndarray:
    """As a pipeline would make them: numbers scaled or filled in, levels as ranks or one-hot."""
    income = np.where(np.isnan(values[:, 2]), 2.5, values[:, 2])
    job = [(values[:, 4] == level).astype(float) for level in (0, 1)]
    return np.column_stack(
        [(values[:, 0] - 22) / 1.5, -values[:, 1], income, values[:, 3], *job, np.isnan(values[:, 4])]
    )


def labels(seed: int, share: float = 0.9) -> np.ndarray:
    """Few are favourable, so that many people have no way."""
    rng = np.random.default_rng(seed)
    score = columns(EVERY) @ rng.normal(size=7) + rng.normal(size=len(EVERY))
    return (score > np.quantile(score, share)).astype(int)


def favourable(score: Callable[[np.ndarray], np.ndarray], rules: list[Any], person: int) -> bool:
    free, layout = asked(rules, EVERY[person])
    every = allowed(free, layout)
    return bool(len(every)) and bool((score(every) > 0).any())


@settings(max_examples=60, deadline=None)
@given(case=CASES)
def test_asking_about_every_row_proves_or_finds(case: tuple[list[Any], int]) -> None:
    rules, person = case
    model = LogisticRegression(C=3.0).fit(columns(EVERY), labels(0))

    def logits(values: np.ndarray) -> np.ndarray:
        return np.asarray(model.decision_function(columns(values)))

    free, _ = asked(rules, EVERY[person])
    certificate, row = by_every_row(free, lambda people, U: logits(people.values(U)))
    if favourable(logits, rules, person):
        assert certificate is None
        assert row is not None
        assert free.permits(row)[0]
        assert logits(free.values(row))[0] > 0
    else:
        assert certificate is not None
        assert certificate.best <= 0


@settings(max_examples=100, deadline=None)
@given(case=CASES)
def test_a_linear_program_proves_or_finds(case: tuple[list[Any], int]) -> None:
    rules, person = case
    model = LogisticRegression(C=3.0).fit(columns(EVERY), labels(1))

    def logits(values: np.ndarray) -> np.ndarray:
        return np.asarray(model.decision_function(columns(values)))

    affine = Affine.probed(logits, SCHEMA, EVERY[::7])
    assert affine is not None
    np.testing.assert_allclose(affine.of(EVERY), logits(EVERY), atol=1e-9)
    free, _ = asked(rules, EVERY[person])
    certificate, row = by_linear_program(free, affine, 0.0, seconds=10.0)
    if favourable(logits, rules, person):
        assert certificate is None
        assert row is not None
        assert free.permits(row)[0]
        assert logits(free.values(row))[0] > 0
    else:
        assert certificate is not None


MODELS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": RandomForestClassifier(15, max_depth=6, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=20, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def trees(request: pytest.FixtureRequest) -> tuple[Any, ForestOfFeatures]:
    model = MODELS[request.param].fit(columns(EVERY), labels(2))
    forest = Forest.of(model, columns(EVERY), 1)
    assert forest is not None
    found = ForestOfFeatures.probed(forest, columns, SCHEMA, EVERY)
    assert found is not None
    return model, found


@settings(max_examples=40, deadline=None)
@given(case=CASES, margin=st.sampled_from([0.0, 0.0, 0.4, 1.5]))
def test_a_tree_program_proves_or_finds(
    trees: tuple[Any, ForestOfFeatures], case: tuple[list[Any], int], margin: float
) -> None:
    model, forest = trees
    rules, person = case

    def score(values: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict_proba(columns(values))[:, 1] - 1.0 / (1.0 + np.exp(-margin)))

    free, layout = asked(rules, EVERY[person])
    certificate, row = by_trees(free, forest, 20.0, margin)
    every = allowed(free, layout)
    best = score(every).max() if len(every) else -1.0
    if best > 1e-6:
        assert certificate is None
        assert row is not None
    elif best < -1e-6:  # where it is next to what is needed, rounding in the sums leaves the question open
        assert certificate is not None
        assert certificate.best <= certificate.needed == forest.forest.needed_for(margin)


def boosters() -> dict[str, Any]:
    X, y = columns(EVERY), labels(2)
    early = xgboost.XGBClassifier(n_estimators=60, max_depth=3, early_stopping_rounds=2, random_state=0)
    early.fit(X[::2], y[::2], eval_set=[(X[1::2], labels(3)[1::2])], verbose=False)
    quiet = {"objective": "binary", "verbose": -1, "num_leaves": 6, "min_data_in_leaf": 5}
    return {
        "stopped early": early,
        "native xgboost": xgboost.train({"objective": "binary:logistic", "max_depth": 3}, xgboost.DMatrix(X, y), 10),
        "native lightgbm": lightgbm.train(quiet, lightgbm.Dataset(X, y), 10),
    }


@pytest.mark.parametrize("kind", ["stopped early", "native xgboost", "native lightgbm"])
def test_boosters_are_read_as_they_are_asked(kind: str) -> None:
    model, X = boosters()[kind], columns(EVERY)
    forest = Forest.of(model, X, 1)
    assert forest is not None
    total = forest.base + sum(tree(X.astype(np.float32).astype(float)) for tree in forest.trees)
    asked = {
        "stopped early": lambda: model.predict_proba(X)[:, 1],
        "native xgboost": lambda: model.inplace_predict(X),
        "native lightgbm": lambda: model.predict(X),
    }[kind]
    np.testing.assert_allclose(1 / (1 + np.exp(-total)), asked(), atol=1e-5)
    if kind == "stopped early":
        assert len(forest.trees) == model.best_iteration + 1 < model.get_booster().num_boosted_rounds()


def raw(values: np.ndarray) -> np.ndarray:
    """Missing numbers as they are, for trees that have a way of their own for them."""
    return np.where((np.arange(7) == 2) & np.isnan(values[:, [2]]), np.nan, columns(values))


def flagged(values: np.ndarray) -> np.ndarray:
    """Missing numbers filled in, and a column that says so."""
    return np.column_stack([columns(values), np.isnan(values[:, 2])])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("made", [raw, flagged])
@pytest.mark.parametrize("kind", ["forest", "histograms"])
def test_trees_that_ask_whether_a_number_is_missing_prove_or_find(
    kind: str, made: Callable[[np.ndarray], np.ndarray], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    score = columns(EVERY) @ rng.normal(size=7) + rng.normal(size=len(EVERY)) + 2.0 * np.isnan(EVERY[:, 2])
    wanted = score > np.quantile(score, 0.8)
    model = clone(MODELS[kind]).fit(made(EVERY), wanted)
    forest = Forest.of(model, made(EVERY), 1)
    assert forest is not None
    found = ForestOfFeatures.probed(forest, made, SCHEMA, EVERY)
    assert found is not None
    for person in rng.choice(np.flatnonzero(np.isnan(EVERY[:, 2])), 8):
        rules = [RULES[i] for i in rng.choice(len(RULES), 2, replace=False)]
        free, layout = asked([*rules, {"kind": "fixed", "features": ["age"]}], EVERY[person])
        every = allowed(free, layout)
        best = model.predict_proba(made(every))[:, 1].max() if len(every) else 0.0
        certificate, row = by_trees(free, found, 20.0)
        if best > 0.5 + 1e-6:
            assert certificate is None
            assert row is not None
        elif best < 0.5 - 1e-6:
            assert certificate is not None


def test_a_model_that_is_no_sum_of_parts_is_not_taken_for_one() -> None:
    assert Affine.probed(lambda values: values[:, 0] * values[:, 1], SCHEMA, EVERY) is None


def test_columns_that_mix_features_are_not_taken_for_single_ones() -> None:
    model = DecisionTreeClassifier(max_depth=3).fit(EVERY[:, [0]] + EVERY[:, [1]], labels(0))
    forest = Forest.of(model, EVERY[:, [0]] + EVERY[:, [1]], 1)
    assert forest is not None
    assert ForestOfFeatures.probed(forest, lambda values: values[:, [0]] + values[:, [1]], SCHEMA, EVERY) is None


@settings(max_examples=100, deadline=None)
@given(case=CASES)
def test_the_rules_alone_prove_exactly_that_they_leave_no_row(case: tuple[list[Any], int]) -> None:
    rules, person = case
    free, layout = asked(rules, EVERY[person])
    certificate, row = by_rules(free, 10.0)
    assert row is None
    if len(allowed(free, layout)):
        assert certificate is None
    elif any(isinstance(rule, str) or rule["kind"] in ("at_most", "implies") for rule in rules):
        assert certificate is not None
        assert certificate.best == -np.inf


def test_rules_that_contradict_each_other_are_found_out() -> None:
    free, layout = asked(["debt <= income - 3", "income <= debt + 2"], np.array([22.0, 2, 1, 0, 0]))
    assert not len(allowed(free, layout))
    certificate, _ = by_rules(free, 10.0)
    assert certificate is not None
    assert certificate.ground == "no row"


def test_a_rule_about_a_number_that_is_missing_forbids_nothing_however_large_the_others_are() -> None:
    """Years lie far from 0 and close to each other."""
    schema = Schema(
        features=(
            Integer(name="start", minimum=1980, maximum=2020),
            Integer(name="end", minimum=1980, maximum=2030, missing=True),
            Integer(name="children", minimum=0, maximum=5),
        ),
        label="y",
        favourable="yes",
    )
    own = np.array([[2010.0, np.nan, 2.0]])
    layout = Layout.fit(schema, [np.arange(1980.0, 2021), np.array([1980.0, 2030, np.nan]), np.arange(6.0)])
    for rule in ("start <= end", "end - start <= 5", "start + end >= 9000", "end = 2 * start"):
        rules = read_constraints([rule, {"kind": "fixed", "features": ["start", "end"]}])
        person = Freedom.of(layout, schema, rules, layout.encode(own), own=own)
        assert person.permits(person.x)[0]
        assert by_rules(person, 10.0) == (None, None)


@pytest.mark.parametrize("step", [1e-9, 1e-4, 0.01])
def test_small_steps_neither_hide_rows_from_the_solver_nor_feign_any(
    step: float,
) -> None:
    schema = Schema(
        features=(
            Continuous(name="debt", minimum=0.0, maximum=50.0, step=step),
            Continuous(name="income", minimum=0.0, maximum=100.0, step=step),
        ),
        label="loan",
        favourable="yes",
    )
    layout = Layout.fit(schema, [np.array([0.0, 50.0]), np.array([0.0, 100.0])])
    own = np.array([[33.830223, 69.526695]])

    def proof(*rules: str) -> Any:
        free = Freedom.of(layout, schema, read_constraints(list(rules)), layout.encode(own), own=own)
        return by_rules(free, 5.0)[0]

    assert proof("debt = 0.3 * income") is None
    assert proof("debt = 0.3 * income", "debt + income >= 129.5") is None
    assert proof("debt = 0.3 * income", "debt + income >= 130.5") is not None
