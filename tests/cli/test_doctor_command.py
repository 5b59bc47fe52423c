"""``gpae doctor``: a verdict, for people and for programs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gpae import TabularExplainer, __version__

Run = Callable[..., Any]


def test_a_sound_machine_is_ok(run: Run) -> None:
    ended = run("doctor", "--json")
    found = json.loads(ended.stdout)
    assert ended.code == 0, found["self_test"]
    assert found["self_test"]["ok"]
    assert found["versions"]["gpae"] == __version__
    assert found["data"]["adult"] == "package"
    assert found["devices"]["cpu_threads"] >= 1


def test_a_failing_self_test_ends_with_1_and_says_why(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: TabularExplainer, train: Any) -> None:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(TabularExplainer, "fit", fail)
    ended = run("doctor")
    assert ended.code == 1
    assert "FAIL RuntimeError: no such instruction" in ended.stdout
