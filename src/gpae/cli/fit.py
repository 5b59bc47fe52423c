"""``gpae fit``: from a table to a saved model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gpae.cli.options import Immutable, Json, Seed, TableFile, parse_settings
from gpae.cli.output import check_place, written_whole
from gpae.cli.terminal import print_json, progress, results
from gpae.errors import InputError

if TYPE_CHECKING:
    from gpae.table.schema import Schema
    from gpae.tabular import TabularExplainer

__all__ = ["fit"]

Text = Annotated[str | None, typer.Option(metavar="VALUE")]


def fit(
    table: TableFile,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to save the model.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The label column.")] = None,
    favourable: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The value of the label that a person wants.")
    ] = None,
    immutable: Immutable = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no feature; repeatable.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What the columns mean (.yaml, .json).")
    ] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="The method that searches plans.")] = "gpae",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter of the method; repeatable."),
    ] = None,
    scaling: Annotated[
        Literal["minmax", "robust", "quantile"], typer.Option(help="How numbers are scaled.")
    ] = "minmax",
    seed: Seed = 0,
    show_schema: Annotated[
        bool, typer.Option("--show-schema", help="Show what the columns are taken for, and stop.")
    ] = False,
    save_schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write that down, to edit and pass as --schema.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit a model to a table and save it.

    The schema (what each column means, its range, and whether it may change) is read off the table and shown;
    look at it, and correct it with --immutable, --drop or --save-schema and --schema.
    """
    from gpae.table.frames import read_table

    hyper_parameters = parse_settings(settings or ())
    _check_output(output, needed=not show_schema)
    people = read_table(table)
    meaning = _schema(people, schema, label, favourable, immutable or [], drop or [])
    if save_schema is not None:
        with written_whole(save_schema) as temporary:
            meaning.save(temporary)
    if not as_json:
        typer.echo(meaning.describe())
    if show_schema or output is None:
        if as_json:
            print_json({"schema": meaning.to_dict()})
        return
    explainer = _explainer(meaning, method, scaling, seed, hyper_parameters)
    with progress():
        explainer.fit(people)
    explainer.save(output)
    _tell(_summary(explainer, output, people.num_rows), as_json)


def _check_output(output: Path | None, *, needed: bool) -> None:
    if output is not None:
        check_place(output)
    elif needed:
        raise InputError("-o FILE is needed: where to save the model, for example -o model.gpae")


def _schema(
    people: "pa.Table",
    file: Path | None,
    label: str | None,
    favourable: str | None,
    immutable: list[str],
    drop: list[str],
) -> "Schema":
    """Return the schema of the file, or else of the table."""
    from gpae.table.schema import Schema

    if file is None:
        if label is None or favourable is None:
            raise InputError("--label COLUMN and --favourable VALUE are needed (or --schema FILE)")
        return Schema.infer(people, label=label, favourable=favourable, immutable=immutable, drop=drop)
    schema = Schema.load(file).with_fixed(immutable)
    for option, given, held in (
        ("--label", label, schema.label),
        ("--favourable", favourable, schema.favourable),
    ):
        if given is not None and given != str(held):
            raise InputError(f"{option} {given!r} contradicts the schema file, which has {held!r}")
    if drop:
        raise InputError("--drop and --schema exclude each other: only columns in the schema are used")
    return schema


def _explainer(
    schema: "Schema", method: str, scaling: "ScalingName", seed: int, hyper_parameters: dict[str, Any]
) -> "TabularExplainer":
    from gpae.tabular import TabularExplainer

    try:
        return TabularExplainer(
            label=schema.label,
            favourable=schema.favourable,
            method=method,
            schema=schema,
            scaling=scaling,
            seed=seed,
            **hyper_parameters,
        )
    except TypeError as error:  # a name the method does not know; for Python that is a wrong keyword
        raise InputError(f"--set: {error}") from error


def _summary(explainer: "TabularExplainer", output: Path, rows: int) -> dict[str, Any]:
    schema = explainer.schema_
    return {
        "model": str(output),
        "method": explainer.method,
        "rows": rows,
        "features": len(schema.names),
        "label": schema.label,
        "favourable": schema.favourable,
    }
