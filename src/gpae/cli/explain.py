"""``gpae explain``: what would have to change, for each person of a table."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gpae.cli.answers import block, counts, people
from gpae.cli.options import Immutable, Json, Model, Queries, Seed
from gpae.cli.own_model import OwnModel, imported
from gpae.cli.rules import read_rules
from gpae.cli.terminal import note, print_json, progress, results
from gpae.files import check_place, written_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from gpae.answer import Answer

__all__ = ["explain"]

Preference = Literal["plausible", "near", "sparse"]
BAD_ROWS = 3
"""Exit code where some rows could not be read, and all others were answered."""


def explain(
    model: Model,
    queries: Queries,
    own_model: OwnModel = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Plans asked for each person.")] = 1,
    immutable: Immutable = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the answers: .parquet, .csv or .json."),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="What plans must obey: 'debt <= 0.4 * income', a JSON object, or a file with a list; repeatable.",
        ),
    ] = None,
    prefer: Annotated[
        Preference | None, typer.Option("--prefer", help="What makes a plan good; default: the method's own way.")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option("--deadline", metavar="SECONDS", help="Stop then; who is left is a timeout.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option("--margin", metavar="LOGITS", help="How far beyond the boundary plans must be.")
    ] = None,
    survival: Annotated[
        float | None,
        typer.Option("--survival", metavar="SHARE", help="Least share of retrained models that must agree."),
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option("--words", metavar="FILE", help="Write each change as a sentence with its valid range, too."),
    ] = None,
    reasons: Annotated[
        Path | None,
        typer.Option("--reasons", metavar="FILE", help="Write why the model refuses each person, too."),
    ] = None,
    proofs: Annotated[
        Path | None,
        typer.Option("--proofs", metavar="FILE", help="Write the proofs of who has no plan (.json), too."),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", metavar="FOLDER", help="Draw the plans of the first people (see --show) as .png."),
    ] = None,
    seed: Seed = 0,
    show: Annotated[int, typer.Option(metavar="N", min=0, help="How many people to print or draw at most.")] = 20,
    as_json: Json = False,
) -> None:
    """Tell each person of a table what would have to change for the favourable decision.

    Exits with 3 if some rows could not be read; the others are answered all the same.
    """
    from gpae.table.frames import read_table, write_table
    from gpae.tabular import TabularExplainer

    for place in (output, words, reasons):
        if place is not None:
            check_place(place, (".parquet", ".csv", ".json"))
    if proofs is not None:
        check_place(proofs, (".json",))
    explainer = TabularExplainer.load(model, None if own_model is None else imported(own_model))
    table = read_table(queries)
    with progress():
        answer = explainer.explain(
            table,
            k=k,
            immutable=tuple(immutable or ()),
            constraints=read_rules(rule or ()),
            seed=seed,
            deadline=deadline,
            prefer=prefer,
            margin=margin,
            survival=survival,
        )
        if output is not None:
            write_table(answer.arrow, output)
        if words is not None:
            write_table(answer.arrow_sentences, words)
        if reasons is not None:
            write_table(answer.arrow_reasons, reasons)
        if proofs is not None:
            with written_whole(proofs) as temporary:
                temporary.write_text(json.dumps(answer.certificates, indent=1) + "\n", encoding="utf-8")
        if plots is not None:
            _draw(answer, plots, show)
    if as_json:
        print_json(_as_json(answer, output))
    elif output is None:
        _print(answer, table, explainer.schema_.names, show)
    note(counts(answer.summary()) + (f"; written to {output}" if output is not None else ""))
    if "bad_input" in answer.summary():
        raise typer.Exit(BAD_ROWS)


def _as_json(answer: "Answer", output: Path | None) -> dict[str, Any]:
    said: dict[str, Any] = {"summary": answer.summary(), "proofs": answer.certificates}
    return said | ({"output": str(output)} if output is not None else {"answers": answer.arrow.to_pylist()})


def _draw(answer: "Answer", folder: Path, show: int) -> None:
    """Draw the plans of the first people, one file each."""
    from gpae.plots.style import to_png

    folder.mkdir(parents=True, exist_ok=True)
    for line in answer.arrow.to_pylist():
        row, plan, found = (line[answer.prefix + name] for name in ("row", "plan", "found"))
        if found and row < show:
            with written_whole(folder / f"row-{row}-plan-{plan}.png") as temporary:
                temporary.write_bytes(to_png(answer.plot(row, plan)))


def _print(answer: "Answer", queries: "pa.Table", features: tuple[str, ...], show: int) -> None:
    """Print the first people; a long table is better read in a file."""
    console = results()
    for person in people(answer, queries, features, show, "Row {}".format):
        console.print(block(person))
    if queries.num_rows > show:
        note(f"{show} of {queries.num_rows:,} people shown; --show N prints more, -o FILE writes all")
