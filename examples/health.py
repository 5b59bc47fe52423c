"""A risk model puts patients at high risk: what would bring it down, said in words a patient can use?"""

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from gpae import Binary, Continuous, Integer, Schema, TabularExplainer

SCHEMA = Schema(
    features=(
        Integer(name="age", minimum=25, maximum=85, change="fixed", unit="years"),
        Continuous(name="bmi", minimum=16, maximum=48, step=0.5,
                   sentence="Bring your BMI from {before} to {after} ({range})."),
        Integer(name="systolic", minimum=95, maximum=200, step=5, change="down", unit="mmHg",
                sentence="Work with your doctor on your blood pressure: from {before} to {after} ({range})."),
        Integer(name="exercise", minimum=0, maximum=14, change="up", unit="h a week",
                sentence="Exercise {after} instead of {before} ({range})."),
        Binary(name="smokes", levels=("no", "yes"), sentence="Stop smoking."),
    ),
    label="risk",
    favourable="low",
    labels=("high", "low"),
    constraints=(
        {"kind": "transitions", "feature": "smokes", "allowed": {"yes": ["no"], "no": []}},
        {"kind": "within", "feature": "bmi", "down": 4, "up": 0},
        {"kind": "within", "feature": "exercise", "up": 5},
    ),
)  # fmt: skip


def patients(n: int, seed: int) -> pd.DataFrame:
    """Made-up patients."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(25, 86, n),
            "bmi": (rng.normal(27, 4.5, n).clip(16, 48) * 2).round() / 2,
            "systolic": ((rng.normal(132, 17, n).clip(95, 200)) / 5).round().astype(int) * 5,
            "exercise": rng.poisson(2.5, n).clip(0, 14),
            "smokes": rng.choice(["no", "yes"], n, p=[0.75, 0.25]),
        }
    )
    score = (table.age - 55) / 12 + (table.bmi - 27) / 5 + (table.systolic - 130) / 18 - 0.25 * table.exercise
    score += 1.2 * (table.smokes == "yes") + 0.6
    table["risk"] = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 * score)), "high", "low")
    return table


def main() -> None:
    """Fit a forest, explain it, and ask for plans that last."""
    train, valid, people = patients(4000, 0), patients(1000, 2), patients(100, 1).drop(columns="risk")
    model = RandomForestClassifier(100, min_samples_leaf=5, random_state=0).fit(_numbers(train), train.risk)
    explainer = TabularExplainer.explaining(
        lambda table: model.predict_proba(_numbers(table))[:, list(model.classes_).index("low")],
        train, label="risk", favourable="low", schema=SCHEMA, validation=valid, max_epochs=30,
    )  # fmt: skip
    at_risk = people[model.predict(_numbers(people)) == "high"].head(4)
    for survival in (None, 0.9):
        answer = explainer.explain(at_risk, survival=survival)
        print("Any plan:" if survival is None else "\nPlans that nine of ten retrained models would accept, too:")
        for line in answer.table.itertuples():
            told = answer.sentences[answer.sentences.row == line.row].sentence
            trust = f" [chance {line.calibrated:.0%}, survival {line.survival:.0%}]" if line.found else ""
            print(f"  Patient {line.row}:", " ".join(told) if line.found else line.reason, trust)


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """What the forest takes."""
    return table[["age", "bmi", "systolic", "exercise"]].assign(smokes=(table.smokes == "yes").astype(int))


if __name__ == "__main__":
    main()
