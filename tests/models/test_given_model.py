"""A user's own model: how it is asked, what it may answer, what is refused."""

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gpae.errors import InputError
from gpae.models.given_model import GivenModel
from gpae.table.codec import Codec
from gpae.table.schema import Schema
from gpae.table.table_maker import TableMaker

LABELS = ("no", "yes")


def people(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.integers(10, 90, n),
            "debt": rng.uniform(0, 50, n).round(2),
            "job": rng.choice(["cook", "clerk", "judge"], n),
            "home": pd.Categorical(rng.choice(["rent", "own"], n)),
        }
    )
    frame["loan"] = np.where(frame.income - frame.debt + 20 * (frame.job == "judge") > 25, "yes", "no")
    return frame


TRAIN = people()
SCHEMA = Schema.infer(TRAIN, label="loan", favourable="yes")
CODEC = Codec.fit(TRAIN, SCHEMA)
VALUES = CODEC.encode(TRAIN).values
MAKER = TableMaker.like(TRAIN, CODEC.schema)
FEATURES = list(CODEC.schema.names)


def pipeline(last: Any, y: Any = TRAIN.loan) -> Any:
    columns = make_column_transformer((StandardScaler(), ["income", "debt"]), (OneHotEncoder(), ["job", "home"]))
    return make_pipeline(columns, last).fit(TRAIN[FEATURES], y)


def given(model: Any) -> GivenModel:
    return GivenModel.of(model, MAKER, LABELS)


def test_tables_are_as_the_training_table_was() -> None:
    made = MAKER.table(VALUES)
    pd.testing.assert_frame_equal(made, TRAIN[FEATURES])


def test_tables_of_polars_are_of_polars() -> None:
    frame = pl.from_pandas(TRAIN)
    maker = TableMaker.like(frame, CODEC.schema)
    made = maker.table(VALUES, ["job", "income"])
    assert made.columns == ["job", "income"]
    assert made["job"].cast(pl.String).to_list() == TRAIN.job.tolist()
    assert made["income"].dtype == frame["income"].dtype


def test_missing_values_are_missing_again() -> None:
    frame = TRAIN.assign(debt=TRAIN.debt.where(TRAIN.index % 5 > 0), job=TRAIN.job.where(TRAIN.index % 7 > 0))
    codec = Codec.fit(frame, Schema.infer(frame, label="loan", favourable="yes"))
    made = TableMaker.like(frame, codec.schema).table(codec.encode(frame).values)
    pd.testing.assert_frame_equal(made, frame[FEATURES])


def test_probabilities_of_the_favourable_label_whichever_place_it_has() -> None:
    named = pipeline(LogisticRegression())
    turned = pipeline(LogisticRegression(), np.where(TRAIN.loan == "yes", "a yes", "no"))
    expected = named.predict_proba(TRAIN[FEATURES])[:, 1]
    np.testing.assert_array_equal(given(named)(VALUES), expected)
    turned.classes_  # noqa: B018
    back = GivenModel.of(turned, MAKER, ("no", "a yes"))
    np.testing.assert_allclose(back(VALUES), expected)


def test_decision_values_are_squashed_and_decide_alike() -> None:
    model = pipeline(RidgeClassifier())
    asked = given(model)
    assert asked.speaks == "decision values"
    np.testing.assert_array_equal(asked(VALUES) > 0.5, model.predict(TRAIN[FEATURES]) == "yes")


@pytest.mark.parametrize(
    "answer",
    [
        lambda f: (f.income > 50).to_numpy().astype(float),
        lambda f: np.where(f.income > 50, "yes", "no"),
        lambda f: (f.income > 50).to_numpy(),
        lambda f: (f.income > 50).to_numpy().astype(int),
        lambda f: np.column_stack([f.income <= 50, f.income > 50]).astype(float),
        lambda f: (f.income > 50).to_numpy().astype(float)[:, None],
        lambda f: [0.7 if income > 50 else 0.3 for income in f.income],
        lambda f: np.array([0.7 if income > 50 else 0.3 for income in f.income], dtype=object),
    ],
)
def test_a_function_may_answer_in_many_ways(answer: Any) -> None:
    np.testing.assert_array_equal(given(answer)(VALUES) > 0.5, TRAIN.income > 50)


def test_a_model_that_decides_elsewhere_than_its_scores_say_is_asked_for_what_decides() -> None:
    model = pipeline(LogisticRegression())
    strict = FixedThresholdClassifier(FrozenEstimator(model), threshold=0.9, pos_label="yes").fit(TRAIN, TRAIN.loan)
    asked = GivenModel.of(strict, MAKER, LABELS, VALUES)
    assert asked.speaks == "predictions"
    np.testing.assert_array_equal(asked(VALUES) > 0.5, strict.predict(TRAIN[FEATURES]) == "yes")
    assert (asked(VALUES) > 0.5).sum() < (given(model)(VALUES) > 0.5).sum()
    assert GivenModel.of(model, MAKER, LABELS, VALUES).speaks == "probabilities"


