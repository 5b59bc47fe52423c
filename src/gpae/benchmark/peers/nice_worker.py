"""NICE, run by its own Python: ``python nice_worker.py FOLDER METHOD``; one answer a row, seconds beside it."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from nice import NICE
from perceptron import Perceptron

warnings.filterwarnings("ignore")


def main(folder: Path, method: str) -> None:
    """Answer the queries of a folder, and write answers and seconds into it.

    The library wants arrays: levels are given as their places in the list of levels.
    """
    model = Perceptron(folder)
    train, queries = (pd.read_csv(folder / f"{name}.csv", keep_default_na=False) for name in ("train", "queries"))
    names = list(queries.columns)
    levels = model.meta["levels"]

    def coded(frame: pd.DataFrame) -> np.ndarray:
        parts = [
            frame[name].astype(str).map({level: i for i, level in enumerate(levels[name])}).to_numpy(dtype=float)
            if name in levels
            else frame[name].to_numpy(dtype=float)
            for name in names
        ]
        return np.stack(parts, axis=1)

    def spelled(X: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: np.array(levels[name], dtype=object)[np.rint(X[:, i]).astype(int)] if name in levels else X[:, i]
                for i, name in enumerate(names)
            }
        )

    categories = [i for i, name in enumerate(names) if name in levels]
    explainer = NICE(
        X_train=coded(train),
        predict_fn=lambda X: model.predict_proba(spelled(np.asarray(X))),
        y_train=train[model.meta["label"]].to_numpy(),
        cat_feat=categories,
        num_feat=[i for i in range(len(names)) if i not in categories],
        distance_metric="HEOM",
        num_normalization="minmax",
        optimization=method,
        justified_cf=True,
    )
    rows = coded(queries)
    answers, seconds = [], []
    for row in rows:
        started = time.perf_counter()
        found = explainer.explain(row[None])
        seconds.append(time.perf_counter() - started)
        answers.append(spelled(np.asarray(found)).iloc[0].to_dict())
    (folder / f"nice-{method}.json").write_text(
        json.dumps({"answers": answers, "seconds": seconds}, default=float), encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
