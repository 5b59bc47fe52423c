"""The tables of the paper's evaluation as HTML: ours, the paper's, the difference, and who is best."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from gpae.benchmark.ranks import BETTER, SEVEN, two_decimals
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
    "RowsPerSecond",
)  # fmt: skip
"""What the paper does not print: who was answered, and the other readings of its metrics."""

_KINDS: dict[Table, str] = {"counterfactual": "free", "counterfactual_masked": "masked"}
_SHORT = {"DiscriminativePower": "Disc. power"}


def beside_tables(records: pd.DataFrame, kind: Table, suffix: str = "") -> Html:
    """One table a data set: methods by metrics, ours above the paper's."""
    ours = beside_the_paper(summarised(records, kind, suffix), kind)
    metrics = CLASSIFICATION if kind == "classification" else SEVEN
    return join(
        join([heading(3, str(dataset)), _one_table(part, metrics)])
        for dataset, part in ours.groupby("dataset", sort=False)
    )


def classification_table(records: pd.DataFrame) -> Html:
    """The classifiers: accuracy, precision, recall and area under the curve, beside the paper's."""
    return beside_tables(records, "classification")


def _one_table(part: pd.DataFrame, metrics: Sequence[str]) -> Html:
    best = {metric: _best(part, metric, "mean") for metric in metrics}
    best_paper = {metric: _best(part, metric, "mean_paper") for metric in metrics}
    names = ("", *(_SHORT.get(metric, metric) for metric in metrics))
    head = join(element("th", text(name), scope="col", class_="number") for name in names)
    lines = []
    for method in sorted(part.method.unique(), key=_place):
        mine = part[part.method == method].set_index("metric")
        cells = [_cell(mine, metric, best[metric], best_paper[metric]) for metric in metrics]
        lines.append(element("tr", join([element("th", text(method), scope="row"), *cells])))
    words = "Ours, mean ± standard deviation over the seeds; below it the paper's and the difference. Bold: the best."
    body = [element("caption", text(words)), element("thead", element("tr", head)), element("tbody", join(lines))]
    return element("div", element("table", join(body), class_="figures"), class_="scroll")


def _place(method: str) -> tuple[int, str]:
    """The paper's order; a guise of a method comes last."""
    return (_ORDER.index(method) if method in _ORDER else len(_ORDER), method)


def _best(part: pd.DataFrame, metric: str, column: str) -> float:
    values = two_decimals(part[(part.metric == metric) & part.method.isin(_ORDER)][column])
    return float(values.min() if BETTER.get(metric, "higher") == "lower" else values.max())


def _cell(mine: pd.DataFrame, metric: str, best: float, best_paper: float) -> Html:
    if metric not in mine.index:
        return element("td", text("–"), class_="number")
    one: dict[Any, Any] = mine.loc[metric].to_dict()
    value = element("b" if round(one["mean"], 2) == best else "span", text(_number(one["mean"])))
    spread = Html("") if pd.isna(one["std"]) else element("small", text(f" ± {_number(one['std'])}"))
    theirs = Html("")
    if not pd.isna(one["mean_paper"]):
        name = "b" if round(one["mean_paper"], 2) == best_paper else "span"
        paper = element(name, text(_number(one["mean_paper"])))
        mark = element("span", text(" worse"), class_="worse") if one["worse"] else Html("")
        theirs = element("div", Html(f"{paper} ({text(_signed(one['difference']))}){mark}"), class_="paper")
    return element("td", Html(f"{value}{spread}{theirs}"), class_="number")


def _number(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.2f}"


def _signed(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:+.2f}"


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
