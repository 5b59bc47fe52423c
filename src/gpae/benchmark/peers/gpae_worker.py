"""Ours, in a process like the peers': ``python -m gpae.benchmark.peers.gpae_worker FOLDER``."""

import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from gpae.benchmark.peers.case import EXPLAINER
from gpae.benchmark.peers.plain.columns import UNKNOWN
from gpae.benchmark.peers.plain.model import PlainModel
from gpae.benchmark.peers.plain.serving import Row, serve
from gpae.tabular import TabularExplainer


def main(folder: Path) -> None:
    """Serve ``plausible``, ``near`` and ``sparse``, the explainer's ``own`` plan, and that from ``arrays`` to arrays.

    All rows that are asked for together go into one call.
    """
    model = PlainModel.read(folder)
    columns, own = model.columns, (folder / EXPLAINER).is_file()
    queries = columns.table(folder / "queries.csv")
    explainer = TabularExplainer.load(folder / EXPLAINER) if own else _explaining(model, folder)

    def answer(method: str, rows: pd.DataFrame) -> tuple[list[Row | None], float]:
        return _from_arrays(explainer, rows) if method == "arrays" else _from_table(explainer, method, rows)

    serve(_with_gaps(queries, list(columns.levels)) if own else queries, answer)


def _explaining(model: PlainModel, folder: Path) -> TabularExplainer:
    """An explainer of a model that is not ours."""
    columns = model.columns
    return TabularExplainer.explaining(
        model,
        columns.table(folder / "train.csv"),
        label=columns.label,
        favourable=1,
        immutable=columns.immutable,
    )


def _with_gaps(queries: pd.DataFrame, levels: list[str]) -> pd.DataFrame:
    """What is unknown is missing: ours takes that as it is."""
    text = {name: queries[name].astype(object) for name in levels}
    return queries.assign(**{name: column.where(column != UNKNOWN, None) for name, column in text.items()})


def _from_table(explainer: TabularExplainer, method: str, rows: pd.DataFrame) -> tuple[list[Row | None], float]:
    prefer: Any = None if method == "own" else method
    started = time.perf_counter()
    table = explainer.explain(rows, prefer=prefer).table
    seconds = time.perf_counter() - started
    return _plans(table[list(rows.columns)], table["found"]), seconds


def _from_arrays(explainer: TabularExplainer, rows: pd.DataFrame) -> tuple[list[Row | None], float]:
    encoded = explainer.codec_.encode(rows).rows
    started = time.perf_counter()
    found = explainer.method_.explain(encoded, 1)
    seconds = time.perf_counter() - started
    return _plans(explainer.codec_.decode(found.counterfactual), found.found), seconds


def _plans(table: pd.DataFrame, found: Any) -> list[Row | None]:
    told: list[Any] = table.astype(object).where(table.notna(), UNKNOWN).to_dict("records")
    return [plan if there else None for plan, there in zip(told, found, strict=True)]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
