"""Small parts that the commands share."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gpae.cli.settings import parse_settings
from gpae.cli.terminal import print_json
from gpae.errors import InputError
from gpae.files import check_place, written_whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("0.5", 0.5),
        ("1e-3", 1e-3),
        ("true", True),
        ("null", None),
        ("auto", "auto"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_settings_are_json_scalars_or_text(text: str, value: Any) -> None:
    parsed = parse_settings([f"name={text}"])
    assert parsed == {"name": value}
    assert type(parsed["name"]) is type(value)


@pytest.mark.parametrize("pairs", [["name"], ["=1"], ["two words=1"], ["a=1", "a=2"], ["a=[1]"], ['a={"b": 1}']])
def test_settings_of_another_form_are_refused(pairs: list[str]) -> None:
    with pytest.raises(InputError, match="--set"):
        parse_settings(pairs)


def test_a_file_is_there_when_the_block_ends_well(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")
    with written_whole(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_link_is_followed_and_a_pipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with written_whole(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a device or a pipe"):
        check_place(tmp_path / "pipe")


def test_nothing_is_left_when_the_block_fails(tmp_path: Path) -> None:
    def write_half() -> None:
        with written_whole(tmp_path / "report.html") as temporary:
            temporary.write_text("half")
            raise RuntimeError("disk full")

    with pytest.raises(RuntimeError):
        write_half()
    assert not list(tmp_path.iterdir())


def test_a_file_has_the_rights_that_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with written_whole(tmp_path / "whole") as temporary:
        temporary.touch()
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("place", ["absent/x.csv", ".", "x.txt"])
def test_a_place_that_cannot_be_written_to_is_refused_early(tmp_path: Path, place: str) -> None:
    with pytest.raises(InputError, match="output"):
        check_place(tmp_path / place, (".csv", ""))


def test_printed_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [float("nan"), float("inf"), 1.5], "b": {"c": "ü"}})
    assert json.loads(capsys.readouterr().out) == {"a": [None, None, 1.5], "b": {"c": "ü"}}
