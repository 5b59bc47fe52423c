"""What commands print: results on stdout, progress on stderr, colours only on a terminal."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from gpae.progress import listening

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress

__all__ = ["grid", "note", "print_json", "progress", "results"]

_PIPE_WIDTH = 100
_LINE_EVERY = 60.0
"""Seconds between two lines of a log about the same stage."""
_HOUR = 3600.0


def results() -> "Console":
    """Return where results go: as wide as the terminal, and 100 columns in a file or a pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def note(message: str) -> None:
    """Say something beside the result: on stderr, so that stdout holds the result alone."""
    typer.echo(message, err=True)


def print_json(value: object) -> None:
    """Print a value as JSON that any reader accepts: no NaN, no infinity."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def grid(rows: "list[tuple[str, RenderableType]]") -> "RenderableType":
    """Return two columns: a name and what there is to say about it."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


@contextmanager
def progress() -> Iterator[None]:
    """Show on stderr how far the work inside the block is: a bar a stage, or in a log a line a stage and minute."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        with listening(_log(console)):
            yield
        return
    with _bars(console) as bars, listening(_draw(bars)):
        yield


def _log(console: "Console", now: Callable[[], float] = time.monotonic) -> Any:
    begun: dict[str, tuple[float, float]] = {}
    told: dict[str, tuple[float, float]] = {}
    reached: dict[str, float] = {}

    def tell(stage: str, share: float) -> None:
        at = now()
        before, reached[stage] = reached.get(stage), share
        if before is None or share < before:
            # the first time, or the same work over again; a study that is resumed begins with a share that took no time
            begun[stage] = told[stage] = (at, share)
            console.print(f"{stage} ...", markup=False)
        elif at - told[stage][0] >= _LINE_EVERY and share > told[stage][1]:
            told[stage] = (at, share)
            start, done = begun[stage]
            left = (1.0 - share) * (at - start) / (share - done)
            console.print(f"{stage}: {share:.0%}, about {_span(left)} left", markup=False)

    return tell


def _span(seconds: float) -> str:
    """Say how long in words: ``40 s``, ``12 min``, ``1 h 05 min``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def _bars(console: "Console") -> "Progress":
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    left = TextColumn("left"), TimeRemainingColumn()
    # A result printed meanwhile must stay on stdout. Cells of a study end in bursts: the rate is that of an hour.
    return Progress(*columns, *left, console=console, redirect_stdout=False, speed_estimate_period=_HOUR)


def _draw(bars: "Progress") -> Any:
    tasks: dict[str, Any] = {}
    reached: dict[str, float] = {}

    def move(stage: str, share: float) -> None:
        if stage not in tasks:
            for earlier in tasks.values():  # stopped early, which is no failure
                bars.update(earlier, completed=1.0)
            tasks[stage] = bars.add_task(stage, total=1.0)
        if share < reached.get(stage, share):  # the same work over again
            bars.reset(tasks[stage])
        reached[stage] = share
        bars.update(tasks[stage], completed=share)

    return move
