"""The README's first example runs as it stands, and prints what the README says it prints, numbers apart."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def headers(printed: str) -> list[list[str]]:
    """The lines that name columns: those that hold no number."""
    return [line.split() for line in printed.splitlines() if line.strip() and not re.search(r"\d", line)]


def test_the_example_in_python_prints_these_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = README.read_text(encoding="utf-8")
    code, said = re.findall(r"```python\n(.*?)```\s+prints\s+```\n(.*?)```", text, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert headers(printed.getvalue()) == headers(said)
    assert len(printed.getvalue().splitlines()) >= 5
    assert (tmp_path / "adult.gpae").stat().st_size > 10_000
