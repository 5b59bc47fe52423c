"""``gpae bench recourse``: what recourse promises, measured."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gpae.cli.bench.options import Output, Workers, split, study_folder
from gpae.cli.terminal import progress
from gpae.errors import one_of

__all__ = ["recourse"]


def recourse(
    output: Output = Path("results"),
    parts: Annotated[
        list[str] | None,
        typer.Option("--parts", metavar="NAME,..", help="Only these: models, infeasible, survival, deadlines."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=2, help="Refused people of each case at most.")] = 500,
    workers: Workers = None,
) -> None:
    """Measure what recourse promises: plans on users' models, proofs, survival of retraining, deadlines."""
    from gpae.benchmark.record import describe_run
    from gpae.benchmark.studies.recourse import PARTS, run_recourse

    chosen = split(parts) or list(PARTS)
    for part in chosen:
        one_of("--parts", part, PARTS)
    folder = output / "recourse"
    study_folder(folder)
    with progress():
        run_recourse(folder, chosen, rows=rows, workers=workers)
    describe_run(folder, ["gpae", *sys.argv[1:]], rows=rows, parts=chosen)
    typer.echo("\n".join(str(folder / f"{part}.csv") for part in chosen))
