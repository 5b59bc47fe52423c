"""What the commands of studies are asked, and the folder that they write into."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpae.errors import InputError

__all__ = [
    "Compared",
    "Environments",
    "Output",
    "Rounds",
    "Rows",
    "Seeds",
    "Threads",
    "Workers",
    "command_line",
    "split",
    "study_folder",
]

Output = Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the study's folder goes.")]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="Processes side by side; default: one a core.")
]
Seeds = Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="How many seeds.")]
Rows = Annotated[int, typer.Option("--rows", metavar="N", min=2, help="At most so many test rows.")]
Compared = Annotated[int, typer.Option("--rows", metavar="N", min=1, help="Refused people whose answers are compared.")]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="In how many rounds, each timed by itself.")]
Threads = Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads of everybody's mathematics.")]
Environments = Annotated[
    Path | None,
    typer.Option(
        "--environments",
        metavar="FOLDER",
        help="Where the peers' virtual environments are, or are to be made; default: gpae's cache.",
    ),
]


def command_line() -> list[str]:
    """What was asked, as a study's record holds it: without where on this machine the peers live."""
    words, said = iter(sys.argv[1:]), ["gpae"]
    for word in words:
        if word == "--environments":
            next(words, None)
        elif not word.startswith("--environments="):
            said.append(word)
    return said


def split(names: list[str] | None) -> list[str] | None:
    """Names may be separated by commas, and options repeated."""
    if names is None:
        return None
    parts = [name for part in names for name in part.split(",") if name]
    if not parts:
        raise InputError("an option that takes names was given none")
    return parts


def study_folder(folder: Path) -> Path:
    """Make a study's folder."""
    for place in (folder, *folder.parents):
        if place.is_file():
            raise InputError(f"{place} is a file; name a folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
