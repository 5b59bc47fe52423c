"""A lender's model refuses a loan: what could the applicant change, and what is out of reach?"""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from gpae import TabularExplainer
from gpae.answer import Answer


def applications(n: int, seed: int) -> pd.DataFrame:
    """Made-up loan applications; amounts in EUR a year."""
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10.4, 0.45, n).round(-2)
    table = pd.DataFrame(
        {
            "income": income,
            "debt": (income * rng.beta(2, 4, n)).round(-2),
            "rent": (income * rng.uniform(0.1, 0.4, n)).round(-2),
            "loan": (rng.integers(4, 120, n) * 500).astype(float),
            "years_employed": rng.integers(0, 30, n),
            "late_payments": rng.poisson(0.8, n),
            "age": rng.integers(18, 75, n),
        }
    )
    strain = (table.debt + table.rent + table.loan / 5) / table.income + 0.25 * table.late_payments
    chance = 1 / (1 + np.exp(-4 * (1.15 - strain) - 0.05 * table.years_employed))
    table["decision"] = np.where(rng.random(n) < chance, "granted", "refused")
    return table


def main() -> None:
    """Fit a model, explain it, print what there is to say."""
    train, people = applications(4000, 0), applications(200, 1).drop(columns="decision")
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    model.fit(train.drop(columns="decision"), train.decision)

    explainer = TabularExplainer.explaining(
        model, train, label="decision", favourable="granted", immutable=("age", "late_payments"), max_epochs=30
    )
    print(f"the surrogate decides like the model on {explainer.fidelity_.agreement:.0%} of the rows\n")

    refused = people[model.predict(people) == "refused"].head(4)
    rules = [
        "debt + rent <= 0.8 * income",
        {"kind": "direction", "feature": "years_employed", "change": "up"},
        {"kind": "within", "feature": "income", "up": 0.2, "down": 0, "relative": True},
        {"kind": "within", "feature": "years_employed", "up": 2},
    ]
    tell(explainer.explain(refused, k=2, constraints=rules))

    print("If income, loan and job are to stay as they are:\n")
    strict = explainer.explain(refused, immutable=("income", "loan", "years_employed"), constraints=rules)
    tell(strict)
    for row, proof in strict.certificates.items():
        tried = strict.challenge(row, draws=2000)
        print(
            f"The proof for applicant {row} ({proof['ground']}) holds on {tried['asked']} rows drawn: {tried['holds']}"
        )


def tell(answer: Answer) -> None:
    """Print why each applicant is refused, and the plans, or why there is none."""
    table, sentences, reasons = answer.table, answer.sentences, answer.reasons
    for row in table.row.unique():
        why = reasons[reasons.row == row]
        print(f"Applicant {row}, refused mainly for", ", ".join(f"{r.feature} {r.value}" for r in why.itertuples()))
        for plan in table[(table.row == row) & table.found].plan:
            told = sentences[(sentences.row == row) & (sentences.plan == plan)].sentence
            print(f"  plan {plan + 1}:", " ".join(told))
        for line in table[(table.row == row) & ~table.found].itertuples():
            print(f"  {line.status}: {line.reason}")
    print()


if __name__ == "__main__":
    main()
