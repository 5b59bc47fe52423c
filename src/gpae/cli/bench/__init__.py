"""``gpae bench``: the studies, resumable, with their figures as records."""

import typer

from gpae.cli.bench.paper import ablation, everything, figures, paper, smoke
from gpae.cli.bench.peers import peers
from gpae.cli.bench.recourse import recourse
from gpae.cli.bench.speed import speed

__all__ = ["app"]

app = typer.Typer(help="Studies: methods, data sets and seeds side by side.", no_args_is_help=True)
for study in (paper, ablation, figures, everything, smoke, peers, speed, recourse):
    app.command()(study)
