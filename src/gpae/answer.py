"""The answer to a table of people: a long table in the user's units, and what can be asked of it."""

import html
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpae.errors import InputError
from gpae.plots.plan import plan as draw_plan
from gpae.plots.plan_view import PlanView
from gpae.table.frames import FrameKind, from_arrow, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["OWN_COLUMNS", "Answer"]

OWN_COLUMNS = (
    "row", "plan", "status", "found",
    "probability", "distance", "changes", "log_density", "plausibility", "reason", "cost",
)  # fmt: skip
"""Our columns; the features stand between ``found`` and ``probability``."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Plans for the people asked about.

    Parameters
    ----------
    arrow
        The long table, one line a plan, at least one a person.
    arrow_changes
        One line a changed feature.
    kind
        Which library's frames ``table`` and ``changes`` are: the one of the query.
    prefix
        In front of our own column names, where a feature has one of them.
    view
        Gives the picture's view of one plan: ``view(line)``.
    """

    arrow: pa.Table
    arrow_changes: pa.Table
    kind: FrameKind
    prefix: str
    view: Callable[[int], PlanView]

    @property
    def table(self) -> Any:
        """Row, plan, status and found; every feature in the user's units; then the figures of the plan."""
        return from_arrow(self.arrow, self.kind)

    @property
    def changes(self) -> Any:
        """Only what changes: row, plan, feature, before, after."""
        return from_arrow(self.arrow_changes, self.kind)

    def _own(self, name: str) -> list[Any]:
        return list(self.arrow[self.prefix + name].to_pylist())

    def summary(self) -> dict[str, int]:
        """How many people ended with each status."""
        first = dict(zip(self._own("row")[::-1], self._own("status")[::-1], strict=True))
        return dict(sorted(Counter(first.values()).items()))

    def plot(self, row: int = 0, plan: int = 0) -> "Figure":
        """One person's plan: from where, to where, and where others lie."""
        for line, key in enumerate(zip(self._own("row"), self._own("plan"), self._own("found"), strict=True)):
            if key == (row, plan, True):
                return draw_plan(self.view(line))
        reasons = [r for at, r in zip(self._own("row"), self._own("reason"), strict=True) if at == row]
        if not reasons:
            raise InputError(f"there is no row {row}: the query has {len(set(self._own('row')))} rows")
        raise InputError(f"row {row} has no plan {plan} to draw{': ' + reasons[0] if reasons[0] else ''}")

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write the long table as Parquet, whole or not at all."""
        self._write(path, ".parquet")

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write the long table as JSON records, whole or not at all."""
        self._write(path, ".json")

    def _write(self, path: str | PathLike[str], suffix: str) -> None:
        if not str(path).lower().endswith(suffix):
            raise InputError(f"output {str(path)!r} must end in {suffix}")
        write_table(self.arrow, str(path))

    def _repr_html_(self) -> str:
        """One small table a person, for notebooks."""
        lines = ["<table><tr><th>row</th><th>plan</th><th>feature</th><th>now</th><th>then</th></tr>"]
        for change in self.arrow_changes.to_pylist():
            cells = (change["row"], change["plan"], change["feature"], change["before"], change["after"])
            lines.append("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in cells) + "</tr>")
        counts = ", ".join(f"{status}: {n}" for status, n in self.summary().items())
        return "".join(lines) + f"</table><p>{html.escape(counts)}</p>"
