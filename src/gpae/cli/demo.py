"""``gpae demo``: the whole way once, on data that ship with the package."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpae.cli.answers import block, by_person
from gpae.cli.options import Json, Seed
from gpae.cli.output import check_place, written_whole
from gpae.cli.terminal import note, print_json, progress, results

if TYPE_CHECKING:
    import pyarrow as pa

    from gpae.answer import Answer
    from gpae.tabular import TabularExplainer

__all__ = ["demo"]

PLANS = 3


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the report.")
    ] = Path("report.html"),
    people: Annotated[int, typer.Option(min=1, help="How many refused people to answer.")] = 5,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit on the embedded Adult data, answer refused people, print it and write a report."""
    check_place(output, (".html", ".htm"))
