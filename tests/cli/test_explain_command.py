"""``gpae explain``: answers for people and for programs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gpae.table.frames import read_table

Run = Callable[..., Any]
HEAD = "income,debt,home,sex\n"


def test_people_read_what_changes(run: Run, model: Path, queries: Path) -> None:
    ended = run("explain", model, queries, "-k", "2")
    assert ended.code == 0
    assert "Row 0  probability of granted yes now" in ended.stdout
    assert "plan 1" in ended.stdout
    assert "plausibility" in ended.stdout
    assert "Row 4  already favourable" in ended.stdout
    assert "\x1b" not in ended.stdout
    assert "4 found" in ended.stderr


def test_show_limits_what_is_printed_and_says_so(run: Run, model: Path, queries: Path) -> None:
    ended = run("explain", model, queries, "--show", "1")
    assert "Row 0" in ended.stdout
    assert "Row 1" not in ended.stdout
    assert "1 of 5 people shown" in ended.stderr


def test_json_holds_the_contracts_columns(run: Run, model: Path, queries: Path) -> None:
    ended = run("explain", model, queries, "--json")
    answered = json.loads(ended.stdout)
    assert answered["summary"] == {"already_favourable": 1, "found": 4}
    assert list(answered["answers"][0]) == [
        *("row", "plan", "status", "found", "income", "debt", "home", "sex"),
        *("probability", "distance", "changes", "log_density", "plausibility", "reason"),
        *("calibrated", "survival", "cost"),
    ]


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_answers_are_written_whole(run: Run, model: Path, queries: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"answers.{ending}"
    ended = run("explain", model, queries, "-k", "2", "-o", out)
    assert (ended.code, ended.stdout) == (0, "")
    assert str(out) in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    lines = json.loads(out.read_text()) if ending == "json" else read_table(out).to_pylist()
    assert {line["row"] for line in lines} == set(range(5))


def test_immutable_adds_to_the_models(run: Run, model: Path, queries: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.parquet"
    assert run("explain", model, queries, "--immutable", "debt", "-o", out).code == 0
    asked = read_table(queries)
    found = [line for line in pq.read_table(out).to_pylist() if line["found"]]
    assert found
    for line in found:
        assert line["debt"] == asked["debt"][line["row"]].as_py()
        assert line["sex"] == asked["sex"][line["row"]].as_py()


def test_the_same_command_gives_the_same_answer(run: Run, model: Path, queries: Path) -> None:
    first, second = (run("explain", model, queries, "--json").stdout for _ in range(2))
    assert first == second


def test_a_row_that_cannot_be_read_ends_with_3_and_the_others_are_answered(
    run: Run, model: Path, tmp_path: Path
) -> None:
    asked, out = tmp_path / "queries.csv", tmp_path / "answers.json"
    asked.write_text(f"{HEAD}20,30,rents,f\n20,30,castle,f\n20,,rents,f\n")
    ended = run("explain", model, asked, "-o", out)
    assert ended.code == 3
    lines = json.loads(out.read_text())
    assert [line["status"] for line in lines] == ["found", "bad_input", "bad_input"]
    assert "'castle'" in lines[1]["reason"]
    assert "'debt'" in lines[2]["reason"]
    shown = run("explain", model, asked)
    assert shown.code == 3
    assert "'castle'" in shown.stdout


WRONG = {
    "a column is missing": ("income,debt,sex\n20,30,f\n", [], "'home'"),
    "no rows": (HEAD, [], "no rows"),
    "empty": ("", [], "empty"),
    "immutable is no feature": (f"{HEAD}20,30,rents,f\n", ["--immutable", "race"], "'race'"),
    "no plans asked": (f"{HEAD}20,30,rents,f\n", ["-k", "0"], "-k"),
    "output of a foreign kind": (f"{HEAD}20,30,rents,f\n", ["-o", "answers.xlsx"], ".parquet, .csv or .json"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_query_ends_with_2(run: Run, model: Path, tmp_path: Path, case: str) -> None:
    text, options, named = WRONG[case]
    asked, folder = tmp_path / "queries.csv", tmp_path / "out"
    asked.write_text(text)
    folder.mkdir()
    ended = run("explain", model, asked, "-o", folder / "answers.csv", *options)
    assert ended.code == 2
    assert named in ended.stderr
    assert not list(folder.iterdir())


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


FILES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda content: content[: len(content) // 2],
    "one byte changed": _flip,
    "empty": lambda content: b"",
    "text": lambda content: b"income,debt\n1,2\n",
    "a pickle": lambda content: b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94.",
}


@pytest.mark.parametrize("damage", FILES)
def test_a_damaged_or_foreign_model_ends_with_2(
    run: Run, model: Path, queries: Path, tmp_path: Path, damage: str
) -> None:
    file, folder = tmp_path / "m.gpae", tmp_path / "out"
    file.write_bytes(FILES[damage](model.read_bytes()))
    folder.mkdir()
    ended = run("explain", file, queries, "-o", folder / "answers.csv")
    assert ended.code == 2
    assert "m.gpae" in ended.stderr
    assert not list(folder.iterdir())


def test_a_model_that_is_not_there_ends_with_2(run: Run, queries: Path, tmp_path: Path) -> None:
    assert run("explain", tmp_path / "absent.gpae", queries).code == 2
