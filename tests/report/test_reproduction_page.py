"""The tables of the docs page are those of the committed records."""

import importlib.util
from pathlib import Path

import pytest

from gpae.report.paper_figures import paper_drawings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduction.md"


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("tables", ROOT / "benchmarks" / "reproduction_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def studies(tables):
    return tables.Studies(ROOT / "results")


def test_the_page_holds_the_tables_of_the_records(tables, studies):
    page = PAGE.read_text(encoding="utf-8")
    assert tables.filled(page, studies) == page, "run benchmarks/reproduction_tables.py"


def test_the_figures_of_the_paper_can_be_drawn_from_what_is_committed():
    drawings, missing = paper_drawings(ROOT / "results")
    assert not missing
    assert len(drawings) == 7


def test_a_page_without_a_table_is_refused(tables, studies):
    with pytest.raises(SystemExit, match="0 pairs of marks <!-- ranks -->"):
        tables.filled("no marks here", studies)


def test_the_rule_of_ranking_gives_what_the_paper_prints(tables, studies):
    lines = [line.split(" | ") for line in tables.ranks(studies).splitlines() if line.startswith("| **GPAE**")]
    assert [line[1] for line in lines] == ["**3.04**", "**2.29**"]
