"""Tables of figures on the terminal."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from gpae.benchmark.peers.conditions import Condition

__all__ = ["conditions_table", "figures_table", "plain_table"]


def plain_table(first: str, *others: str) -> "Table":
    """A table with a column of names and columns of figures."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, style="bold")
    for name in others:
        table.add_column(name, justify="right")
    return table


def figures_table(figures: "pd.DataFrame") -> "Table":
    """A table of figures as it is."""
    table = plain_table(*map(str, figures.columns))
    for line in figures.itertuples(index=False):
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in line))
    return table


def conditions_table(conditions: "list[Condition]") -> "Table":
    """What was to hold, the figure, and whether it does."""
    table = plain_table("condition", "figure", "")
    for one in conditions:
        table.add_row(one.condition, one.figure, "holds" if one.holds else "FAILS")
    return table
