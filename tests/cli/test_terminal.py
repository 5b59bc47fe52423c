"""How far the work is, in a log and on a terminal."""

import io
from collections.abc import Iterator

from rich.console import Console

from gpae.cli.terminal import _bars, _draw, _log, _span


def lines(shares: list[tuple[float, float]]) -> list[str]:
    """What a log says when (second, share) is reported."""
    text = io.StringIO()
    clock: Iterator[float] = iter([second for second, _ in shares])
    tell = _log(Console(file=text, width=100), now=lambda: next(clock))
    for _, share in shares:
        tell("running", share)
    return text.getvalue().splitlines()


def test_a_log_tells_a_line_a_minute_with_the_time_left() -> None:
    told = lines([(0, 0.0), (30, 0.05), (60, 0.1), (90, 0.2), (125, 0.5), (600, 0.5)])
    assert told == ["running ...", "running: 10%, about 9 min left", "running: 50%, about 2 min left"]


def test_what_was_finished_before_took_no_time() -> None:
    assert lines([(0, 0.8), (100, 0.9)])[-1] == "running: 90%, about 2 min left"


def test_the_same_work_over_again_has_a_clock_of_its_own() -> None:
    told = lines([(0, 0.0), (50, 1.0), (3600, 0.0), (3670, 0.5)])
    assert told == ["running ...", "running ...", "running: 50%, about 70 s left"]


def test_spans_are_in_words() -> None:
    assert [_span(s) for s in (7.2, 99, 130, 5 * 3600 + 300)] == ["7 s", "99 s", "2 min", "5 h 05 min"]


def test_bars_say_how_much_time_is_left() -> None:
    text = io.StringIO()
    seconds = iter(range(1000))
    with _bars(Console(file=text, force_terminal=True, width=120)) as bars:
        bars.get_time = lambda: float(next(seconds))  # type: ignore[method-assign]
        move = _draw(bars)
        for share in (0.1, 0.2, 0.3, 0.5):
            move("running", share)
        task = bars.tasks[0]
        assert task.time_remaining is not None
        assert task.time_remaining > 0
    assert "left" in text.getvalue()


def test_a_bar_starts_afresh_with_the_same_work_over_again() -> None:
    seconds = iter(range(1000))
    with _bars(Console(file=io.StringIO(), force_terminal=True, width=120)) as bars:
        bars.get_time = lambda: float(next(seconds))  # type: ignore[method-assign]
        move = _draw(bars)
        for share in (0.1, 1.0):
            move("training", share)
        first = bars.tasks[0].start_time
        move("training", 0.2)
        assert bars.tasks[0].completed == 0.2
        again = bars.tasks[0].start_time
        assert first is not None
        assert again is not None
        assert again > first
