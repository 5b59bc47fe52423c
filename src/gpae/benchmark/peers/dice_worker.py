"""DiCE, run by its own Python: ``python dice_worker.py FOLDER``; answers as :mod:`plain.serving` says.

Everything is as the library has it by default; a row at a time, as it goes through several rows itself.
"""

import random
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from plain.model import PlainModel
from plain.serving import serve

warnings.filterwarnings("ignore")


def main(folder: Path) -> None:
    """Serve ``random`` and ``genetic``."""
    model = PlainModel.read(folder)
    train, queries = (model.columns.table(folder / f"{part}.csv") for part in ("train", "queries"))
    explainers = {method: _explainer(model, train, method) for method in ("random", "genetic")}
    free = [name for name in queries.columns if name not in model.columns.immutable]

    def answer(method: str, rows: pd.DataFrame) -> tuple[list[Any], float]:
        answers, seconds = [], 0.0
        for place in range(len(rows)):
            one = rows.iloc[[place]]
            random.seed(int(one.index[0]))
            np.random.seed(int(one.index[0]))  # noqa: NPY002 (what the library draws from)
            started = time.perf_counter()
            found = _found(explainers[method], one, free)
            seconds += time.perf_counter() - started
            answers.append(None if found is None else found.iloc[0][list(rows.columns)].to_dict())
        return answers, seconds

    serve(queries, answer)


def _explainer(model: PlainModel, train: pd.DataFrame, method: str) -> Any:
    data = dice_ml.Data(dataframe=train, continuous_features=model.columns.numbers, outcome_name=model.columns.label)
    return dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn", model_type="classifier"), method=method)


def _found(explainer: Any, one: pd.DataFrame, free: list[str]) -> pd.DataFrame | None:
    """What the library shows and writes: the answer after its own pruning of changes, where it has one."""
    try:
        made = explainer.generate_counterfactuals(one, total_CFs=1, desired_class=1, features_to_vary=free)
    except Exception:  # it raises where it finds nothing; anything else is to be seen in the log
        traceback.print_exc()
        return None
    example = made.cf_examples_list[0]
    shown = example.final_cfs_df if example.final_cfs_df_sparse is None else example.final_cfs_df_sparse
    return None if shown is None or not len(shown) else shown


if __name__ == "__main__":
    main(Path(sys.argv[1]))
