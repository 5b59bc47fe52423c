"""The tables of the paper's evaluation as HTML: ours, the paper's, the difference, and who is best."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from gpae.benchmark.ranks import BETTER, SEVEN
from gpae.report.compare import CLASSIFICATION, Table, agreement, beside_the_paper, paper_tables, summarised
from gpae.report.html import Html, element, heading, join, paragraph, table, text

__all__ = [
    "agreement_tables",
    "beside_tables",
    "classification_table",
    "deviations",
    "second_readings",
    "settings_table",
]

_ORDER = tuple(dict.fromkeys(paper_tables().method))
SECOND = (
    "Found", "ValiditySelf", "Violations", "L2Norm", "MeanPairwise", "IM1Median", "IM2Median", "FitSeconds",
    "RowsPerSecond", "RowsPerSecondUncached",
)  # fmt: skip
"""What the paper does not print: who was answered, and the other readings of its metrics."""

_KINDS: dict[Table, str] = {"counterfactual": "free", "counterfactual_masked": "masked"}
_SHORT = {"DiscriminativePower": "Disc. power"}


def beside_tables(records: pd.DataFrame, kind: Table, suffix: str = "") -> Html:
    """One table a data set: methods by metrics, ours above the paper's; and how many rows that is of."""
    ours = beside_the_paper(summarised(records, kind, suffix), kind)
    if kind == "classification":
        percent = ours.assign(**{name: 100 * ours[name] for name in ("mean", "std", "mean_paper", "difference")})
        return join(
            join([heading(3, str(dataset)), _one_table(part, CLASSIFICATION, {}, decimals=1)])
            for dataset, part in percent.groupby("dataset", sort=False)
        )
    return join(
        join([heading(3, str(dataset)), _one_table(part, SEVEN, _answered(part))])
        for dataset, part in ours.groupby("dataset", sort=False)
    )


def _answered(part: pd.DataFrame) -> dict[str, str]:
    """Of each method: the rows that its figures are of, Validity apart, and the rows that Validity is of."""
    rows = part.pivot_table(index="method", columns="metric", values="rows")
    return {str(method): f"{int(one['L2']):,} of {int(one['Validity']):,}" for method, one in rows.iterrows()}


def classification_table(records: pd.DataFrame) -> Html:
    """The classifiers: accuracy, precision, recall and area under the curve, beside the paper's."""
    return beside_tables(records, "classification")


def _one_table(part: pd.DataFrame, metrics: Sequence[str], answered: Mapping[str, str], decimals: int = 2) -> Html:
    best = {metric: _best(part, metric, "mean", decimals) for metric in metrics}
    best_paper = {metric: _best(part, metric, "mean_paper", decimals) for metric in metrics}
    names = ("", *(_SHORT.get(metric, metric) for metric in metrics), *(["answered"] if answered else []))
    head = join(element("th", text(name), scope="col", class_="number") for name in names)
    lines = []
    for method in sorted(part.method.unique(), key=_place):
        mine = part[part.method == method].set_index("metric")
        cells = [_cell(mine, metric, best[metric], best_paper[metric], decimals) for metric in metrics]
        if answered:
            cells.append(element("td", text(answered[str(method)]), class_="number"))
        lines.append(element("tr", join([element("th", text(method), scope="row"), *cells])))
    words = "Ours, mean ± standard deviation over the seeds; below it the paper's and the difference. Bold: the best."
    body = [element("caption", text(words)), element("thead", element("tr", head)), element("tbody", join(lines))]
    return element("div", element("table", join(body), class_="figures"), class_="scroll")


def _place(method: str) -> tuple[int, str]:
    """The paper's order; a guise of a method comes last."""
    return (_ORDER.index(method) if method in _ORDER else len(_ORDER), method)


def _best(part: pd.DataFrame, metric: str, column: str, decimals: int) -> float:
    values = part[(part.metric == metric) & part.method.isin(_ORDER)][column].map(lambda v: round(v, decimals))
    return float(values.min() if BETTER.get(metric, "higher") == "lower" else values.max())


