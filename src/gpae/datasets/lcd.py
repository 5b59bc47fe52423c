"""LCD (Lending Club): will a loan be paid back in full?"""

from pathlib import Path

import pandas as pd

from gpae.dataset import DataFile, Dataset, SplitRule

__all__ = ["DATASET"]


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path)


DATASET = Dataset(
    name="lcd",
    paper_name="LCD",
    title="Lending Club loans 2017-2018",
    label="fully_paid",
    favourable=1,
    features=("dti", "loan_amnt", "int_rate", "annual_inc", "last_fico_range_high"),
    masked=("int_rate",),
    rows=11_000,
    files=(DataFile("lcd/lcd.csv.gz", "bf9e4067af406cee453bb6663f2add5b1ff9385e9b91f4896c1e01728be815e8"),),
    read=_read,
    rule=SplitRule(valid=1_000, test=1_000, balanced=frozenset({"valid"}), test_rows=("split", "test")),
    licence="MIT",
    source=(
        "the GitHub repository Wei2624/GPNAM (MIT), commit 61d99ec, "
        "datasets/LCD/lcd_{train,test}_{data,label}_01.csv, scaled back from [0, 1] to dti 4.15-33.94, "
        "loan_amnt 3000-35000, int_rate 6.72-25.82, annual_inc 27000-165000, last_fico_range_high 519-789. "
        "Stored as gzip-compressed CSV with the columns in this order, then fully_paid and split"
    ),
    notes=(
        "Balanced by the authors. The test rows are theirs for every seed; the validation rows come out of "
        "their 10,000 training rows. The paper has 7 features; the loan term is not in the published rows. "
        "last_fico_range_high is observed after the outcome and carries most of the signal."
    ),
)
