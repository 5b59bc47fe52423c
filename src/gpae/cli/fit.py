"""``gpae fit``: from a table to a saved model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gpae.cli.options import Immutable, Json, Seed, TableFile
from gpae.cli.own_model import OwnModel, imported
from gpae.cli.quality import quality
from gpae.cli.settings import check_settings, parse_settings
from gpae.cli.terminal import print_json, progress
from gpae.errors import InputError
from gpae.files import check_place, written_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from gpae.table.schema import Schema
    from gpae.tabular import TabularExplainer

__all__ = ["fit"]


def fit(
    table: TableFile,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The label column.")] = None,
    favourable: Annotated[
        str | None, typer.Option(metavar="VALUE", help="The value of the label that a person wants.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to save the model.")
    ] = None,
    immutable: Immutable = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no feature; repeatable.")
    ] = None,
    schema_file: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="What the columns mean (.yaml, .json); else inferred."),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Rows to choose and stop by; else a tenth of the training table."),
    ] = None,
    own_model: OwnModel = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="The method that searches plans.")] = "gpae",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter of the method; repeatable."),
    ] = None,
    scaling: Annotated[
        Literal["minmax", "robust", "quantile"], typer.Option(help="How numbers are scaled.")
    ] = "minmax",
    seed: Seed = 0,
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="In front of the answer's own columns, if a feature has one's name.")
    ] = "",
    show_schema: Annotated[
        bool, typer.Option("--show-schema", help="Show what the columns are taken for, and stop.")
    ] = False,
    save_schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write that down (.yaml, .json), to edit it for --schema.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit a model to a table and save it; or learn to explain a model that exists.

    What each column means, its range and whether it may change is read off the table and shown. Correct it with
    --immutable and --drop, or write it down with --save-schema, edit it, and pass it as --schema.
    """
    from gpae.table.frames import read_table
    from gpae.table.schema import SCHEMA_ENDINGS

    _check_output(output, needed=not show_schema)
    if save_schema is not None:
        check_place(save_schema, SCHEMA_ENDINGS)
    hyper_parameters = parse_settings(settings or ())
    people = read_table(table)
    schema = _schema(people, schema_file, label, favourable, immutable or [], drop or [])
    held_out = None if validation is None else read_table(validation)
    options: dict[str, Any] = {"method": method, "scaling": scaling, "seed": seed, "prefix": prefix}
    explainer = _explainer(schema, hyper_parameters, **options)
    _show(schema, save_schema, as_json=as_json and show_schema, quiet=as_json)
    if output is None or show_schema:
        return
    with progress():
        if own_model is None:
            explainer.fit(people, validation=held_out)
        else:
            explainer = _explaining(imported(own_model), people, held_out, schema, options | hyper_parameters)
    explainer.save(output)
    _tell(_summary(explainer, output, people, held_out), as_json)


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

    if file is not None:
        return _from_file(Schema.load(file), label, favourable, drop).with_fixed(immutable)
    if label is None or favourable is None:
        raise InputError("--label COLUMN and --favourable VALUE are needed (or --schema FILE)")
    return Schema.infer(people, label=label, favourable=favourable, immutable=immutable, drop=drop)


def _from_file(schema: "Schema", label: str | None, favourable: str | None, drop: list[str]) -> "Schema":
    """Refuse options that contradict the file, instead of letting one of the two win silently."""
    if label not in (None, schema.label):
        raise InputError(f"--label {label!r} contradicts the schema file, whose label is {schema.label!r}")
    if favourable not in (None, str(schema.favourable)):
        raise InputError(f"--favourable {favourable!r} contradicts the schema file, which has {schema.favourable!r}")
    if drop:
        raise InputError("--drop has no use beside --schema: only the columns in the schema are features")
    return schema


def _explainer(schema: "Schema", hyper_parameters: dict[str, Any], **options: Any) -> "TabularExplainer":
    from gpae.explainers import EXPLAINERS
    from gpae.models.gp_autoencoder import GPAEClassifier
    from gpae.tabular import TabularExplainer

    try:
        explainer = TabularExplainer(
            label=schema.label, favourable=schema.favourable, schema=schema, **options, **hyper_parameters
        )
    except TypeError as error:  # a name that the method does not know, which for Python is a wrong keyword
        raise InputError(f"--set: {error}") from error
    check_settings(hyper_parameters, EXPLAINERS[explainer.method], GPAEClassifier)
    return explainer


def _explaining(
    model: Any, people: "pa.Table", held_out: "pa.Table | None", schema: "Schema", options: dict[str, Any]
) -> "TabularExplainer":
    """Learn to explain a model, which is asked with pandas frames."""
    from gpae.tabular import TabularExplainer

    frames = [None if table is None else table.to_pandas() for table in (people, held_out)]
    return TabularExplainer.explaining(
        model,
        frames[0],
        validation=frames[1],
        label=schema.label,
        favourable=schema.favourable,
        schema=schema,
        **options,
    )


def _show(schema: "Schema", file: Path | None, *, as_json: bool, quiet: bool) -> None:
    if file is not None:
        with written_whole(file) as temporary:
            schema.save(temporary)
    if as_json:
        print_json({"schema": schema.to_dict()})
    elif not quiet:
        typer.echo(f"{schema.describe()}\n")


def _summary(
    explainer: "TabularExplainer", output: Path, people: "pa.Table", held_out: "pa.Table | None"
) -> dict[str, Any]:
    schema = explainer.schema_
    measured = None if held_out is None else quality(explainer, held_out)
    fidelity = explainer.fidelity_
    return {
        "model": str(output),
        "method": explainer.method,
        "rows": people.num_rows,
        "features": len(schema.names),
        "fixed": [feature.name for feature in schema.features if feature.change == "fixed"],
        "validation_accuracy": measured and measured.accuracy,
        "validation_auc": measured and measured.auc,
        "agreement": fidelity and fidelity.agreement,
        "beta": getattr(explainer.method_, "beta_", None),  # of methods that weigh a density
        "schema": schema.to_dict(),
    }


def _tell(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    fixed = ", ".join(summary["fixed"]) or "none"
    lines = [f"{summary['method']} fitted to {summary['rows']:,} rows, {summary['features']} features (fixed: {fixed})"]
    if summary["agreement"] is not None:
        lines.append(f"the surrogate decides as the model does on {summary['agreement']:.1%} of held-out rows")
    if summary["validation_accuracy"] is not None:
        auc = summary["validation_auc"]
        area = "" if auc is None else f", AUC {auc:.3f}"
        lines.append(f"validation accuracy {summary['validation_accuracy']:.3f}{area}")
    if summary["beta"] is not None:
        lines.append(f"weight of the density (beta) {summary['beta']:g}")
    lines.append(f"saved to {summary['model']}")
    typer.echo("\n".join(lines))
