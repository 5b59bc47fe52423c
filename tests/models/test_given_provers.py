"""Which models can be proved to leave a person no plan, and that such proofs are about what the model itself says."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC

from gpae.models.given_model import GivenModel
from gpae.models.given_provers import provers_of
from gpae.proofs.enumeration import by_every_row
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Schema
from gpae.table.table_maker import TableMaker

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "income": RNG.integers(0, 12, 400),
        "debt": RNG.integers(0, 8, 400),
        "job": RNG.choice(["cook", "clerk", "judge"], 400),
    }
)
WORTH = TABLE.income - 1.5 * TABLE.debt + 3.0 * (TABLE.job == "judge") + RNG.normal(0, 2, 400)
TABLE["loan"] = np.where(WORTH > 6, "yes", "no")
SCHEMA = Schema.infer(TABLE, label="loan", favourable="yes")
NAMES = list(SCHEMA.names)


def pipeline(model: Any, *more: Any) -> Any:
    columns = make_column_transformer((StandardScaler(), ["income", "debt"]), (OneHotEncoder(), ["job"]))
    return make_pipeline(columns, *more, model).fit(TABLE[NAMES], TABLE.loan)


def asked(model: Any) -> tuple[GivenModel, np.ndarray, tuple[Any, ...]]:
    assert SCHEMA.labels is not None
    given = GivenModel.of(model, TableMaker.like(TABLE, SCHEMA), SCHEMA.labels)
    levels = list(SCHEMA["job"].levels)
    values = np.column_stack([TABLE.income, TABLE.debt, TABLE.job.map(levels.index)]).astype(float)
    return given, values, provers_of(model, given, SCHEMA, values, given.favourable)


WITH_PROOF: dict[str, Callable[[], Any]] = {
    "logistic": lambda: pipeline(LogisticRegression()),
    "decision values": lambda: pipeline(RidgeClassifier()),
    "huber": lambda: pipeline(SGDClassifier(loss="modified_huber", random_state=0)),
    "linear svm": lambda: pipeline(SVC(kernel="linear")),
    "forest": lambda: pipeline(RandomForestClassifier(10, max_depth=4, random_state=0)),
}


@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("kind", WITH_PROOF)
def test_a_proof_says_what_asking_about_every_row_does(kind: str, margin: float) -> None:
    model = WITH_PROOF[kind]()
    given, values, (prove,) = asked(model)
    layout = Layout.fit(SCHEMA, list(values.T))
    rule = {"kind": "at_most", "changes": 1}
    refused = values[given(values) <= 0.5][:40]
    outcomes = set()
    for own in refused:
        person = Freedom.of(layout, SCHEMA, read_constraints([rule]), layout.encode(own[None]), own=own[None])
        proof, _ = prove(person, 5.0, margin)
        truth, _ = by_every_row(person, lambda people, U: given.logits(people, np.arange(len(U)), U), needed=margin)
        if truth is None:
            assert proof is None
        elif kind != "huber" or margin == 0.0:  # its decision values are no logits: no proof by a margin
            assert proof is not None
        outcomes.add(proof is None)
    assert outcomes == {True, False}


def test_decision_values_that_are_no_logits_prove_nothing_about_a_margin() -> None:
    """The largest decision value is compared with zero, whatever the margin is."""
    _, values, (prove,) = asked(WITH_PROOF["huber"]())
    layout = Layout.fit(SCHEMA, list(values.T))
    person = Freedom.of(layout, SCHEMA, (), layout.encode(values[:1]), own=values[:1])
    assert prove(person, 5.0, 25.0)[0] is None


WITHOUT: dict[str, Callable[[], Any]] = {
    "probabilities of an svm": lambda: pipeline(SVC(kernel="linear", probability=True, random_state=0)),
    "a curved svm": lambda: pipeline(SVC()),
    "a network": lambda: pipeline(MLPClassifier((4,), max_iter=50, random_state=0)),
    "columns cut off": lambda: make_pipeline(
        make_column_transformer((MinMaxScaler(clip=True), ["income", "debt"])), LogisticRegression()
    ).fit(TABLE[NAMES], TABLE.loan),
    "products of columns": lambda: pipeline(LogisticRegression(), PolynomialFeatures(2)),
    "a function": lambda: lambda table: 1.0 / (1.0 + np.exp(6.0 - table.income.to_numpy(float))),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WITHOUT)
def test_models_without_such_a_structure_have_no_such_proof(kind: str) -> None:
    assert asked(WITHOUT[kind]())[2] == ()
