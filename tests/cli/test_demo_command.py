"""``gpae demo``, on a small part of the data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpae import TabularExplainer
from gpae.cli import demo as command

Run = Callable[..., Any]


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows and a smaller model."""
    whole, init = command._adult, TabularExplainer.__init__

    def few(seed: int) -> Any:
        train = whole(seed)[0]
        train = train.take(list(range(0, train.num_rows, 50)))
        return train, train.slice(0, 200), train.slice(200, 200)  # no level that the few rows have not seen

    def tiny(self: TabularExplainer, **options: Any) -> None:
        init(self, **options, n_features=100, density_features=50, max_epochs=3, beta=0.1)

    monkeypatch.setattr(command, "_adult", few)
    monkeypatch.setattr(TabularExplainer, "__init__", tiny)


@pytest.mark.usefixtures("small_demo")
def test_the_demo_answers_people_and_writes_a_page(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    ended = run("demo", "-o", page, "--people", "3", "--json")
    assert ended.code == 0, ended.stderr
    answered = json.loads(ended.stdout)
    assert sum(answered["summary"].values()) == 3
    assert {line["row"] for line in answered["answers"]} == {0, 1, 2}
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("place", ["absent/report.html", "report.pdf"])
def test_a_wrong_place_for_the_page_is_refused_before_the_work(run: Run, tmp_path: Path, place: str) -> None:
    assert run("demo", "-o", tmp_path / place).code == 2
