"""How an answer reads in a terminal: one block a person, one column a plan."""

from collections.abc import Callable
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from gpae.answer import Answer
    from gpae.report.demo_view import Person

__all__ = ["block", "counts", "people"]

_UNCHANGED = "·"


def people(
    answer: "Answer", queries: "pa.Table", features: tuple[str, ...], most: int, name: Callable[[int], str]
) -> "list[Person]":
    """Return the first people with their plans; ``name`` turns a position in the query into a name."""
    own = {column: answer.arrow[answer.prefix + column] for column in ("row", "found")}
    rows, found = own["row"].to_pylist(), own["found"].to_pylist()
    groups = groupby(range(len(rows)), key=lambda line: int(rows[line]))
    return [
        _person(answer, queries, features, name(row), row, [(line, found[line]) for line in lines])
        for row, lines in islice(groups, most)
    ]


def _person(
    answer: "Answer",
    queries: "pa.Table",
    features: tuple[str, ...],
    name: str,
    row: int,
    lines: list[tuple[int, bool]],
) -> "Person":
    from gpae.report.demo_view import Person

    first = lines[0][0]
    return Person(
        name=name,
        facts={feature: _text(queries[feature][row].as_py()) for feature in features},
        status=answer.arrow[answer.prefix + "status"][first].as_py(),
        reason=answer.arrow[answer.prefix + "reason"][first].as_py(),
        plans=tuple(answer.plans.view(line) for line, found in lines if found),
        refused_for=answer.plans.refused_for(row),
    )


def _text(cell: Any) -> str:
    return "missing" if cell is None else str(cell)


def block(person: "Person") -> "RenderableType":
    """Return what to print for one person."""
    from rich.console import Group
    from rich.text import Text

    from gpae.plots.numbers import percent

    if not person.plans:
        said = f"  {person.status.replace('_', ' ')}: {person.reason}\n"
        return Text.assemble((person.name, "bold"), said)
    plan = person.plans[0]
    said = f"  probability of {plan.outcome} now {percent(plan.probability_before)}"
    return Group(Text.assemble((person.name, "bold"), said), _plans(person), _sentences(person))


def _plans(person: "Person") -> "Table":
    """Return the features that some plan changes, now and in each plan."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from gpae.plots.numbers import percent

    several = len(person.plans) > 1
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("feature")
    table.add_column("now")
    for number in range(1, len(person.plans) + 1):
        table.add_column(f"plan {number}" if several else "plan")
    after = [{change.name: change.texts[1] for change in plan.changes} for plan in person.plans]
    before = {change.name: change.texts[0] for plan in person.plans for change in plan.changes}
    for feature in (name for name in person.facts if name in before):
        cells = [Text(plan.get(feature, _UNCHANGED), style="bold") for plan in after]
        table.add_row(Text(feature), Text(before[feature]), *cells)
    table.add_section()
    odds, plausible = zip(*((p.probability_after, p.plausibility) for p in person.plans), strict=True)
    table.add_row("probability", percent(person.plans[0].probability_before), *map(percent, odds))
    table.add_row("plausibility", "", *("-" if p is None else percent(p / 100) for p in plausible))
    if any(plan.survival is not None for plan in person.plans):
        table.add_row("survival", "", *("-" if p.survival is None else percent(p.survival) for p in person.plans))
    return table


def _sentences(person: "Person") -> "Text":
    """Return each plan as sentences, with the values between which the decision stays."""
    from rich.text import Text

    several = len(person.plans) > 1
    lines = [
        (f"Plan {number}: " if several else "") + " ".join(change.sentence for change in plan.changes)
        for number, plan in enumerate(person.plans, 1)
    ]
    if person.refused_for:
        lines.append(f"Refused mainly for {person.refused_for}.")
    return Text("\n".join(lines) + "\n", style="dim")


def counts(summary: dict[str, int]) -> str:
    """Return the counts by status in words.

    Examples
    --------
    >>> counts({"already_favourable": 1, "found": 4})
    '1 already favourable, 4 found'
    """
    return ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in summary.items())
