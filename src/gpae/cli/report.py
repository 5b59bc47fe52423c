"""``gpae report``: what the studies found, as one page beside the paper's numbers."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpae.cli.terminal import note
from gpae.files import check_place, written_whole

if TYPE_CHECKING:
    import pandas as pd

    from gpae.report.paper_page import Study

__all__ = ["STUDIES", "Settings", "report"]

Settings = Literal["chosen", "default", "carla"]
STUDIES: dict[Settings, str] = {"chosen": "paper", "default": "paper-default", "carla": "paper-carla"}
"""The folders of the paper's evaluation, by the settings of the methods."""


def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="The folder that `gpae bench` wrote.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page.")] = Path(
        "report.html"
    ),
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Write the figures as PNG and SVG here, too.")
    ] = None,
) -> None:
    """Write the tables beside the paper's numbers, the ranks and the figures as one HTML file."""
    from gpae.report.paper_figures import paper_drawings, save_drawings
    from gpae.report.paper_page import paper_page

    check_place(output, (".html", ".htm"))
    studies = _studies(results)
    drawings, missing = paper_drawings(results)
    with written_whole(output) as temporary:
        temporary.write_text(paper_page(studies, drawings, missing), encoding="utf-8")
    if figures is not None:
        save_drawings(drawings, figures)
    for words in missing:
        note(words)
    typer.echo(f"{output}: {len(studies)} runs of the evaluation, {len(drawings)} figures")


def _studies(results: Path) -> "list[Study]":
    """Those that were run; at least one must have been."""
    from gpae.benchmark.record import read_records
    from gpae.report.paper_page import Study

    there = {
        name: results / folder for name, folder in STUDIES.items() if (results / folder / "records.parquet").is_file()
    }
    if not there:
        read_records(results / STUDIES["chosen"])  # says what is missing and what makes it
    return [Study(name, read_records(folder), _run(folder), _tried(folder)) for name, folder in there.items()]


def _tried(folder: Path) -> "pd.DataFrame | None":
    import pandas as pd

    path = folder / "settings.csv"
    return pd.read_csv(path) if path.is_file() else None


def _run(folder: Path) -> dict[str, object]:
    path = folder / "run.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
