"""A user's own model on the command line: a Python object that can be imported."""

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gpae.errors import InputError

__all__ = ["OwnModel", "imported"]

OwnModel = Annotated[
    str | None,
    typer.Option(
        "--own-model",
        metavar="MODULE:NAME",
        help="The model to explain, where it is one's own: a Python object, imported from here.",
    ),
]


def imported(place: str) -> Any:
    """Import an object, from the folder of the call or from wherever Python looks; what cannot be is an error."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise InputError(
            f"--own-model {place!r}: write MODULE:NAME, such as scoring:pipeline for pipeline in scoring.py"
        )
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # a module may raise anything
        raise InputError(f"--own-model {place!r} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    return found
