"""``gpae bench``: the studies, resumable, with their figures as records."""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpae.cli.options import Json, Seed
from gpae.cli.report import STUDIES, Settings
from gpae.cli.terminal import note, print_json, progress, results
from gpae.errors import InputError, one_of
from gpae.files import written_whole

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from gpae.benchmark.peers.conditions import Condition
    from gpae.benchmark.plan import Plan

__all__ = ["app"]

app = typer.Typer(help="Studies: methods, data sets and seeds side by side.", no_args_is_help=True)

Output = Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the study's folder goes.")]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", min=1, help="Processes side by side; default: one a core.")
]
_SMOKE_ROWS = 60


Seeds = Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="How many seeds.")]
Rows = Annotated[int, typer.Option("--rows", metavar="N", min=2, help="At most so many test rows.")]
Compared = Annotated[int, typer.Option("--rows", metavar="N", min=1, help="Refused people whose answers are compared.")]
Rounds = Annotated[int, typer.Option("--rounds", metavar="N", min=1, help="In how many rounds, each timed by itself.")]
Threads = Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads of everybody's mathematics.")]
_DATASETS = ("lcd", "gmc", "fico", "adult", "law")


@app.command()
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
        list({found.name: found for found in map(load, _split(datasets) or _DATASETS)}.values()),
        seeds,
        rows,
        methods=_methods(_split(methods)),
        free=masked is not True,
        masked=masked is not False,
        settings=settings,
    )
    _tell(*_run(output / STUDIES[settings], output / "paper", plan, workers), as_json)


@app.command()
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


@app.command()
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
    made = {name: make for name, make in makers.items() if not (folder / f"{name}.figure").is_file()}
    for name, make in made.items():
        with progress():
            write_artefact(folder / f"{name}.figure", make().state())
    if made:
        describe_run(folder, ["gpae", *sys.argv[1:]], made=list(made))
    for name in makers:
        typer.echo(str(folder / f"{name}.figure"))


@app.command()
def everything(output: Output = Path("results"), seeds: Seeds = 5, rows: Rows = 1000, workers: Workers = None) -> None:
    """Run the whole evaluation: the tables under all three settings, the ablations, the figures; write the report."""
    from gpae.cli.report import report

    for settings in STUDIES:
        paper(output, seeds=seeds, rows=rows, settings=settings, workers=workers)
    ablation(output, seeds, rows, workers)
    figures(output)
    report(output, output / "report.html", output / "figures")


def _split(names: list[str] | None) -> list[str] | None:
    """Names may be separated by commas, and options repeated."""
    if names is None:
        return None
    parts = [name for part in names for name in part.split(",") if name]
    if not parts:
        raise InputError("an option that takes names was given none")
    return parts


@app.command()
def smoke(output: Output = Path("results"), workers: Workers = None, as_json: Json = False) -> None:
    """Run every method but GPAE-ind once on a few rows of the embedded data: two minutes, to see that all is well."""
    from gpae.benchmark.studies.paper import small_plan
    from gpae.datasets import load

    plan = small_plan(load("adult"), _SMOKE_ROWS)
    _tell(*_run(output / "smoke", output / "smoke", plan, workers), as_json)


