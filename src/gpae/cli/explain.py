"""``gpae explain``: what would have to change, for each person of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpae.cli.answers import block, counts, people
from gpae.cli.options import Immutable, Json, Model, Queries, Seed
from gpae.cli.terminal import note, print_json, progress, results
from gpae.files import check_place

if TYPE_CHECKING:
    import pyarrow as pa

    from gpae.answer import Answer

__all__ = ["explain"]

BAD_ROWS = 3
"""Exit code where some rows could not be read, and all others were answered."""


def explain(
    model: Model,
    queries: Queries,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Plans asked for each person.")] = 1,
    immutable: Immutable = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the answers: .parquet, .csv or .json."),
    ] = None,
    seed: Seed = 0,
    show: Annotated[int, typer.Option(metavar="N", min=0, help="How many people to print at most (without -o).")] = 20,
    as_json: Json = False,
) -> None:
    """Tell each person of a table what would have to change for the favourable decision.

    Exits with 3 if some rows could not be read; the others are answered all the same.
    """
    from gpae.table.frames import read_table, write_table
    from gpae.tabular import TabularExplainer

    if output is not None:
        check_place(output, (".parquet", ".csv", ".json"))
    explainer = TabularExplainer.load(model)
    table = read_table(queries)
    with progress():
        answer = explainer.explain(table, k=k, immutable=tuple(immutable or ()), seed=seed)
    if output is not None:
        write_table(answer.arrow, output)
    if as_json:
        print_json(_as_json(answer, output))
    elif output is None:
        _print(answer, table, explainer.schema_.names, show)
    note(counts(answer.summary()) + (f"; written to {output}" if output is not None else ""))
    if "bad_input" in answer.summary():
        raise typer.Exit(BAD_ROWS)


def _as_json(answer: "Answer", output: Path | None) -> dict[str, Any]:
    if output is not None:
        return {"summary": answer.summary(), "output": str(output)}
    return {"summary": answer.summary(), "answers": answer.arrow.to_pylist()}


def _print(answer: "Answer", queries: "pa.Table", features: tuple[str, ...], show: int) -> None:
    """Print the first people; a long table is better read in a file."""
    console = results()
    for person in people(answer, queries, features, show, "Row {}".format):
        console.print(block(person))
    if queries.num_rows > show:
        note(f"{show} of {queries.num_rows:,} people shown; --show N prints more, -o FILE writes all")
