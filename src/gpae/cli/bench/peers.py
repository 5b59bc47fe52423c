"""``gpae bench peers``: beside DiCE and NICE on one model."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpae.cli.bench.options import Compared, Environments, Output, Rounds, Threads, command_line, study_folder
from gpae.cli.bench.tables import conditions_table, plain_table
from gpae.cli.options import Json, Seed
from gpae.cli.terminal import note, print_json, progress, results

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

__all__ = ["peers"]


def peers(
    output: Output = Path("results"),
    rows: Compared = 200,
    rounds: Rounds = 5,
    seed: Seed = 0,
    threads: Threads = 1,
    environments: Environments = None,
    as_json: Json = False,
) -> None:
    """Compare with DiCE and NICE on the embedded Adult: the same refused people, the same network, in turn."""
    from gpae.benchmark.peers.environment import default_folder
    from gpae.benchmark.record import begun_by, describe_run, other_code
    from gpae.benchmark.studies.peers import Terms, compare, whole_crew
    from gpae.datasets import load

    folder, place = study_folder(output / "peers"), environments or default_folder()
    if (stale := other_code(folder / "cells")) is not None:
        note(stale)
    terms = Terms(rows, rounds, seed, threads)
    with progress():
        found = compare(folder, load("adult"), terms, lambda case: whole_crew(case, place))
    code = begun_by(folder / "cells")
    terms_said = {"rows": rows, "rounds": rounds, "seed": seed, "threads": threads}
    describe_run(folder, command_line(), **terms_said, cells_begun_by=code, **found.about)
    if as_json:
        print_json({"methods": found.figures.to_dict("records"), "conditions": [asdict(c) for c in found.conditions]})
        return
    results().print(_figures_table(found.figures), conditions_table(found.conditions))
    typer.echo(f"{sum(c.holds for c in found.conditions)} of {len(found.conditions)} hold; figures in {folder}")


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
    table = plain_table("method", *(words for words, _ in shown.values()), "in a round")
    for line in figures.to_dict("records"):
        cells = [form.format(line[column]) for column, (_, form) in shown.items()]
        table.add_row(line["method"], *cells, f"{line['slowest']:.4g}–{line['fastest']:.4g}")
    return table
