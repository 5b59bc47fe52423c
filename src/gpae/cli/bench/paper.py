"""The paper's evaluation: tables, ablations, figures; resumable, with their figures as records."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpae.cli.bench.options import Output, Rows, Seeds, Workers, split, study_folder
from gpae.cli.bench.tables import plain_table
from gpae.cli.options import Json
from gpae.cli.report import STUDIES, Settings
from gpae.cli.terminal import note, print_json, progress, results
from gpae.errors import InputError
from gpae.files import written_whole

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from gpae.benchmark.plan import Plan

__all__ = ["ablation", "everything", "figures", "paper", "smoke"]

_DATASETS = ("lcd", "gmc", "fico", "adult", "law")
_SMOKE_ROWS = 60


def paper(
    output: Output = Path("results"),
    datasets: Annotated[
        list[str] | None, typer.Option("--datasets", metavar="NAME,..", help="Only these data sets.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--methods", metavar="NAME,..", help="Only these methods.")
    ] = None,
    seeds: Seeds = 5,
    rows: Rows = 1000,
    masked: Annotated[
        bool | None, typer.Option("--masked/--free", help="Only with, or only without, the immutable columns.")
    ] = None,
    settings: Annotated[
        Settings,
        typer.Option(
            "--settings",
            help="'chosen' on validation rows, 'default', or 'carla', where the paper's numbers come from.",
        ),
    ] = "chosen",
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Run the tables of the paper's evaluation, or a part of them; what is finished is kept and not run again."""
    from gpae.benchmark.studies.paper import whole_plan
    from gpae.datasets import load

    plan = whole_plan(
        list({found.name: found for found in map(load, split(datasets) or _DATASETS)}.values()),
        seeds,
        rows,
        methods=_methods(split(methods)),
        free=masked is not True,
        masked=masked is not False,
        settings=settings,
    )
    _tell(*_run(output / STUDIES[settings], output / "paper", plan, workers), as_json)


def ablation(output: Output = Path("results"), seeds: Seeds = 5, rows: Rows = 1000, workers: Workers = None) -> None:
    """Vary the number of latents and of Fourier features on LCD."""
    from gpae.benchmark.record import describe_run, other_code
    from gpae.benchmark.studies.ablation import run_ablation

    folder = output / "ablation"
    if (stale := other_code(folder / "cells")) is not None:
        note(stale)
    with progress():
        frame = run_ablation(folder, seeds=seeds, rows=rows, n_workers=workers)
    describe_run(folder, ["gpae", *sys.argv[1:]], rows=rows)
    typer.echo(f"{len(frame):,} figures in {folder / 'ablation.csv'}")


def figures(output: Output = Path("results")) -> None:
    """Compute what the paper's other figures are drawn from: the latent space, the correlations, the digits."""
    from gpae.artefact import write_artefact
    from gpae.benchmark.record import describe_run
    from gpae.benchmark.studies.correlations import make_correlations
    from gpae.benchmark.studies.digits import make_digits
    from gpae.benchmark.studies.latents import make_latents

    folder, shared = output / "figures", output / "paper" / "shared"
    folder.mkdir(parents=True, exist_ok=True)
    makers: dict[str, Callable[[], Any]] = {
        "latents-2": lambda: make_latents(shared, 2),
        "latents-4": lambda: make_latents(shared, 4),
        "correlations": lambda: make_correlations(shared),
        "digits": make_digits,
    }
    missing = {name: make for name, make in makers.items() if not _can_be_read(folder / f"{name}.figure")}
    for name, make in missing.items():
        with progress():
            write_artefact(folder / f"{name}.figure", make().state())
    if missing:
        describe_run(folder, ["gpae", *sys.argv[1:]], made=list(missing))
    for name in makers:
        typer.echo(str(folder / f"{name}.figure"))


def _can_be_read(file: Path) -> bool:
    """Whether it is there, whole, and of the format that this version knows."""
    from gpae.artefact import read_artefact
    from gpae.errors import ArtefactError

    try:
        read_artefact(file)
    except ArtefactError:
        return False
    return True


def everything(output: Output = Path("results"), seeds: Seeds = 5, rows: Rows = 1000, workers: Workers = None) -> None:
    """Run the whole evaluation: the tables under all three settings, the ablations, the figures; write the report."""
    from gpae.cli.report import report

    for settings in STUDIES:
        paper(output, seeds=seeds, rows=rows, settings=settings, workers=workers)
    ablation(output, seeds, rows, workers)
    figures(output)
    report(output, output / "report.html", output / "figures")


def smoke(output: Output = Path("results"), workers: Workers = None, as_json: Json = False) -> None:
    """Run every method but GPAE-ind once on a few rows of the embedded data: two minutes, to see that all is well."""
    from gpae.benchmark.studies.paper import small_plan
    from gpae.datasets import load

    plan = small_plan(load("adult"), _SMOKE_ROWS)
    _tell(*_run(output / "smoke", output / "smoke", plan, workers), as_json)


def _methods(names: list[str] | None) -> list[str] | None:
    from gpae.benchmark.contenders import GUISES, contender

    if names is None:
        return None
    return list(dict.fromkeys(name if name in GUISES else contender(name).method for name in names))


def _run(folder: Path, cells: Path, plan: "Plan", workers: int | None) -> "tuple[Path, pd.DataFrame]":
    """Run a plan whose cells are kept below ``cells``, write its records into ``folder``, and return both."""
    from gpae.benchmark.record import begun_by, describe_run, other_code, write_records
    from gpae.benchmark.studies.paper import core_minutes, refuse_to_lose, run_paper, tried_settings

    if not plan.cells:
        raise InputError("nothing to run: no method of the study is among --methods, or no data set has a mask")
    study_folder(folder)
    refuse_to_lose(folder, plan)
    started = time.monotonic()
    note(f"{len(plan.cells)} cells; finished ones are kept in {cells / 'cells'}")
    if (stale := other_code(cells / "cells")) is not None:
        note(stale)
    with progress():
        records = write_records(folder, run_paper(cells, plan, workers))
    tried = tried_settings(cells, plan)
    if len(tried):
        with written_whole(folder / "settings.csv") as temporary:
            tried.to_csv(temporary, index=False)
    taken, code = core_minutes(cells, plan), begun_by(cells / "cells")
    describe_run(
        folder,
        ["gpae", *sys.argv[1:]],
        rows=plan.rows,
        cells_begun_by=code,
        core_minutes=taken,
        minutes_of_this_call=round((time.monotonic() - started) / 60, 1),
    )
    return folder, records


def _tell(folder: Path, records: "pd.DataFrame", as_json: bool) -> None:
    summary: dict[str, Any] = {"records": str(folder / "records.parquet"), "lines": len(records), "ranks": {}}
    from gpae.report.compare import paper_ranks, summarised

    for table in ("counterfactual", "counterfactual_masked"):
        figures = summarised(records, table)
        if len(figures):
            ranks = paper_ranks(figures)
            summary["ranks"][table] = dict(zip(ranks.method, ranks["rank"].round(3), strict=True))
    if as_json:
        print_json(summary)
        return
    for table, ranks in summary["ranks"].items():
        results().print(f"mean rank over data sets and metrics ({table.replace('_', ', ')})", _rank_table(ranks))
    typer.echo(f"{summary['lines']:,} records in {summary['records']}")


def _rank_table(ranks: dict[str, float]) -> "Table":
    table = plain_table("method", "rank")
    for method, rank in ranks.items():
        table.add_row(method, f"{rank:.2f}")
    return table
