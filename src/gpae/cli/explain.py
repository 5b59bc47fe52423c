"""``gpae explain``: what would have to change, for each person of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpae.cli.answers import block, by_person
from gpae.cli.options import Immutable, Json, Model, Queries, Seed
from gpae.cli.output import check_place
from gpae.cli.terminal import note, print_json, progress, results

if TYPE_CHECKING:
    import pyarrow as pa

    from gpae.answer import Answer

__all__ = ["explain"]

BAD_ROWS = 3
"""Exit code where some people could not be answered because their row could not be read."""


def explain(
    model: Model,
    queries: Queries,
    k: Annotated[int, typer.Option("-k", min=1, help="Plans asked for each person.")] = 1,
    immutable: Immutable = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the answers: .parquet, .csv or .json.")
    ] = None,
    seed: Seed = 0,
    show: Annotated[int, typer.Option(min=0, help="People to print at most, without -o.")] = 20,
    as_json: Json = False,
) -> None:
    """Answer each person of a table: what would have to change for the favourable decision.

    Exits with 3 if some rows could not be read; the others are answered all the same.
    """
    from gpae.table.frames import read_table, write_table
    from gpae.tabular import TabularExplainer

    if output is not None:
        check_place(output, (".parquet", ".csv", ".json"))
    explainer = TabularExplainer.load(model)
    people = read_table(queries)
    with progress():
        answer = explainer.explain(people, k=k, immutable=tuple(immutable or ()), seed=seed)
    if output is not None:
        write_table(answer.table, output)
    if as_json:
        print_json(_as_json(answer, output))
    elif output is None:
        _print(explainer, answer, people, show)
    _tell(answer.summary(), output)
    if answer.summary().get("bad_input"):
        raise typer.Exit(BAD_ROWS)


def _as_json(answer: "Answer", output: Path | None) -> dict[str, Any]:
    summary = {"summary": answer.summary()}
    if output is not None:
        return {**summary, "output": str(output)}
    return {**summary, "answers": answer.table.to_pylist()}


def _print(explainer: "TabularExplainer", answer: "Answer", people: "pa.Table", show: int) -> None:
    """Print the first people; the whole of a long table is for a file."""
    schema = explainer.schema_
    console = results()
    persons = by_person(answer.table.to_pylist(), people.to_pylist(), schema.names)
    for person in persons[:show]:
        console.print(block(person, f"{schema.label} = {schema.favourable}"))
    if len(persons) > show:
        note(f"{show} of {len(persons)} people shown; --show N prints more, -o FILE writes all")


def _tell(summary: dict[str, int], output: Path | None) -> None:
    counts = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in summary.items() if count)
    where = f" -> {output}" if output is not None else ""
    note(f"{counts}{where}")
