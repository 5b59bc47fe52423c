"""DiCE, run by its own Python: ``python dice_worker.py FOLDER METHOD``; one answer a row, seconds beside it."""

import json
import sys
import time
import warnings
from pathlib import Path

import dice_ml
import pandas as pd
from perceptron import Perceptron

warnings.filterwarnings("ignore")


def main(folder: Path, method: str) -> None:
    """Answer the queries of a folder, and write answers and seconds into it."""
    model = Perceptron(folder)
    train, queries = (pd.read_csv(folder / f"{name}.csv", keep_default_na=False) for name in ("train", "queries"))
    numbers, label = model.meta["numbers"], model.meta["label"]
    data = dice_ml.Data(dataframe=train, continuous_features=numbers, outcome_name=label)
    explainer = dice_ml.Dice(
        data, dice_ml.Model(model=model, backend="sklearn", model_type="classifier"), method=method
    )
    free = [name for name in queries.columns if name not in model.meta["immutable"]]
    answers, seconds = [], []
    for row in range(len(queries)):
        one = queries.iloc[[row]]
        started = time.perf_counter()
        try:
            found = (
                explainer.generate_counterfactuals(
                    one, total_CFs=1, desired_class=1, features_to_vary=free, verbose=False
                )
                .cf_examples_list[0]
                .final_cfs_df
            )
            answer = None if found is None or not len(found) else found.iloc[0][queries.columns].to_dict()
        except Exception:  # the library raises where it finds nothing
            answer = None
        seconds.append(time.perf_counter() - started)
        answers.append(answer)
    written = [
        None if one is None else {k: (v.item() if hasattr(v, "item") else v) for k, v in one.items()} for one in answers
    ]
    (folder / f"dice-{method}.json").write_text(json.dumps({"answers": written, "seconds": seconds}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
