"""``gpae bench speed``: answers a second, beside the peers and beside the limit."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from gpae.cli.bench.options import Compared, Environments, Output, Rounds, Threads, command_line, split, study_folder
from gpae.cli.bench.tables import conditions_table, figures_table
from gpae.cli.options import Json, Seed
from gpae.cli.terminal import note, print_json, progress, results
from gpae.errors import one_of

__all__ = ["speed"]


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
    environments: Environments = None,
    as_json: Json = False,
) -> None:
    """Measure how fast answers come, beside DiCE, NICE, CFNOW, ReLax and CFRL; how cost grows, how far the limit is."""
    from gpae.benchmark.record import begun_by, describe_run, other_code, read_run
    from gpae.benchmark.studies.speed import PARTS, Terms, run_speed, usual_parts

    chosen = split(parts) or usual_parts()
    for part in chosen:
        one_of("--parts", part, tuple(PARTS))
    folder = study_folder(output / "speed")
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
    describe_run(folder, command_line(), parts=read_run(folder).get("parts", {}) | about)
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
            figures_table(one.figures[list(one.shown)].rename(columns=dict(one.shown))),
            conditions_table(one.conditions),
        )
    conditions = [condition for one in found.values() for condition in one.conditions]
    typer.echo(f"{sum(c.holds for c in conditions)} of {len(conditions)} hold; figures in {folder}")
