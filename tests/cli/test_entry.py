"""``gpae``: help, version, and what becomes of an error."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from gpae import __version__, datasets
from gpae.errors import InputError

Run = Callable[..., Any]
Python = Callable[[str], str]

HEAVY = {"torch", "sklearn", "scipy", "pandas", "polars", "pyarrow", "numpy", "matplotlib", "narwhals"}
COMMANDS = ["demo", "fit", "explain", "data", "doctor"]


def test_the_command_line_loads_nothing_heavy(python: Python) -> None:
    loaded = set(python("import gpae.cli, sys; print(*sys.modules)").split())
    assert "gpae.cli.fit" in loaded
    assert not HEAVY & loaded


def test_help_takes_less_than_half_a_second(python: Python) -> None:
    def seconds() -> float:
        start = time.perf_counter()
        python("from gpae.cli import main; main(['--help'])")
        return time.perf_counter() - start

    assert min(seconds() for _ in range(5)) < 0.5  # the least: the machine may be busy with something else


def test_help_lists_the_commands(run: Run) -> None:
    shown = run("--help")
    assert shown.code == 0
    assert all(word in shown.stdout for word in [*COMMANDS, "--version", "--debug"])


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(run: Run, command: str) -> None:
    assert run(command, "--help").code == 0


def test_version_is_printed(run: Run) -> None:
    assert run("--version").stdout == f"gpae {__version__}\n"


@pytest.mark.parametrize("words", [["no-such-command"], ["explain"], ["fit", "x.csv", "--scaling", "odd"]])
def test_a_wrong_command_line_ends_with_2(run: Run, words: list[str]) -> None:
    assert run(*words).code == 2


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """A function that makes ``gpae data path`` raise an error."""

    def arrange(error: BaseException) -> None:
        def load(name: str) -> None:
            raise error

        monkeypatch.setattr(datasets, "load", load)

    return arrange


def test_an_error_the_user_can_mend_is_one_message(run: Run, breaks: Callable[..., None]) -> None:
    breaks(InputError("column 'age' is wrong"))
    ended = run("data", "path", "adult")
    assert (ended.code, ended.stdout, ended.stderr) == (2, "", "error: column 'age' is wrong\n")


def test_a_fault_of_ours_says_so_without_a_traceback(run: Run, breaks: Callable[..., None]) -> None:
    breaks(RuntimeError("the sky fell"))
    ended = run("data", "path", "adult")
    assert ended.code == 1
    assert "RuntimeError: the sky fell" in ended.stderr
    assert "fault of ours" in ended.stderr
    assert "--debug" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_debug_shows_where_at_any_place_in_the_line(run: Run, breaks: Callable[..., None]) -> None:
    breaks(RuntimeError("the sky fell"))
    for words in (["--debug", "data", "path", "adult"], ["data", "path", "adult", "--debug"]):
        ended = run(*words)
        assert ended.code == 1
        assert "Traceback" in ended.stderr


def test_an_interrupt_ends_with_130_and_a_word(run: Run, breaks: Callable[..., None]) -> None:
    breaks(KeyboardInterrupt())
    ended = run("data", "path", "adult")
    assert (ended.code, ended.stderr) == (130, "interrupted\n")
