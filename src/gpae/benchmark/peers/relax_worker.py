"""ReLax, run by its own Python: ``python relax_worker.py FOLDER``; answers as :mod:`plain.serving` says.

Every method is as the library has it by default, and mapped over the rows as the library does. The whole is compiled
once for every size of a batch: left to itself, the library traces anew at every call.
"""

import os
import sys
import time
import warnings
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
if hasattr(os, "sched_setaffinity"):  # the compiler takes as many threads as there are cores to run on
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(os.environ["OMP_NUM_THREADS"])])

import jax  # noqa: E402

jax.spmd_mode = lambda mode: nullcontext()  # the Keras that the library wants asks for what new versions do anyway

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from plain.model import PlainModel  # noqa: E402
from plain.serving import serve  # noqa: E402
from relax.data_module import DataModule  # noqa: E402
from relax.explain import prepare_cf_module, prepare_rng_keys  # noqa: E402
from relax.methods import GrowingSphere, ProtoCF, VanillaCF  # noqa: E402
from relax.strategy import VmapStrategy  # noqa: E402

METHODS = {"wachter": VanillaCF, "spheres": GrowingSphere, "proto": ProtoCF}


class Scaled:
    """The library's columns: numbers between 0 and 1, then one-hot levels; the model as a function of them."""

    def __init__(self, model: PlainModel, train: pd.DataFrame) -> None:
        self.model, self.columns = model, model.columns
        self.n = len(self.columns.numbers)
        numbers = train[self.columns.numbers].to_numpy(dtype=float)
        self.low, self.reach = numbers.min(axis=0), np.ptp(numbers, axis=0)
        ones = np.ones(self.columns.width - self.n)
        self.stretch = np.concatenate([self.reach / self.columns.std, ones])
        self.offset = np.concatenate([(self.low - self.columns.mean) / self.columns.std, 0.0 * ones])

    def rows(self, frame: pd.DataFrame) -> Any:
        """A table as an array."""
        numbers = frame[self.columns.numbers].to_numpy(dtype=float)
        inputs = self.columns.encoded(numbers, self.columns.codes(frame))
        inputs[:, : self.n] = (numbers - self.low) / self.reach
        return jnp.asarray(inputs)

    def predict(self, x: Any) -> Any:
        """What the model says of such rows."""
        return self.model.probabilities(x * self.stretch + self.offset, jnp)

    def spelled(self, x: Any, names: list[str]) -> Any:
        """Rows in the table's units."""
        told, codes, start = np.asarray(x, dtype=float), [], self.n
        for levels in self.columns.levels.values():
            codes.append(told[:, start : start + len(levels)].argmax(axis=1))
            start += len(levels)
        places = np.stack(codes, axis=1) if codes else np.zeros((len(told), 0), dtype=np.intp)
        return self.columns.spelled(told[:, : self.n] * self.reach + self.low, places, names)


def main(folder: Path) -> None:
    """Serve ``wachter``, ``spheres`` and ``proto``."""
    model = PlainModel.read(folder)
    train, queries = (model.columns.table(folder / f"{part}.csv") for part in ("train", "queries"))
    scaled, data = Scaled(model, train), _data(model, train)

    @cache
    def explain(method: str) -> Any:
        search = prepare_cf_module(METHODS[method](), data, scaled.predict)
        return jax.jit(lambda x, y, keys: VmapStrategy()(search.generate_cf, x, scaled.predict, y, keys))

    def answer(method: str, rows: pd.DataFrame) -> tuple[list[Any], float]:
        x, keys, search = scaled.rows(rows), prepare_rng_keys(None, len(rows)), explain(method)
        started = time.perf_counter()
        found = search(x, 1 - scaled.predict(x), keys).block_until_ready()
        seconds = time.perf_counter() - started
        return scaled.spelled(found, list(rows.columns)), seconds

    serve(queries, answer)


def _data(model: PlainModel, train: pd.DataFrame) -> Any:
    """The library's view of the training rows; its columns must be ours, in our order."""
    columns = model.columns
    names = {"continous_cols": columns.numbers, "discret_cols": list(columns.levels)}
    text = train.astype(dict.fromkeys(columns.levels, str)).astype(dict.fromkeys(columns.levels, object))
    data = DataModule.from_config({"data_name": "case", **names, "imutable_cols": columns.immutable}, data=text)
    for name, levels in columns.levels.items():
        assert data.features[name].transformation.transformer.categories_.tolist() == levels.tolist()
    return data


if __name__ == "__main__":
    main(Path(sys.argv[1]))
