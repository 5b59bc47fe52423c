"""Ours, in a process like the peers': ``python -m gpae.benchmark.peers.gpae_worker FOLDER``."""

import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from gpae.benchmark.peers.perceptron import MultilayerPerceptron
from gpae.benchmark.peers.serving import serve
from gpae.tabular import TabularExplainer


def main(folder: Path) -> None:
    """Serve ``plausible``, ``near`` and ``sparse``; all rows that are asked for together go into one call."""
    model = MultilayerPerceptron.read(folder)
    explainer = TabularExplainer.explaining(
        model,
        model.table(folder / "train.csv"),
        label=model.meta["label"],
        favourable=1,
        immutable=model.meta["immutable"],
    )

    def answer(method: str, rows: pd.DataFrame) -> tuple[list[Any], float]:
        started = time.perf_counter()
        table = explainer.explain(rows, prefer=method).table  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
        plans = table[list(rows.columns)].astype(object).to_dict("records")
        return [plan if found else None for plan, found in zip(plans, table["found"], strict=True)], seconds

    serve(model.table(folder / "queries.csv"), answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
