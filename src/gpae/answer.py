"""The answer to a table of people: a long table in the user's units, and what can be asked of it."""

import html
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpae.arguments import a_count, a_seed
from gpae.errors import InputError
from gpae.plots.plan import plan as draw_plan
from gpae.table.frames import FrameKind, from_arrow, write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gpae.written_plans import WrittenPlans

__all__ = ["OWN_COLUMNS", "Answer"]

OWN_COLUMNS = (
    "row", "plan", "status", "found",
    "probability", "distance", "changes", "log_density", "plausibility", "reason", "calibrated", "survival", "cost",
)  # fmt: skip
"""Our columns; the features stand between ``found`` and ``probability``."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Plans for the people asked about.

    Parameters
    ----------
    arrow
        The long table, one line a plan, at least one a person.
    plans
        The plans behind it, which can be asked for more.
    kind
        Which library's frames the tables are: the one of the query.
    prefix
        In front of our own column names, where a feature has one of them.
    """

    arrow: pa.Table
    plans: "WrittenPlans"
    kind: FrameKind
    prefix: str

    @cached_property
    def arrow_changes(self) -> pa.Table:
        """One line a changed feature."""
        return self.plans.changes()

    @property
    def table(self) -> Any:
        """Row, plan, status and found; every feature in the user's units; then the figures of the plan."""
        return from_arrow(self.arrow, self.kind)

    @property
    def changes(self) -> Any:
        """Only what changes: row, plan, feature, before, after."""
        return from_arrow(self.arrow_changes, self.kind)

    @property
    def sentences(self) -> Any:
        """The changes in words: row, plan, feature, low, high, range, sentence.

        ``low`` and ``high`` are the values between which a number may lie, in the user's units, with all other changes
        as in the plan; the model was asked along that range, which takes a moment.
        """
        return from_arrow(self.arrow_sentences, self.kind)

    @cached_property
    def arrow_sentences(self) -> pa.Table:
        """:attr:`sentences` as an Arrow table."""
        return self.plans.told()

    @property
    def reasons(self) -> Any:
        """Why the model refuses: row, feature, value, usual, weight, each person's weightiest reason first.

        These are no advice: what weighs most may be what cannot change. ``usual`` is what favoured people mostly have,
        ``weight`` by how much the logit rises, on average, with their values in this feature alone.
        """
        return from_arrow(self.arrow_reasons, self.kind)

    @cached_property
    def arrow_reasons(self) -> pa.Table:
        """:attr:`reasons` as an Arrow table."""
        return self.plans.refused()

    @property
    def certificates(self) -> dict[int, dict[str, Any]]:
        """The proof for each person who has no plan, by row: on what ground, and the figures to check it."""
        return self.plans.certificates()

    def program(self, row: int) -> str:
        """The program behind one person's proof in the LP format, for any other solver to check.

        Its largest value lies, by more than its error, not above the score that a yes needs; its first line says both.
        """
        return self.plans.program(row)

    def challenge(self, row: int, draws: int = 10_000, seed: int = 0) -> dict[str, Any]:
        """Try to refute one person's proof: draw allowed rows at random, and ask the model itself about each.

        Returns how many were ``asked`` about, the ``best`` logit and ``best_row`` among them, the logit that is
        ``needed``, and whether the proof ``holds``.
        """
        return self.plans.challenge(row, a_count(draws, "draws", "row"), a_seed(seed))

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
                return draw_plan(self.plans.view(line))
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
