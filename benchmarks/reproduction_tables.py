"""Write the tables of ``docs/reproduction.md`` anew from the records of the studies.

``python benchmarks/reproduction_tables.py results docs/reproduction.md`` replaces what stands between a pair of marks
``<!-- ranks -->`` and ``<!-- /ranks -->``, and so for every table below; the words around them are a person's.
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from gpae.benchmark.ranks import SEVEN
from gpae.report.compare import (
    Table,
    agreement,
    beside_the_paper,
    paper_ranks,
    paper_tables,
    summarised,
)

STUDIES = {"chosen": "paper", "default": "paper-default", "CARLA": "paper-carla"}
TABLES: dict[str, Table] = {"Free": "counterfactual", "Masked": "counterfactual_masked"}
OWN_CLASSIFIER = ("LogReg", "SAE", "CounterNet", "GPAE-ind")
CLASSIFIERS = (
    "LogReg", "SVM", "Decision Tree", "Adaboost", "Random Forest",
    "Gaussian NB", "Neural Networks", "SAE", "GPAE-ind", "GPAE",
)  # fmt: skip


class Studies:
    """The records of the committed studies, by the name that the page gives them."""

    def __init__(self, results: Path) -> None:
        self.all = {
            name: pd.read_parquet(results / folder / "records.parquet")
            for name, folder in STUDIES.items()
            if (results / folder / "records.parquet").exists()
        }
        self.chosen = self.all["chosen"]


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]], words: int = 1) -> str:
    """A table whose first ``words`` columns are text and the others numbers."""
    head = list(head)
    rule = ["---" if column < words else "---:" for column in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def ranks(studies: Studies) -> str:
    """Mean ranks of the paper's own numbers and of every study, own rows and common rows."""
    parts = []
    for title, table in TABLES.items():
        theirs = paper_tables()
        columns = {"paper": _ranked(theirs[theirs.table == table])}
        for name, records in studies.all.items():
            columns[name] = _ranked(summarised(records, table))
            columns[f"{name}, common"] = _ranked(summarised(records, table, "Common"))
        order = columns["chosen"].index
        rows = ([_loud(name, name), *(_loud(name, f"{c[name]:.2f}") for c in columns.values())] for name in order)
        parts.append(f"{title}:\n\n" + markdown(["", *columns], rows))
    return "\n\n".join(parts)


def ranks_by_dataset(studies: Studies) -> str:
    """GPAE's mean rank and place on each data set, and who is the best of the others there."""
    rows = [
        [f"{dataset}, {title.lower()}", *(_against_the_best(figures, dataset) for figures in own_and_common)]
        for title, table in TABLES.items()
        for own_and_common in [[summarised(studies.chosen, table, suffix) for suffix in ("", "Common")]]
        for dataset in own_and_common[0].dataset.unique()
    ]
    return markdown(["GPAE / best other", "own rows", "common rows"], rows)


def ranks_by_metric(studies: Studies) -> str:
    """GPAE's mean rank in each metric, in the paper's table and in ours."""
    rows = []
    for title, table in TABLES.items():
        theirs = paper_tables()
        for name, figures in (("paper", theirs[theirs.table == table]), ("chosen", summarised(studies.chosen, table))):
            each = (_ranked(figures[figures.metric == metric])["GPAE"] for metric in SEVEN)
            rows.append([f"{name}, {title.lower()}", *(f"{rank:.1f}" for rank in each)])
    return markdown(["GPAE's mean rank", *SEVEN], rows)


def answered(studies: Studies) -> str:
    """Of the people asked, over the seeds: how many each method answers, and how many all of them do."""
    parts = []
    for title, masked in (("Free", False), ("Masked", True)):
        counterfactuals = studies.chosen[studies.chosen.masked == masked]
        counts = {
            column: _rows(counterfactuals, metric) for column, metric in (("asked", "Validity"), ("common", "L2Common"))
        }
        found = _rows(counterfactuals, "L2")
        methods = list(_ranked(summarised(studies.chosen, TABLES[title])).index)
        rows = [
            [dataset, *(str(int(counts[c][dataset, "GPAE"])) for c in counts)]
            + [str(int(found[dataset, method])) for method in methods]
            for dataset in counterfactuals.dataset.unique()
            if (dataset, "GPAE") in found
        ]
        parts.append(f"{title}:\n\n" + markdown(["", *counts, *methods], rows))
    return "\n\n".join(parts)


def cells(studies: Studies) -> str:
    """How many cells of each metric agree with the paper's."""
    parts = []
    for title, table in TABLES.items():
        counts = agreement(summarised(studies.chosen, table), table)
        rows = ([metric, *map(str, line)] for metric, line in zip(counts.index, counts.to_numpy(), strict=True))
        head = ["metric", "within two deviations", "better by more", "worse by more"]
        parts.append(f"{title}, all methods' cells against the paper's:\n\n" + markdown(head, rows))
    return "\n\n".join(parts)


def second_readings(studies: Studies) -> str:
    """GPAE's L2 and Diversity by the printed formulas and as plain distances, beside the paper's."""
    ours = studies.chosen.query("method == 'GPAE'").groupby(["masked", "dataset", "metric"]).value.mean()
    rows = []
    for title, table in TABLES.items():
        theirs = paper_tables()
        theirs = theirs[(theirs.table == table) & (theirs.method == "GPAE")].set_index(["dataset", "metric"])["mean"]
        for dataset in theirs.index.get_level_values("dataset").unique():
            place, both = f"{dataset}, {title.lower()}", ours[title == "Masked", dataset]
            values = [
                value
                for pair in (("L2", "L2Norm"), ("Diversity", "MeanPairwise"))
                for value in (*both[list(pair)], theirs[dataset, pair[0]])
            ]
            rows.append([place, *(f"{value:.2f}" for value in values)])
    head = ["GPAE", "L2", "L2Norm", "paper's L2", "Diversity", "MeanPairwise", "paper's Diversity"]
    return markdown(head, rows)


