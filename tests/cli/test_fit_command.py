"""``gpae fit``: the schema shown, the model saved, and nothing written when something is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpae import Schema, TabularExplainer

Run = Callable[..., Any]
LABEL = ("--label", "granted", "--favourable", "yes")


def test_the_saved_model_loads_and_keeps_the_options(model: Path) -> None:
    schema = TabularExplainer.load(model).schema_
    assert schema.names == ("income", "debt", "home", "sex")
    assert schema["sex"].change == "fixed"


def test_show_schema_fits_nothing(run: Run, table_file: Path, tmp_path: Path) -> None:
    shown = run("fit", table_file, *LABEL, "--immutable", "sex", "--show-schema", "-o", tmp_path / "m.gpae")
    assert shown.code == 0
    assert "income   integer" in shown.stdout
    assert not list(tmp_path.iterdir())


def test_a_saved_schema_can_be_passed_back(run: Run, table_file: Path, tmp_path: Path) -> None:
    written = tmp_path / "schema.yaml"
    assert run("fit", table_file, *LABEL, "--drop", "sex", "--show-schema", "--save-schema", written).code == 0
    shown = run("fit", table_file, "--schema", written, "--immutable", "debt", "--show-schema", "--json")
    schema = Schema.from_dict(json.loads(shown.stdout)["schema"])
    assert schema.names == ("income", "debt", "home")
    assert schema["debt"].change == "fixed"


def test_json_on_stdout_and_progress_on_stderr(
    run: Run, table_file: Path, tmp_path: Path, small: tuple[str, ...]
) -> None:
    out = tmp_path / "m.gpae"
    fitted = run("fit", table_file, *LABEL, *small, "--validation", table_file, "--json", "-o", out)
    assert fitted.code == 0
    summary = json.loads(fitted.stdout)
    assert (summary["rows"], summary["features"], summary["beta"]) == (300, 4, 0.1)
    assert 0.5 < summary["validation_accuracy"] <= 1
    assert "training" in fitted.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.gpae"]


WRONG = {
    "the label is no column": (["--label", "grantd", "--favourable", "yes"], "did you mean 'granted'"),
    "favourable is no value": (["--label", "granted", "--favourable", "maybe"], "'maybe'"),
    "no label": ([], "--label"),
    "immutable is no column": ([*LABEL, "--immutable", "race"], "'race'"),
    "drop is no column": ([*LABEL, "--drop", "race"], "'race'"),
    "unknown method": ([*LABEL, "--method", "magic"], "known: "),
    "unknown setting": ([*LABEL, "--set", "n_feature=5"], "n_features"),
    "setting of a wrong type": ([*LABEL, "--set", "n_features=many"], "n_features=many"),
    "setting that is no choice": ([*LABEL, "--set", "solver=magic"], "'newton'"),
    "setting without a value": ([*LABEL, "--set", "n_features"], "name=value"),
    "label that is no label": (["--label", "income", "--favourable", "20"], "'income'"),
    "schema is not there": (["--schema", "absent.yaml"], "absent.yaml"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_option_ends_with_2_and_leaves_nothing(run: Run, table_file: Path, tmp_path: Path, case: str) -> None:
    options, named = WRONG[case]
    ended = run("fit", table_file, *options, "-o", tmp_path / "m.gpae")
    assert ended.code == 2
    assert named in ended.stderr
    assert ended.stderr.startswith("error: ")
    assert not list(tmp_path.iterdir())


TABLES = {
    "empty file": ("", "empty"),
    "no rows": ("income,granted\n", "no rows"),
    "one class only": ("income,granted\n1,yes\n2,yes\n3,yes\n", "only one value"),
    "the same column twice": ("income,income,granted\n1,2,yes\n3,4,no\n", "'income'"),
    "a constant column": ("income,granted\n1,yes\n1,no\n", "'income'"),
    "no feature": ("granted\nyes\nno\n", "no feature"),
    "a missing label": ("income,granted\n1,yes\n2,no\n3,\n", "row 2"),
    "an infinity": ("income,granted\n1.5,yes\n2.5,no\ninf,no\n", "row 2"),
    "a feature with the name of our column": ("row,granted\n1,yes\n2,no\n3,no\n", "'row'"),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_wrong_table_ends_with_2_and_leaves_nothing(run: Run, tmp_path: Path, case: str) -> None:
    text, named = TABLES[case]
    source, folder = tmp_path / "table.csv", tmp_path / "out"
    source.write_text(text)
    folder.mkdir()
    ended = run("fit", source, *LABEL, "-o", folder / "m.gpae")
    assert ended.code == 2
    assert named in ended.stderr
    assert not list(folder.iterdir())


def test_a_missing_table_ends_with_2(run: Run, tmp_path: Path) -> None:
    ended = run("fit", tmp_path / "absent.csv", *LABEL, "-o", tmp_path / "m.gpae")
    assert ended.code == 2
    assert "absent.csv" in ended.stderr


def test_a_place_that_is_not_there_is_refused_before_the_work(run: Run, table_file: Path, tmp_path: Path) -> None:
    ended = run("fit", table_file, *LABEL, "-o", tmp_path / "absent" / "m.gpae")
    assert ended.code == 2
    assert "create it first" in ended.stderr
    assert "training" not in ended.stderr


def test_options_that_contradict_the_schema_are_refused(run: Run, table_file: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    assert run("fit", table_file, *LABEL, "--show-schema", "--save-schema", schema).code == 0
    for options in (["--label", "home"], ["--favourable", "no"], ["--drop", "sex"]):
        assert run("fit", table_file, "--schema", schema, *options, "-o", tmp_path / "m.gpae").code == 2


def test_a_failure_in_the_middle_leaves_the_old_model(
    run: Run, table_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: TabularExplainer, train: Any, validation: Any = None) -> None:
        raise MemoryError("out of memory")

    old = tmp_path / "m.gpae"
    old.write_bytes(b"old")
    monkeypatch.setattr(TabularExplainer, "fit", fail)
    assert run("fit", table_file, *LABEL, "-o", old).code == 1
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("m.gpae", b"old")]