def test_a_booster_is_asked_with_the_columns_that_it_was_fitted_with_in_their_order() -> None:
    numbers = TRAIN[["income", "debt", "loan"]]
    codec = Codec.fit(numbers, Schema.infer(numbers, label="loan", favourable="yes"))
    turned = numbers[["debt", "income"]]
    model = lightgbm.train(
        {"objective": "binary", "verbose": -1, "num_leaves": 4}, lightgbm.Dataset(turned, numbers.loan == "yes"), 5
    )
    asked = GivenModel.of(model, TableMaker.like(numbers, codec.schema), LABELS)
    np.testing.assert_allclose(asked(codec.encode(numbers).values), model.predict(turned), rtol=1e-12)


@pytest.mark.parametrize("kind", [int, float])
def test_labels_may_be_numbers(kind: type) -> None:
    asked = GivenModel.of(lambda f: np.where(f.income > 50, 2, 1).astype(kind), MAKER, (1, 2))
    np.testing.assert_array_equal(asked(VALUES), (TRAIN.income > 50).astype(float))


def test_an_object_with_predict_only_is_asked_for_labels() -> None:
    class Labels:
        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return np.where(frame.income > 50, "yes", "no")

    np.testing.assert_array_equal(given(Labels())(VALUES), (TRAIN.income > 50).astype(float))


@pytest.mark.parametrize(("kind", "near"), [(torch.float32, 1e-7), (torch.float64, 1e-13)])
def test_a_torch_module_is_asked_with_numbers_of_its_own_kind(kind: torch.dtype, near: float) -> None:
    numbers = TRAIN[["income", "debt", "loan"]]
    codec = Codec.fit(numbers, Schema.infer(numbers, label="loan", favourable="yes"))
    module = torch.nn.Linear(2, 1, dtype=kind)
    asked = GivenModel.of(module, TableMaker.like(numbers, codec.schema), LABELS)
    p = asked(codec.encode(numbers).values)
    logit = module(torch.tensor(numbers[["income", "debt"]].to_numpy(), dtype=kind)).detach().numpy()[:, 0]
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-np.clip(logit.astype(float), -30, 30))), atol=near)


def test_a_model_of_arrays_is_given_arrays() -> None:
    numbers = TRAIN[["income", "debt"]]
    model = LogisticRegression().fit(numbers.to_numpy(), TRAIN.loan)
    codec = Codec.fit(
        TRAIN[["income", "debt", "loan"]],
        Schema.infer(TRAIN[["income", "debt", "loan"]], label="loan", favourable="yes"),
    )
    asked = GivenModel.of(model, TableMaker.like(numbers, codec.schema), LABELS)
    assert asked.as_array
    np.testing.assert_array_equal(asked(codec.encode(TRAIN).values), model.predict_proba(numbers.to_numpy())[:, 1])


def test_questions_are_counted() -> None:
    asked = given(pipeline(LogisticRegression()))
    asked(VALUES)
    asked(VALUES[:7])
    assert (asked.calls, asked.rows) == (2, len(VALUES) + 7)


def raising(frame: pd.DataFrame) -> np.ndarray:
    raise KeyError("income_2")


REFUSED: dict[str, tuple[Any, str]] = {
    "not a number": (lambda f: np.full(len(f), np.nan), "nan"),
    "too few": (lambda f: np.full(3, 0.5), r"shape \(3,\)"),
    "three classes": (lambda f: np.full((len(f), 3), 1 / 3), "shape"),
    "no probability": (lambda f: np.full(len(f), 7.0), "7, which is no probability"),
    "a label of nobody": (lambda f: np.full(len(f), "maybe"), "'maybe'"),
    "it raises": (raising, "KeyError.*income_2"),
    "it is a class": (LogisticRegression, "is a class"),
    "it cannot be asked": (3, "cannot be explained"),
    "its classes are others": (pipeline(LogisticRegression(), np.where(TRAIN.loan == "yes", "red", "blue")), "'red'"),
    "it wants another column": (
        LogisticRegression().fit(TRAIN[["income"]].rename(columns={"income": "wage"}), TRAIN.loan),
        "'wage'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_that_cannot_be_asked_is_refused_with_the_reason(case: str) -> None:
    model, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        given(model)(VALUES)


def test_a_torch_module_is_asked_as_it_decides_and_left_as_it_was() -> None:
    numbers = TRAIN[["income", "debt", "loan"]]
    codec = Codec.fit(numbers, Schema.infer(numbers, label="loan", favourable="yes"))
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(2, 1)).train()
    asked = GivenModel.of(module, TableMaker.like(numbers, codec.schema), LABELS)
    values = codec.encode(numbers).values
    np.testing.assert_array_equal(asked(values), asked(values))
    assert module.training