def own_classifiers(studies: Studies) -> str:
    """Validity of the methods with a classifier of their own: on the shared one, on theirs, and post hoc."""
    free = studies.chosen[~studies.chosen.masked]
    ours = free.groupby(["dataset", "method", "metric"]).value.mean()
    theirs = paper_tables().query("table == 'counterfactual' and metric == 'Validity'")
    theirs = theirs.set_index(["dataset", "method"])["mean"]
    rows = []
    for dataset in theirs.index.get_level_values("dataset").unique():
        line = [dataset]
        for method in OWN_CLASSIFIER:
            keys = [(method, "Validity"), (method, "ValiditySelf"), (f"{method} (post-hoc)", "Validity")]
            values = [f"{ours[dataset, name, metric]:.2f}" for name, metric in keys if (dataset, name, metric) in ours]
            line.append(" / ".join(values) + f" ({theirs[dataset, method]:.2f})")
        rows.append(line)
    return markdown(["", *OWN_CLASSIFIER], rows)


def worse(studies: Studies) -> str:
    """GPAE's cells that are worse than the paper's by more than two of its deviations."""
    rows = [
        [place, cell.metric, f"{cell.mean:.3f} ± {cell.std:.3f}", f"{cell.mean_paper:.2f} ± {cell.std_paper:.2f}"]
        for place, beside in _beside(studies)
        for cell in beside[(beside.method == "GPAE") & beside.worse].itertuples()
    ]
    return markdown(["where", "metric", "ours", "paper's"], rows, words=2)


def low_validity(studies: Studies) -> str:
    """Baselines whose validity, of two decimals, is below the paper's."""
    rows = [
        [place, cell.method, f"{cell.mean:.2f} ± {cell.std:.2f}", f"{cell.mean_paper:.2f}"]
        for place, beside in _beside(studies)
        for cell in beside[beside.metric == "Validity"].itertuples()
        if round(cell.mean, 2) < round(cell.mean_paper, 2)
    ]
    return markdown(["where", "method", "ours", "paper's"], rows, words=2)


def classifiers(studies: Studies) -> str:
    """Accuracy and area under the curve, beside the paper's."""
    beside = beside_the_paper(summarised(studies.chosen, "classification"), "classification")
    beside = beside.set_index(["method", "dataset", "metric"])
    datasets = beside.index.get_level_values("dataset").unique()

    def figure(key: tuple[str, str, str]) -> str:
        return f"{100 * beside['mean'][key]:.1f} ({100 * beside['mean_paper'][key]:.1f})"

    rows = (
        [name, *(" / ".join(figure((name, dataset, metric)) for metric in ("accuracy", "auc")) for dataset in datasets)]
        for name in CLASSIFIERS
    )
    return markdown(["", *datasets], rows)


def inducing_points(studies: Studies) -> str:
    """GPAE with inducing points: seconds of a fit, and rows a second with and without the cached means."""
    ours = studies.chosen.query("method == 'GPAE-ind' and not masked").groupby(["dataset", "metric"]).value.mean()
    names = ("FitSeconds", "RowsPerSecond", "RowsPerSecondUncached")
    rows = (
        [dataset, f"{ours[dataset, names[0]]:.0f}", f"{ours[dataset, names[1]]:.0f}", f"{ours[dataset, names[2]]:.1f}"]
        for dataset in ours.index.get_level_values("dataset").unique()
    )
    return markdown(["GPAE-ind", "seconds of a fit", "rows/s, cached", "rows/s, uncached (128 rows of seed 0)"], rows)


MADE: tuple[Callable[[Studies], str], ...] = (
    ranks, ranks_by_dataset, ranks_by_metric, answered, inducing_points, cells,
    own_classifiers, second_readings, worse, low_validity, classifiers,
)  # fmt: skip


def filled(page: str, studies: Studies) -> str:
    """The page with every table replaced by the one that the records give."""
    for table in MADE:
        name = table.__name__.replace("_", "-")
        page, found = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
            lambda marks, table=table: f"{marks[1]}\n{table(studies)}\n\n{marks[2]}",
            page,
            flags=re.DOTALL,
        )
        if found != 1:
            raise SystemExit(f"the page has {found} pairs of marks <!-- {name} -->; give it one")
    return page


def _ranked(figures: pd.DataFrame) -> pd.Series:
    return paper_ranks(figures).set_index("method")["rank"]


def _loud(method: str, text: str) -> str:
    return f"**{text}**" if method == "GPAE" else text


def _against_the_best(figures: pd.DataFrame, dataset: str) -> str:
    ranked = _ranked(figures[figures.dataset == dataset])
    others = ranked.drop("GPAE")
    return f"{ranked['GPAE']:.2f} / {others.min():.2f} {others.idxmin()}"


def _rows(records: pd.DataFrame, metric: str) -> pd.Series:
    return records[records.metric == metric].groupby(["dataset", "method"]).n_rows.sum()


def _beside(studies: Studies) -> Iterable[tuple[str, pd.DataFrame]]:
    """Every data set and mask with its cells beside the paper's."""
    for title, table in TABLES.items():
        beside = beside_the_paper(summarised(studies.chosen, table), table).dropna(subset=["mean_paper"])
        beside = beside[beside.metric.isin(SEVEN)]
        for dataset, part in beside.groupby("dataset", sort=False):
            yield f"{dataset}, {title.lower()}", part


if __name__ == "__main__":
    results, page = Path(sys.argv[1]), Path(sys.argv[2])
    page.write_text(filled(page.read_text(encoding="utf-8"), Studies(results)), encoding="utf-8")
