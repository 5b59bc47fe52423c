"""GMC (Give Me Some Credit): will a person stay out of serious delinquency for two years?"""

from pathlib import Path

import pandas as pd

from gpae.dataset import DataFile, Dataset, SplitRule

__all__ = ["DATASET"]


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


DATASET = Dataset(
    name="gmc",
    paper_name="GMC",
    title="Give Me Some Credit",
    label="good",
    favourable=1,
    features=(
        "RevolvingUtilizationOfUnsecuredLines",
        "age",
        "NumberOfTime30-59DaysPastDueNotWorse",
        "DebtRatio",
        "MonthlyIncome",
        "NumberOfOpenCreditLinesAndLoans",
        "NumberOfTimes90DaysLate",
        "NumberRealEstateLoansOrLines",
        "NumberOfTime60-89DaysPastDueNotWorse",
        "NumberOfDependents",
    ),
    masked=("age",),
    codes={
        "NumberOfTime30-59DaysPastDueNotWorse": (96, 98),
        "NumberOfTimes90DaysLate": (96, 98),
        "NumberOfTime60-89DaysPastDueNotWorse": (96, 98),
    },
    rows=16_000,
    files=(DataFile("gmc/gmc.csv.gz", "2b37f1a5f4d64d5e37082e22bb7e4091a5036a65e2ef0bb342522a8ddd420557"),),
    read=_read,
    rule=SplitRule(valid=1_000, test=1_000, balanced=frozenset({"valid"}), test_rows=("split", "test")),
    licence="Kaggle competition rules",
    source=(
        "the rows and the test split of the GitHub repository Wei2624/GPNAM, commit 61d99ec, datasets/GMSC, "
        "matched to cs-training.csv of the Kaggle competition GiveMeSomeCredit for names, units and age; "
        "good is 1 - SeriousDlqin2yrs. Stored as gzip-compressed CSV with the columns row, the features, "
        "good, split"
    ),
    notes=(
        "Balanced by the authors, without missing values. The test rows are the authors' for every seed; "
        "the validation rows come out of the authors' 15,000 training rows."
    ),
)
