"""``gpae data``: four commands, for people and for programs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpae.cli.data import app
from gpae.dataset import DATA_HOME
from gpae.datasets import DATASETS, load
from gpae.errors import DataMissingError, GpaeError, InputError

Put = Callable[..., Path]
runner = CliRunner()


def _json(*arguments: str, exit_code: int = 0) -> Any:
    result = runner.invoke(app, [*arguments, "--json"])
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def test_list_shows_every_data_set_in_100_columns() -> None:
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in DATASETS)
    assert "48,842" in result.stdout
    assert "income = >50K" in result.stdout
    assert max(len(line.rstrip()) for line in result.stdout.splitlines()) <= 100


@pytest.mark.usefixtures("empty_machine")
def test_list_says_what_to_do_about_absent_files() -> None:
    assert "gpae data fetch NAME" in runner.invoke(app, ["list"]).stdout


@pytest.mark.usefixtures("empty_machine")
def test_list_as_json_says_where_each_was_found() -> None:
    entries = {entry["name"]: entry for entry in _json("list")}
    assert list(entries) == list(DATASETS)
    assert (entries["adult"]["found"], entries["lcd"]["found"]) == ("package", "absent")
    assert entries["adult"]["masked"] == ["race", "gender"]
    assert entries["adult"]["rows"] == 48_842
    assert entries["lcd"]["favourable"] == 1
    assert entries["lcd"]["files"][0]["file"] == "lcd/lcd.csv.gz"


def test_path_prints_the_path_and_nothing_else() -> None:
    result = runner.invoke(app, ["path", "Adult"])
    assert result.exit_code == 0
    assert result.stdout == f"{load('adult').path()}\n"


def test_path_as_json_holds_the_path() -> None:
    assert _json("path", "adult") == {"name": "adult", "paths": [str(load("adult").path())]}


def test_fetch_verifies_a_file_that_is_here() -> None:
    result = runner.invoke(app, ["fetch", "adult"])
    assert result.exit_code == 0
    assert str(load("adult").path()) in result.stdout
    assert "as expected" in result.stdout
    assert "CC BY 4.0" in result.stdout


def test_fetch_as_json_holds_state_and_checksum() -> None:
    files = _json("fetch", "adult")["files"]
    assert [(file["state"], file["sha256"]) for file in files] == [("ok", load("adult").files[0].sha256)]


@pytest.mark.usefixtures("empty_machine")
@pytest.mark.parametrize("command", ["fetch", "path"])
def test_a_file_that_cannot_be_downloaded_is_asked_for(command: str) -> None:
    result = runner.invoke(app, [command, "gmc"])
    assert isinstance(result.exception, DataMissingError)
    assert "Where to put it: as gmc/gmc.csv.gz" in str(result.exception)


def test_an_unknown_data_set_is_an_error_the_user_can_mend() -> None:
    result = runner.invoke(app, ["path", "iris"])
    assert isinstance(result.exception, GpaeError)
    assert "known: adult" in str(result.exception)


@pytest.mark.usefixtures("empty_machine")
def test_check_counts_absent_files_as_no_failure() -> None:
    result = runner.invoke(app, ["check"])
    assert result.exit_code == 0
    assert "absent" in result.stdout
    assert {line["name"]: line["state"] for line in _json("check")} == {
        name: "ok" if name == "adult" else "absent" for name in DATASETS
    }


def test_check_fails_on_a_damaged_file_and_names_it(put: Put) -> None:
    path = put(load("lcd"), b"not the loans")
    result = runner.invoke(app, ["check"])
    assert result.exit_code == 2
    assert "damaged" in result.stdout
    assert f"replace or delete {path}" in result.stderr
    states = {line["name"]: line for line in _json("check", exit_code=2)}
    assert (states["lcd"]["state"], states["lcd"]["path"]) == ("damaged", str(path))


def test_brackets_in_a_folders_name_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(DATA_HOME, "[red]")
    loans = Path("[red]/lcd/lcd.csv.gz")
    loans.parent.mkdir(parents=True)
    loans.write_bytes(b"not the loans")
    assert str(loans) in runner.invoke(app, ["check"]).stdout


def test_fetch_refuses_a_damaged_file(put: Put) -> None:
    put(load("lcd"), b"not the loans")
    assert isinstance(runner.invoke(app, ["fetch", "lcd"]).exception, InputError)
