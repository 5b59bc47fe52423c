"""The page that ``gpae report`` writes: the paper's evaluation, ours beside its own, tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from gpae.benchmark.ranks import SEVEN
from gpae.report.compare import Table, all_there, paper_ranks, paper_tables, summarised
from gpae.report.html import Html, element, heading, join, page, paragraph, table, text
from gpae.report.inline_figure import inline_figure
from gpae.report.paper_tables import (
    agreement_tables,
    beside_tables,
    classification_table,
    deviations,
    second_readings,
    settings_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Drawing", "Study", "paper_page"]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The records of one run of the evaluation, and how they were made."""

    settings: str
    """What the methods were set to: chosen, default or carla."""
    records: pd.DataFrame
    run: Mapping[str, Any]
    tried: pd.DataFrame | None = None
    """The settings that were tried on validation rows, and which were chosen."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """A figure of the page."""

    name: str
    title: str
    words: str
    figure: "Figure"


_SETTINGS = {
    "chosen": "settings chosen on validation rows",
    "default": "every method at its defaults",
    "carla": "baselines at CARLA's settings",
}
_TABLES: dict[str, Table] = {"free": "counterfactual", "masked": "counterfactual_masked"}


def paper_page(studies: Sequence[Study], drawings: Sequence[Drawing], missing: Sequence[str] = ()) -> str:
    """Return the page as one self-contained HTML file; the first study is the one whose tables are shown whole."""
    title = "The paper's evaluation, run again"
    main = studies[0]
    sections = [
        ("ranks", "Mean ranks", _ranks(studies)),
        ("agreement", "How close to the paper", element("div", agreement_tables(main.records), class_="card")),
        ("worse", "Where our GPAE is worse than the paper's", _worse(main)),
        ("free", "Counterfactuals, all features free", _counterfactuals(main, "free")),
        ("masked", "Counterfactuals, immutable features", _counterfactuals(main, "masked")),
        ("classifiers", "Classifiers", _classifiers(main)),
        ("settings", "What was tuned", _tuned(main)),
        ("figures", "Figures", _figures(drawings, missing)),
        *[(study.settings, f"Tables with {_SETTINGS[study.settings]}", _both(study)) for study in studies[1:]],
    ]
    links = element("nav", join(element("a", text(words), href=f"#{anchor}") for anchor, words, _ in sections))
    body = [
        element("header", join([heading(1, title), paragraph(_lead(main), "lead"), _tiles(main), links])),
        element("main", join(element("section", join([heading(2, w, a), c])) for a, w, c in sections)),
        element("footer", paragraph(_made(main))),
    ]
    return page(title, join(body), class_="wide")


def _lead(study: Study) -> str:
    records = study.records
    return (
        f"{records.method.nunique()} methods and classifiers on {records.dataset.nunique()} data sets, "
        f"{records.seed.nunique()} seeds; {_SETTINGS[study.settings]}. All methods are asked about the test rows that "
        "one shared classifier refuses, and judged by it; the paper's numbers stand beside ours. Columns are encoded "
        "to [0, 1] by their training range; the density is of all training rows; guises in brackets are at defaults."
    )


def _tiles(study: Study) -> Html:
    entries = {}
    for words, kind in _TABLES.items():
        figures = summarised(study.records, kind)
        if all_there(figures, kind):  # a rank among fewer methods says nothing beside the paper's
            printed = paper_tables()
            theirs = _rank_of(paper_ranks(printed[printed.table == kind]))
            entries[f"GPAE's mean rank, {words} (paper {theirs:.2f})"] = f"{_rank_of(paper_ranks(figures)):.2f}"
            valid = figures[(figures.method == "GPAE") & (figures.metric == "Validity")]["mean"]
            entries[f"GPAE's least validity, {words}"] = f"{valid.min():.2f}"
    rows = [element("div", element("dt", text(name)) + element("dd", text(value))) for name, value in entries.items()]
    return element("dl", join(rows), class_="tiles")


def _rank_of(ranks: pd.DataFrame, method: str = "GPAE") -> float:
    return float(ranks.loc[ranks.method == method, "rank"].iloc[0])


def _rank_text(ranks: pd.DataFrame, method: str) -> str:
    return f"{_rank_of(ranks, method):.2f}" if method in set(ranks.method) else "–"


def _ranks(studies: Sequence[Study]) -> Html:
    """One table, free and masked: a column for the paper and for each study, on own and on common rows."""
    words = (
        "Methods are ranked per data set and metric on means of two decimals; ties share their ranks, and a method "
        "without an answer comes last. Common: only the rows that every method answered."
    )
    parts = [paragraph(words)]
    for mask, kind in _TABLES.items():
        printed = paper_tables()
        columns = {"paper": paper_ranks(printed[printed.table == kind])}
        for study in studies:
            for suffix in ("", "Common"):
                figures = summarised(study.records, kind, suffix)
                if len(figures):
                    columns[f"{study.settings}{', common' if suffix else ''}"] = paper_ranks(figures)
        first = columns.get(studies[0].settings, columns["paper"])
        rows = [(method, *(_rank_text(ranks, method) for ranks in columns.values())) for method in first.method]
        numeric = range(1, len(columns) + 1)
        parts.append(table(f"Mean rank, {mask}", ("method", *columns), rows, numeric))
        parts.append(paragraph(_common_words(studies, kind)))
        if not all_there(summarised(studies[0].records, kind), kind):
            parts.append(paragraph("Not every method and data set was run: these ranks are not the paper's game."))
    return element("div", join(parts), class_="card")


def _common_words(studies: Sequence[Study], kind: Table) -> str:
    """How many rows every method answered, over the seeds."""
    said = []
    for study in studies:
        figures = summarised(study.records, kind, "Common")
        counts = figures[figures.metric == "L2"].groupby("dataset", sort=False)["rows"].max()
        asked = summarised(study.records, kind)
        total = asked[asked.metric == "Validity"].groupby("dataset", sort=False)["rows"].max()
        rows = ", ".join(f"{name} {int(counts.get(name, 0)):,} of {int(total[name]):,}" for name in total.index)
        said.append(f"Rows that every method answered ({study.settings}): {rows}.")
    return " ".join(said)


def _worse(study: Study) -> Html:
    if "GPAE" not in set(study.records.method):
        return paragraph("GPAE was not run.")
    words = "Cells in which the difference is in the bad direction and over two of the standard deviations it prints."
    return element("div", join([paragraph(words), deviations(study.records)]), class_="card")


def _counterfactuals(study: Study, mask: str) -> Html:
    kind = _TABLES[mask]
    if not len(summarised(study.records, kind)):
        return paragraph("Not run.")
    more = join([heading(3, "Beside the seven metrics"), second_readings(study.records, mask == "masked")])
    common = join([heading(3, "On the rows that every method answered"), beside_tables(study.records, kind, "Common")])
    return element("div", join([beside_tables(study.records, kind), _folded(common), _folded(more)]), class_="card")


def _folded(content: Html) -> Html:
    title, _, rest = content.partition("</h3>")
    return element("details", Html(element("summary", Html(f"{title}</h3>")) + rest))


def _classifiers(study: Study) -> Html:
    words = (
        "Test sets are balanced but for FICO's, whose precision and recall are of the class Bad, as in the paper. The "
        "paper's area under the curve equals its accuracy in places, which is what hard labels give; ours is of scores."
    )
    return element("div", join([paragraph(words), classification_table(study.records)]), class_="card")


def _tuned(study: Study) -> Html:
    if study.tried is None:
        return paragraph("Nothing: every method is as it is by default, or as a preset has it.")
    words = (
        "Each method's default and four other settings answered refused validation rows; each was ranked among the "
        "defaults of all other methods, and the best was used on the test rows. CounterNet chooses its weight itself."
    )
    return element("div", join([paragraph(words), settings_table(study.tried)]), class_="card")


def _figures(drawings: Sequence[Drawing], missing: Sequence[str]) -> Html:
    parts = [
        element(
            "div",
            join([heading(3, one.title), inline_figure(one.figure, one.name, one.words, one.words)]),
            class_="card",
        )
        for one in drawings
    ]
    return join([*parts, *(paragraph(words) for words in missing)])


def _both(study: Study) -> Html:
    titled = {heading(3, mask.capitalize()): beside_tables(study.records, kind) for mask, kind in _TABLES.items()}
    return join(element("div", _folded(Html(title + part)), class_="card") for title, part in titled.items())


def _made(study: Study) -> str:
    run = {name: study.run.get(name) for name in ("command", "gpae", "commit", "python", "machine")}
    said = "; ".join(f"{name}: {value}" for name, value in run.items() if value)
    return f"Written by gpae. Metrics: {', '.join(SEVEN)}. {said}"
