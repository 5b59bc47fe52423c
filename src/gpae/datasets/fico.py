"""FICO (HELOC): will a person repay a home equity line of credit within two years?"""

from pathlib import Path

import pandas as pd

from gpae.dataset import DataFile, Dataset, SplitRule

__all__ = ["DATASET"]

_FEATURES = (
    "ExternalRiskEstimate",
    "MSinceOldestTradeOpen",
    "MSinceMostRecentTradeOpen",
    "AverageMInFile",
    "NumSatisfactoryTrades",
    "NumTrades60Ever2DerogPubRec",
    "NumTrades90Ever2DerogPubRec",
    "PercentTradesNeverDelq",
    "MSinceMostRecentDelq",
    "MaxDelq2PublicRecLast12M",
    "MaxDelqEver",
    "NumTotalTrades",
    "NumTradesOpeninLast12M",
    "PercentInstallTrades",
    "MSinceMostRecentInqexcl7days",
    "NumInqLast6M",
    "NumInqLast6Mexcl7days",
    "NetFractionRevolvingBurden",
    "NetFractionInstallBurden",
    "NumRevolvingTradesWBalance",
    "NumInstallTradesWBalance",
    "NumBank2NatlTradesWHighUtilization",
    "PercentTradesWBalance",
)
_CATEGORICAL = ("MaxDelq2PublicRecLast12M", "MaxDelqEver")


def _read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=dict.fromkeys(_CATEGORICAL, "str"))


DATASET = Dataset(
    name="fico",
    paper_name="FICO",
    title="FICO home equity line of credit",
    label="RiskPerformance",
    favourable="Good",
    features=_FEATURES,
    categorical=_CATEGORICAL,
    # -9 no bureau record, -8 no usable trade or inquiry, -7 no such event; not every column has all three.
    codes={name: (-9, -8, -7) for name in _FEATURES if name not in _CATEGORICAL},
    rows=10_459,
    files=(DataFile("fico/heloc.csv.gz", "e74c24c2810396313f41f430e849e92d299308008bc128dea20f8add4a958f6b"),),
    read=_read,
    rule=SplitRule(train=7_321, valid=1_000, test=1_000),
    licence="FICO challenge, research use",
    source=(
        "the FICO Explainable Machine Learning Challenge (HELOC), under its agreement. Copies: "
        "data/heloc.csv of the GitHub repository IBM/rulebenchmark, less its column Probabilities; "
        "explainx/datasets/heloc_dataset.csv in the source archive of the Python package explainx 2.407. "
        "Stored as gzip-compressed CSV"
    ),
    notes=(
        "MaxDelq2PublicRecLast12M and MaxDelqEver are delivered as text ('-9', '0', ...): their numbers are "
        "names. One-hot with '-9' as a level they have 10 and 8 levels, 39 encoded columns with the 21 "
        "numeric ones, as in the paper. All rows are kept, also the 588 without any bureau record; 1,138 "
        "rows are in no part."
    ),
)
