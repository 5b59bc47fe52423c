"""A model of one's own on the command line: imported, explained, given again."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import SMALL

Run = Callable[..., Any]

MODULE = """
    import numpy as np

    def granted(table):
        worth = table.income - table.debt + 20 * (table.home == "owns") - 40
        return 1 / (1 + np.exp(-worth.to_numpy(dtype=float) / 10))

    def refused(table):
        return np.full(len(table), 0.1)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scoring_for_tests.py").write_text(textwrap.dedent(MODULE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_is_imported_and_explained(run: Run, place: Path, table_file: Path, queries: Path) -> None:
    own = ("--own-model", "scoring_for_tests:granted")
    fitted = run("fit", table_file, "--label", "granted", "--favourable", "yes", *own, *SMALL, "-o", place / "m.gpae")
    assert fitted.code == 0, fitted.stderr
    assert "the surrogate decides as the model does on" in fitted.stdout
    ended = run("explain", place / "m.gpae", queries, *own, "-k", "2", "--json", "--plots", place / "plots")
    assert ended.code == 0, ended.stderr
    plans = [line for line in json.loads(ended.stdout)["answers"] if line["found"]]
    assert len(plans) > 4
    assert all(p["income"] - p["debt"] + 20 * (p["home"] == "owns") > 40 for p in plans)
    drawn = sorted(path.name for path in (place / "plots").iterdir())
    assert drawn == sorted(f"row-{line['row']}-plan-{line['plan']}.png" for line in plans)
    assert (place / "plots" / drawn[0]).read_bytes().startswith(b"\x89PNG")


def test_the_same_model_is_wanted_again(run: Run, place: Path, table_file: Path, queries: Path) -> None:
    own = ("--own-model", "scoring_for_tests:granted")
    run("fit", table_file, "--label", "granted", "--favourable", "yes", *own, *SMALL, "-o", place / "m.gpae")
    without = run("explain", place / "m.gpae", queries)
    assert without.code == 2
    assert "explains a model that is not in the file" in without.stderr
    other = run("explain", place / "m.gpae", queries, "--own-model", "scoring_for_tests:refused")
    assert other.code == 2
    assert "not the model that the explainer was made for" in other.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scoring_for_tests", "write MODULE:NAME"),
        ("scoring_for_tests:nothing", "cannot be imported: AttributeError"),
        ("no_such_module:model", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_imported_is_said(run: Run, place: Path, table_file: Path, name: str, message: str) -> None:
    options = ("--label", "granted", "--favourable", "yes", "--own-model", name)
    ended = run("fit", table_file, *options, "-o", place / "m.gpae")
    assert ended.code == 2
    assert message in ended.stderr
    assert not (place / "m.gpae").exists()
