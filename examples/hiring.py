"""A screening model turns candidates down: which steps would change that, and which steps are possible at all?"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gpae import Binary, Categorical, Integer, Ordinal, Schema, TabularExplainer

DEGREES = ("none", "Bachelor", "Master", "PhD")
FIELDS = ("sales", "support", "data", "engineering")

SCHEMA = Schema(
    features=(
        Integer(name="age", minimum=18, maximum=70, change="up", unit="years"),
        Ordinal(name="degree", levels=DEGREES, change="up"),
        Categorical(name="field", levels=FIELDS),
        Integer(name="experience", minimum=0, maximum=40, change="up", unit="years"),
        Integer(name="certificates", minimum=0, maximum=8, change="up"),
        Binary(name="open_to_travel", levels=("no", "yes")),
        Binary(name="gender", levels=("f", "m"), change="fixed"),
    ),
    label="invited",
    favourable="yes",
    labels=("no", "yes"),
    constraints=(
        # nobody becomes an engineer from sales in one step
        {"kind": "transitions", "feature": "field", "allowed": {"sales": ["support", "data"], "support": ["data"]}},
        {"kind": "implies", "when": "degree", "when_change": "up", "then": "age", "then_change": "up", "by": 2},
        {"kind": "implies", "when": "experience", "when_change": "up", "then": "age", "then_change": "up", "by": 2},
        {"kind": "within", "feature": "experience", "up": 2},
        "experience <= age - 18",
        {"kind": "cost", "weights": {"degree": 6, "field": 4, "certificates": 0.5}},
    ),
)


def candidates(n: int, seed: int) -> pd.DataFrame:
    """Made-up candidates."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    table = pd.DataFrame(
        {
            "age": age,
            "degree": rng.choice(DEGREES, n, p=[0.3, 0.4, 0.25, 0.05]),
            "field": rng.choice(FIELDS, n),
            "experience": (rng.uniform(0, 1, n) * (age - 18)).astype(int),
            "certificates": rng.poisson(1.0, n).clip(0, 8),
            "open_to_travel": rng.choice(["no", "yes"], n),
            "gender": rng.choice(["f", "m"], n),
        }
    )
    rank = table.degree.map({name: i for i, name in enumerate(DEGREES)}).astype(int)
    score = 0.9 * rank + 0.12 * table.experience + 0.5 * table.certificates + 0.8 * (table.field == "engineering") - 3.2
    table["invited"] = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * score)), "yes", "no")
    return table


def main() -> None:
    """Fit a pipeline, explain it, print three plans for some."""
    train, people = candidates(3000, 0), candidates(100, 1).drop(columns="invited")
    columns = make_column_transformer(
        (OneHotEncoder(), ["degree", "field", "open_to_travel", "gender"]),
        (StandardScaler(), ["age", "experience", "certificates"]),
    )
    model = make_pipeline(columns, LogisticRegression()).fit(train.drop(columns="invited"), train.invited)
    explainer = TabularExplainer.explaining(
        model, train, label="invited", favourable="yes", schema=SCHEMA, max_epochs=30
    )
    turned_down = people[model.predict(people) == "no"].head(3)
    answer = explainer.explain(turned_down, k=3)
    sentences = answer.sentences
    for line in answer.table.itertuples():
        told = sentences[(sentences.row == line.row) & (sentences.plan == line.plan)].sentence
        words = " ".join(told) if line.found else f"{line.status}: {line.reason}"
        print(f"Candidate {line.row}, plan {line.plan + 1} (cost {line.cost:.1f}): {words}")


if __name__ == "__main__":
    main()
