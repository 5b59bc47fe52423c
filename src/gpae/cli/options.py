"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Immutable", "Json", "Model", "Queries", "Seed", "TableFile"]

_TABLES = ".csv, .csv.gz, .parquet, or a folder of parquet files"

Json = Annotated[bool, typer.Option("--json", help="Print machine-readable output.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Seed of every random draw.")]
Immutable = Annotated[
    list[str] | None,
    typer.Option("--immutable", metavar="COLUMN", help="A feature that no plan may change; repeatable."),
]
TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help=f"The training table: {_TABLES}.")]
Queries = Annotated[Path, typer.Argument(metavar="QUERIES", help=f"The people to answer: {_TABLES}.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `gpae fit` saved.")]
