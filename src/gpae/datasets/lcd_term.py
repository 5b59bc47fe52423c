"""LCD with the loan term: other loans of Lending Club, for the figure that shows the term change."""

from pathlib import Path

import pandas as pd

from gpae.dataset import DataFile, Dataset, SplitRule

__all__ = ["DATASET"]

# The tails that the authors cut off in their own loans: the ranges of LCD's columns.
_RANGES = {
    "dti": (4.15, 33.94),
    "loan_amnt": (3_000, 35_000),
    "int_rate": (6.72, 25.82),
    "annual_inc": (27_000, 165_000),
    "last_fico_range_high": (519, 789),
}


def _read(path: Path) -> pd.DataFrame:
    table = pd.read_csv(path)
    for column, (low, high) in _RANGES.items():
        table = table[table[column].between(low, high)]
    return table.assign(term=table["term"].map({36: "36 months", 60: "60 months"})).reset_index(drop=True)


DATASET = Dataset(
    name="lcd-term",
    paper_name="LCD-term",
    title="Lending Club loans 2015 with term",
    label="fully_paid",
    favourable=1,
    features=("dti", "loan_amnt", "int_rate", "annual_inc", "last_fico_range_high", "term"),
    masked=("int_rate",),
    categorical=("term",),
    rows=6_352,
    files=(
        DataFile(
            "lcd/lc_2015_with_term.csv.gz",
            "b8aa88e53aef62002982de717e3a3a5f52a1921f6d38ea53ec24497d3711dc14",
        ),
    ),
    read=_read,
    rule=SplitRule(valid=234, test=234, balanced=frozenset({"train", "valid", "test"})),
    licence="CC0",
    source=(
        "loans_2007.csv of the GitHub repository AndreasP-92/ai-mandatory-I, an excerpt of Lending Club's "
        "public accepted-loans file (CC0 as Kaggle's wordsforthewise/lending-club; the repository states no "
        "licence); term is worked out from amount, rate and instalment. Stored as gzip-compressed CSV"
    ),
    notes=(
        "Not the paper's loans. Rows outside the ranges of LCD's columns are left out, and the parts are "
        "balanced (1,868, 234 and 234 rows). term is delivered as text; one-hot it makes the paper's 7 "
        "columns."
    ),
)
