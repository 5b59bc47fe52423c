"""LAW: does a law student pass the bar examination at the first attempt?"""

from pathlib import Path

import pandas as pd

from gpae.dataset import DataFile, Dataset, SplitRule

__all__ = ["DATASET"]

_WHOLE = ("decile1b", "decile3", "fulltime", "fam_inc", "male", "tier", "pass_bar")


def _read(path: Path) -> pd.DataFrame:
    # The file writes whole numbers as 1.0; as integers they read, and are explained, as what they are.
    return pd.read_csv(path).astype(dict.fromkeys(_WHOLE, "int64"))


DATASET = Dataset(
    name="law",
    paper_name="LAW",
    title="Law school bar passage",
    label="pass_bar",
    favourable=1,
    features=(
        "decile1b",
        "decile3",
        "lsat",
        "ugpa",
        "zfygpa",
        "zgpa",
        "fulltime",
        "fam_inc",
        "male",
        "tier",
        "race",
    ),
    masked=("male",),
    rows=20_798,
    files=(
        DataFile(
            "law/law_school_clean.csv.gz",
            "752c015e92072fb5869885619ebc33ae1240717dbdf9be9f1313c5003cf86c84",
        ),
    ),
    read=_read,
    rule=SplitRule(valid=600, test=1_000, balanced=frozenset({"train", "valid", "test"})),
    licence="none stated",
    source=(
        "experiments/data/law_school_clean.csv of the GitHub repository tailequy/fairness_dataset (Le Quy "
        "et al., A survey on datasets for fairness-aware machine learning), gzip-compressed; the study is "
        "the LSAC National Longitudinal Bar Passage Study"
    ),
    notes=(
        "Only 2,293 of 20,798 students fail, so the balanced parts use 4,586 rows and leave most passes "
        "out. How the paper reaches 5,502 training rows is not known. fulltime is 1 for full and 2 for part "
        "time."
    ),
)
