"""How an answer reads in a terminal: one block a person, one column a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from gpae.cli.terminal import plain_number

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["Person", "block", "by_person"]

_UNCHANGED = "·"


@dataclass(frozen=True, slots=True)
class Person:
    """One query row and the lines that answer it.

    Parameters
    ----------
    row
        Position in the query table.
    now
        The person's features as asked.
    lines
        This person's lines of ``answer.table``.
    """

    row: int
    now: dict[str, Any]
    lines: list[dict[str, Any]]

    @property
    def plans(self) -> list[dict[str, Any]]:
        """The lines that hold a verified plan."""
        return [line for line in self.lines if line["found"]]

    @property
    def changed(self) -> list[str]:
        """The features that at least one plan changes."""
        return [name for name in self.now if any(_differs(plan[name], self.now[name]) for plan in self.plans)]


def by_person(
    lines: Sequence[dict[str, Any]], queries: Sequence[dict[str, Any]], features: Sequence[str]
) -> list[Person]:
    """Group the lines of ``answer.table`` by the person they answer."""
    return [
        Person(row, {name: queries[row][name] for name in features}, list(group))
        for row, group in groupby(lines, key=lambda line: int(line["row"]))
    ]


def block(person: Person, wanted: str) -> "RenderableType":
    """Return what to print for one person; ``wanted`` says what a plan leads to."""
    from rich.console import Group
    from rich.text import Text

    head = Text.assemble((f"person {person.row}", "bold"), f"  {_outcome(person, wanted)}")
    return Group(head, _plans(person)) if person.plans else Group(head, "")


def _outcome(person: Person, wanted: str) -> str:
    first = person.lines[0]
    if person.plans:
        count = len(person.plans)
        return f"{count} plan{'s' if count > 1 else ''} to {wanted}"
    reason = f": {first['reason']}" if first["reason"] else ""
    return f"{str(first['status']).replace('_', ' ')}{reason}"


def _plans(person: Person) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("feature", no_wrap=True)
    table.add_column("now")
    for number, _ in enumerate(person.plans, start=1):
        table.add_column("plan" if len(person.plans) == 1 else f"plan {number}", style="bold")
    for name in person.changed:
        cells = [_cell(plan[name], person.now[name]) for plan in person.plans]
        table.add_row(name, plain_number(person.now[name]), *cells)
    table.add_section()
    table.add_row("probability", "", *(f"{plan['probability']:.3f}" for plan in person.plans), style="dim")
    table.add_row("plausibility", "", *(_percentile(plan) for plan in person.plans), style="dim")
    return table


def _cell(value: Any, now: Any) -> str:
    return plain_number(value) if _differs(value, now) else _UNCHANGED


def _differs(value: Any, now: Any) -> bool:
    return plain_number(value) != plain_number(now)


def _percentile(plan: dict[str, Any]) -> str:
    value = plan["plausibility"]
    return "-" if value is None or value != value else f"{value:.0f} of 100"