def _cell(mine: pd.DataFrame, metric: str, best: float, best_paper: float, decimals: int) -> Html:
    if metric not in mine.index:
        return element("td", text("–"), class_="number")
    one: dict[Any, Any] = mine.loc[metric].to_dict()
    value = element("b" if round(one["mean"], decimals) == best else "span", text(_number(one["mean"], decimals)))
    spread = Html("") if pd.isna(one["std"]) else element("small", text(f" ± {_number(one['std'], decimals)}"))
    theirs = Html("")
    if not pd.isna(one["mean_paper"]):
        name = "b" if round(one["mean_paper"], decimals) == best_paper else "span"
        paper = element(name, text(_number(one["mean_paper"], decimals)))
        mark = element("span", text(" worse"), class_="worse") if one["worse"] else Html("")
        apart = text(_number(one["difference"], decimals, sign="+"))
        theirs = element("div", Html(f"{paper} ({apart}){mark}"), class_="paper")
    return element("td", Html(f"{value}{spread}{theirs}"), class_="number")


def _number(value: float, decimals: int = 2, sign: str = "") -> str:
    return "–" if pd.isna(value) else f"{value:{sign}.{decimals}f}"


def second_readings(records: pd.DataFrame, masked: bool) -> Html:
    """What stands beside the seven metrics, one table a data set; rows are those asked about, of all seeds."""
    part = records[records.masked == masked]
    head = ("method", "rows asked", *SECOND)
    tables = []
    for dataset, here in part.groupby("dataset"):
        means = here.pivot_table(index="method", columns="metric", values="value")
        asked = here[here.metric == "Validity"].groupby("method").n_rows.sum()
        rows = []
        for method in sorted(asked.index, key=_place):
            figures = [_short(means[name][method]) if name in means else "–" for name in SECOND]
            rows.append((method, f"{asked[method]:,}", *figures))
        tables.append(table(str(dataset), head, rows, numeric=range(1, len(head))))
    return join(tables)


def _short(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def agreement_tables(records: pd.DataFrame) -> Html:
    """How many cells agree with the paper's, free and masked."""
    tables = []
    for kind, words in _KINDS.items():
        counts = agreement(summarised(records, kind), kind)
        rows = [(str(metric), *(f"{counts[name][metric]}" for name in counts)) for metric in counts.index]
        head = ("metric", "within two deviations", "better by more", "worse by more")
        tables.append(table(f"Cells of all methods, {words}", head, rows, numeric=(1, 2, 3)))
    return join(tables)


def deviations(records: pd.DataFrame) -> Html:
    """Every cell in which our GPAE is worse than the paper's by more than two of the paper's deviations."""
    lines = []
    for kind, words in _KINDS.items():
        beside = beside_the_paper(summarised(records, kind), kind)
        for one in beside[(beside.method == "GPAE") & beside.worse].itertuples():
            deviation = f"{one.mean_paper:.2f} ± {one.std_paper:.2f}"
            lines.append((f"{one.dataset}, {words}", str(one.metric), f"{one.mean:.2f}", deviation))
    if not lines:
        return paragraph("There is none.")
    return table(
        f"{len(lines)} cells", ("where", "metric", "ours", "paper's, with its deviation"), lines, numeric=(2, 3)
    )


def settings_table(tried: pd.DataFrame) -> Html:
    """How often each setting was the best on validation rows, free and masked."""
    rows = []
    for method in sorted(tried.method.unique(), key=_place):
        for trial, lines in tried[tried.method == method].groupby("trial", sort=False):
            counts = [
                f"{int(part.chosen.sum())} of {len(part)}" for part in (lines[~lines.masked], lines[lines.masked])
            ]
            rows.append((method, str(trial), *counts))
    return table("Chosen, of all data sets and seeds", ("method", "setting", "free", "masked"), rows, numeric=(2, 3))
