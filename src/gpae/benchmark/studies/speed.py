"""How fast answers come, part by part; a part that is finished is only read again."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import torch

from gpae.benchmark.peers.conditions import Condition
from gpae.benchmark.speed.own import OWN_PARTS
from gpae.benchmark.speed.part import Outcome, Part, Terms
from gpae.benchmark.speed.peers import measure_peers
from gpae.files import written_whole
from gpae.plots.scaling import scaling_figure
from gpae.plots.style import to_png, to_svg

__all__ = ["PARTS", "Outcome", "Terms", "run_speed", "usual_parts"]

PARTS: dict[str, Part] = {"peers": measure_peers} | OWN_PARTS
"""By name; a part writes its own files, and its conditions go into ``conditions.csv`` beside those of the others."""


def usual_parts() -> list[str]:
    """All that can be measured here."""
    return [part for part in PARTS if part != "gpu" or torch.cuda.is_available()]


def run_speed(folder: Path, parts: Sequence[str], terms: Terms) -> dict[str, Outcome]:
    """Run parts one after the other, alone on the machine; return what came out of each."""
    outcomes = {}
    for part in parts:
        outcomes[part] = PARTS[part](folder, terms)
        _keep(folder / "conditions.csv", part, outcomes[part].conditions)
    _draw_growth(folder)
    return outcomes


def _draw_growth(folder: Path) -> None:
    """The figure ``scaling``, once both parts that it is drawn from are there."""
    files = [folder / f"{part}.csv" for part in ("rows", "sizes")]
    if all(file.is_file() for file in files):
        figure = scaling_figure(*map(pd.read_csv, files))
        for suffix, drawn in (("png", to_png(figure)), ("svg", to_svg(figure))):
            with written_whole(folder / f"scaling.{suffix}") as temporary:
                temporary.write_bytes(drawn)


def _keep(file: Path, part: str, conditions: Sequence[Condition]) -> None:
    """Write a part's conditions in the place of its former ones; those of other parts stay."""
    lines = pd.DataFrame([{"part": part} | asdict(one) for one in conditions])
    if file.is_file():
        before = pd.read_csv(file)
        lines = pd.concat([before[before["part"] != part], lines])
    with written_whole(file) as temporary:
        lines.to_csv(temporary, index=False)
