"""Options that several commands share, and how their values are read."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from gpae.errors import InputError

__all__ = ["Immutable", "Json", "Model", "Seed", "TableFile", "parse_settings"]

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


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` pairs; a value is JSON where it can be, text where not.

    Examples
    --------
    >>> parse_settings(["n_features=100", "beta=auto", "length_scale=0.5"])
    {'n_features': 100, 'beta': 'auto', 'length_scale': 0.5}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InputError(f"--set {pair!r} is not of the form name=value")
        if name in settings:
            raise InputError(f"--set gives {name!r} twice; remove one")
        settings[name] = _scalar(name, text)
    return settings


def _scalar(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict | list):
        raise InputError(f"--set {name}={text}: expected one number, word, true, false or null")
    return value
