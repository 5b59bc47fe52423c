"""The page beside the paper's numbers."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from gpae.benchmark.ranks import SEVEN
from gpae.report.compare import paper_tables
from gpae.report.paper_page import Drawing, Study, paper_page
from gpae.report.paper_tables import beside_tables, deviations, second_readings

COLUMNS = ["dataset", "method", "masked", "seed", "metric", "value", "n_rows", "seconds"]


def printed_as_records(shift: float = 0.0, method: str = "GPAE") -> pd.DataFrame:
    """The paper's own numbers as if they were ours, two seeds; one method's L2 shifted."""
    lines = []
    for one in paper_tables().itertuples():
        scale = 0.01 if one.table == "classification" else 1.0
        moved = shift if (one.metric, one.method) == ("L2", method) else 0.0
        for seed, wobble in ((0, -0.005), (1, 0.005)):
            value = scale * float(one.mean) + moved + wobble
            masked = one.table == "counterfactual_masked"
            lines.append((one.dataset, one.method, masked, seed, one.metric, value, 400, 1.0))
            if one.metric in SEVEN:
                lines.append((one.dataset, one.method, masked, seed, f"{one.metric}Common", value, 300, 0.0))
    return pd.DataFrame(lines, columns=COLUMNS)


@pytest.fixture(scope="module")
def study() -> Study:
    return Study("chosen", printed_as_records(), {"command": "gpae bench paper", "commit": "abc"})


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_the_papers_own_numbers_give_its_own_ranks_and_no_deviation(study: Study) -> None:
    words = plain(paper_page([study], []))
    assert "mean rank, free (paper 3.04) 3.04" in words
    assert "mean rank, masked (paper 2.29) 2.29" in words
    assert "There is none." in words


def test_a_cell_shows_ours_the_spread_the_papers_and_the_difference() -> None:
    html = str(beside_tables(printed_as_records(shift=0.5), "counterfactual"))
    lcd = html[html.index("LCD") :]
    line = plain(lcd[lcd.index(">GPAE<") :])
    assert line.startswith(">GPAE 0.86 ± 0.01 0.36 (+0.50) worse")


def test_the_best_of_a_column_is_bold_by_the_metrics_own_direction() -> None:
    html = str(beside_tables(printed_as_records(), "counterfactual"))
    fico = html[html.index("FICO") :]
    start = fico.index(">Wachter<")
    wachter = fico[start : fico.index("</tr>", start)]
    cells = re.findall(r"<td.*?</td>", wachter, flags=re.DOTALL)
    bold = ["<b>" in cell for cell in cells]
    assert bold[SEVEN.index("L2")], "0.09 is the least L2 on FICO"
    assert bold[SEVEN.index("Diversity")], "0.79 is the largest Diversity"
    assert not bold[SEVEN.index("Validity")]


def test_cells_worse_by_two_deviations_are_listed() -> None:
    words = plain(str(deviations(printed_as_records(shift=2.0))))
    assert words.count("L2") == 9, "five data sets free, four masked"
    assert "LCD, free L2 2.36" in words


def test_a_method_without_a_value_has_a_dash() -> None:
    records = printed_as_records()
    records.loc[(records.method == "CLUE") & (records.metric == "IM1"), "value"] = np.nan
    html = str(beside_tables(records, "counterfactual"))
    clue = html[html.index(">CLUE<") :]
    assert "–" in plain(clue[: clue.index("</tr>")])


def test_second_readings_say_how_many_rows_were_asked_and_answered() -> None:
    asked = printed_as_records()
    found = asked[(asked.metric == "L2") & ~asked.masked].assign(metric="Found", value=0.987)
    words = plain(str(second_readings(pd.concat([asked, found]), masked=False)))
    assert "GPAE 800 0.987" in words


def test_every_study_has_its_ranks_and_a_figure_is_on_the_page(study: Study) -> None:
    other = Study("carla", printed_as_records(shift=9.0), {})
    figure = Figure()
    figure.subplots().plot([0, 1])
    html = paper_page([study, other], [Drawing("line", "A line", "It rises.", figure)], ["digits are not there"])
    words = plain(html)
    assert "carla, common" in words
    assert "A line" in words
    assert "It rises." in words
    assert "digits are not there" in words
    assert html.count("<svg") == 1
    assert "http" not in html.replace("http://www.w3.org", ""), "nothing is loaded from elsewhere"


def test_a_table_says_how_many_rows_were_answered_and_the_ranks_how_many_by_all(study: Study) -> None:
    records = study.records.copy()
    few = (records.method == "CLUE") & (records.metric != "Validity") & ~records.metric.str.endswith("Common")
    records.loc[few, "n_rows"] = 123
    words = plain(paper_page([Study("chosen", records, {})], []))
    assert "246 of 800" in words
    assert "Rows that every method answered (chosen): LCD 600 of 800" in words


def test_a_part_of_the_study_has_no_rank_beside_the_papers(study: Study) -> None:
    some = study.records[study.records.method.isin(["GPAE", "FACE"])]
    words = plain(paper_page([Study("chosen", some, {})], []))
    assert "mean rank, free (paper" not in words
    assert "Not every method and data set was run" in words
    without = study.records[study.records.method == "FACE"]
    assert "GPAE was not run." in plain(paper_page([Study("chosen", without, {})], []))


def test_a_cell_without_a_value_counts_as_worse() -> None:
    records = printed_as_records()
    records.loc[(records.method == "GPAE") & (records.metric == "IM1") & (records.dataset == "LCD"), "value"] = np.nan
    assert plain(str(deviations(records))).count("IM1") == 2


def test_the_settings_that_were_tried_are_counted(study: Study) -> None:
    lines = [("SAE", "default", False, True), ("SAE", "step 3.0", False, False), ("SAE", "default", False, False)]
    tried = pd.DataFrame(lines, columns=["method", "trial", "masked", "chosen"])
    words = plain(paper_page([Study("chosen", study.records, {}, tried)], []))
    assert "SAE default 1 of 2 0 of 0" in words
    assert "SAE step 3.0 0 of 1 0 of 0" in words
    assert "every method is as it is by default" in plain(paper_page([study], []))


def test_names_are_text_and_never_markup() -> None:
    records = printed_as_records()
    records.loc[records.method == "CLUE", "method"] = "<script>"
    assert "<script>" not in paper_page([Study("chosen", records, {})], [])