@app.command()
def peers(
    output: Output = Path("results"),
    rows: Compared = 200,
    rounds: Rounds = 5,
    seed: Seed = 0,
    threads: Threads = 1,
    environments: Annotated[
        Path | None,
        typer.Option(
            "--environments",
            metavar="FOLDER",
            help="Where the peers' virtual environments (dice, nice) are, or are to be made; default: gpae's cache.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare with DiCE and NICE on the embedded Adult: the same refused people, the same network, in turn."""
    from gpae.benchmark.peers.environment import default_folder
    from gpae.benchmark.record import begun_by, describe_run, other_code
    from gpae.benchmark.studies.peers import Terms, compare, whole_crew
    from gpae.datasets import load

    folder, place = _folder(output / "peers"), environments or default_folder()
    if (stale := other_code(folder / "cells")) is not None:
        note(stale)
    terms = Terms(rows, rounds, seed, threads)
    with progress():
        found = compare(folder, load("adult"), terms, lambda case: whole_crew(case, place))
    code = begun_by(folder / "cells")
    terms_said = {"rows": rows, "rounds": rounds, "seed": seed, "threads": threads}
    describe_run(folder, ["gpae", *sys.argv[1:]], **terms_said, cells_begun_by=code, **found.about)
    if as_json:
        print_json({"methods": found.figures.to_dict("records"), "conditions": [asdict(c) for c in found.conditions]})
        return
    results().print(_figures_table(found.figures), _conditions_table(found.conditions))
    typer.echo(f"{sum(c.holds for c in found.conditions)} of {len(found.conditions)} hold; figures in {folder}")


@app.command()
def speed(
    output: Output = Path("results"),
    parts: Annotated[
        list[str] | None,
        typer.Option(
            "--parts",
            metavar="NAME,..",
            help="Only these: peers, rows, sizes, stages, latency, limit, work, training, gpu; "
            "default: all that can be measured here.",
        ),
    ] = None,
    rows: Compared = 200,
    rounds: Rounds = 5,
    seed: Seed = 0,
    threads: Threads = 2,
    limit: Annotated[
        float, typer.Option("--limit", metavar="SECONDS", min=1.0, help="For each method in each round.")
    ] = 40.0,
    environments: Annotated[
        Path | None,
        typer.Option(
            "--environments",
            metavar="FOLDER",
            help="Where the peers' virtual environments (dice, nice, cfnow, relax) are, or are to be made; "
            "default: gpae's cache.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how fast answers come, beside DiCE, NICE, CFNOW and ReLax, how cost grows, and how far the limit is."""
    from gpae.benchmark.record import begun_by, describe_run, other_code, read_run
    from gpae.benchmark.studies.speed import PARTS, Terms, run_speed, usual_parts

    chosen = _split(parts) or usual_parts()
    for part in chosen:
        one_of("--parts", part, tuple(PARTS))
    folder = _folder(output / "speed")
    for part in chosen:
        if (stale := other_code(folder / "cells" / part)) is not None:
            note(stale)
    terms = Terms(rows, rounds, seed, threads, limit, environments)
    with progress():
        found = run_speed(folder, chosen, terms)
    said = {"rows": rows, "rounds": rounds, "seed": seed, "threads": threads, "limit": limit}
    about = {
        part: said | {"cells_begun_by": begun_by(folder / "cells" / part)} | one.about for part, one in found.items()
    }
    describe_run(folder, ["gpae", *sys.argv[1:]], parts=read_run(folder).get("parts", {}) | about)
    if as_json:
        print_json(
            {
                part: {"figures": one.figures.to_dict("records"), "conditions": [asdict(c) for c in one.conditions]}
                for part, one in found.items()
            }
        )
        return
    for one in found.values():
        results().print(
            _plain_figures(one.figures[list(one.shown)].rename(columns=dict(one.shown))),
            _conditions_table(one.conditions),
        )
    conditions = [condition for one in found.values() for condition in one.conditions]
    typer.echo(f"{sum(c.holds for c in conditions)} of {len(conditions)} hold; figures in {folder}")


@app.command()
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

    chosen = _split(parts) or list(PARTS)
    for part in chosen:
        one_of("--parts", part, PARTS)
    folder = output / "recourse"
    _folder(folder)
    with progress():
        run_recourse(folder, chosen, rows=rows, workers=workers)
    describe_run(folder, ["gpae", *sys.argv[1:]], rows=rows, parts=chosen)
    typer.echo("\n".join(str(folder / f"{part}.csv") for part in chosen))


def _figures_table(figures: "pd.DataFrame") -> "Table":
    """The figures of the peers' study that fit a line."""
    shown = {
        "answered": ("found", "{:.0f}"),
        "valid": ("valid", "{:.3f}"),
        "l2": ("L2", "{:.2f}"),
        "changes": ("changes", "{:.2f}"),
        "neighbours": ("5-NN", "{:.2f}"),
        "whole": ("whole", "{:.2f}"),
        "immutables_kept": ("kept", "{:.2f}"),
        "rows_per_second": ("rows/s", "{:.4g}"),
    }
    table = _plain_table("method", *(words for words, _ in shown.values()), "in a round")
    for line in figures.to_dict("records"):
        cells = [form.format(line[column]) for column, (_, form) in shown.items()]
        table.add_row(line["method"], *cells, f"{line['slowest']:.4g}–{line['fastest']:.4g}")
    return table


def _plain_figures(figures: "pd.DataFrame") -> "Table":
    """A table of figures as it is."""
    table = _plain_table(*map(str, figures.columns))
    for line in figures.itertuples(index=False):
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in line))
    return table


def _conditions_table(conditions: "list[Condition]") -> "Table":
    table = _plain_table("condition", "figure", "")
    for one in conditions:
        table.add_row(one.condition, one.figure, "holds" if one.holds else "FAILS")
    return table


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
    _folder(folder)
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


def _folder(folder: Path) -> Path:
    """Make a study's folder."""
    for place in (folder, *folder.parents):
        if place.is_file():
            raise InputError(f"{place} is a file; name a folder with -o")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


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
    table = _plain_table("method", "rank")
    for method, rank in ranks.items():
        table.add_row(method, f"{rank:.2f}")
    return table


def _plain_table(first: str, *others: str) -> "Table":
    """A table with a column of names and columns of figures."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, style="bold")
    for name in others:
        table.add_column(name, justify="right")
    return table
