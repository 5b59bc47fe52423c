"""Our figures beside the paper's: means and deviations over seeds, differences, and mean ranks."""

from importlib.resources import files
from typing import Literal, TypeAlias

import pandas as pd

from gpae.benchmark.ranks import BETTER, SEVEN, mean_ranks

__all__ = [
    "CLASSIFICATION",
    "Table",
    "agreement",
    "all_there",
    "beside_the_paper",
    "paper_ranks",
    "paper_tables",
    "summarised",
]

Table: TypeAlias = Literal["counterfactual", "counterfactual_masked", "classification"]

CLASSIFICATION = ("accuracy", "precision", "recall", "auc")


def paper_tables() -> pd.DataFrame:
    """The numbers that the paper prints: table, dataset, method, metric, mean, std (classification in per cent)."""
    with files("gpae.report").joinpath("paper_tables.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream)


def summarised(records: pd.DataFrame, table: Table, suffix: str = "") -> pd.DataFrame:
    """Mean and standard deviation over the seeds: dataset, method, metric, mean, std, seeds, rows.

    ``suffix="Common"`` takes the figures on the rows that every method answered. ``seeds`` counts those with a value,
    ``rows`` the answers that the value is of; a method without an answer in any seed has a mean of NaN.
    """
    wanted = CLASSIFICATION if table == "classification" else SEVEN
    chosen = records[records.metric.isin([name + suffix for name in wanted])]
    if table != "classification":
        chosen = chosen[chosen.masked == (table == "counterfactual_masked")]
    chosen = chosen.assign(metric=chosen.metric.str.removesuffix(suffix) if suffix else chosen.metric)
    groups = chosen.groupby(["dataset", "method", "metric"], sort=False)
    return groups.agg(
        mean=("value", "mean"), std=("value", "std"), seeds=("value", "count"), rows=("n_rows", "sum")
    ).reset_index()


def beside_the_paper(ours: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Add the paper's mean and std, the difference, and whether ours is worse by over two deviations, or missing."""
    theirs = paper_tables()
    theirs = theirs[theirs.table == table].drop(columns="table")
    if table == "classification":
        theirs[["mean", "std"]] /= 100.0
    joined = ours.merge(theirs, "left", ["dataset", "method", "metric"], suffixes=("", "_paper"))
    joined["difference"] = joined["mean"] - joined["mean_paper"]
    sign = joined.metric.map(lambda name: 1.0 if BETTER.get(name, "higher") == "lower" else -1.0).astype(float)
    nothing = joined["mean"].isna() & joined["mean_paper"].notna()
    joined["worse"] = (sign * joined.difference > _two_deviations(joined)) | nothing
    return joined


def _two_deviations(beside: pd.DataFrame) -> pd.Series:
    """Of the paper's; a difference of exactly so much, such as 1.00 - 0.98, is not more by the last bit of a float."""
    return 2.0 * beside.std_paper + 1e-9


def all_there(ours: pd.DataFrame, table: Table) -> bool:
    """Whether every data set and method of the paper's table is among the figures, so that ranks can be compared."""
    theirs = paper_tables()
    wanted = theirs[theirs.table == table][["dataset", "method"]].drop_duplicates()
    return len(wanted.merge(ours[["dataset", "method"]].drop_duplicates())) == len(wanted)


def agreement(ours: pd.DataFrame, table: Table) -> pd.DataFrame:
    """How many cells of each metric lie within two of the paper's deviations, and how many are better or worse."""
    beside = beside_the_paper(ours, table).dropna(subset=["mean_paper", "std_paper"])
    apart = beside.difference.abs() > _two_deviations(beside)
    verdict = pd.Series("within", index=beside.index).mask(apart, "better").mask(beside.worse, "worse")
    counts = beside.assign(verdict=verdict).groupby(["metric", "verdict"]).size().unstack(fill_value=0)
    order = [metric for metric in (*SEVEN, *CLASSIFICATION) if metric in counts.index]
    return counts.reindex(index=order, columns=["within", "better", "worse"], fill_value=0)


def paper_ranks(figures: pd.DataFrame) -> pd.DataFrame:
    """The mean ranks of the methods that the paper compares, by its names; guises of a method do not compete."""
    return mean_ranks(figures[figures.method.isin(paper_tables().method)])
