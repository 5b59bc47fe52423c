"""alibi's CFRL, run by its own Python: ``python cfrl_worker.py FOLDER [STEPS]``; answers as :mod:`plain.serving` says.

Networks, coefficients and batches are those of the library's example on the census, everything else is as the library
has it by default. It learns for the case before it answers: what came of it is kept in the folder (``cfrl.npz``, and
``cfrl.json`` with the steps and the seconds), so it learns once.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

warnings.filterwarnings("ignore")
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # on the CPU, like everybody
os.environ["TQDM_DISABLE"] = "1"  # a bar for each call would take a part of its time
if hasattr(os, "sched_setaffinity"):  # learning is timed too, on as many cores as answering
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(os.environ["OMP_NUM_THREADS"])])

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import torch  # noqa: E402
from alibi.explainers import CounterfactualRLTabular  # noqa: E402
from alibi.explainers.backends.cfrl_tabular import get_he_preprocessor  # noqa: E402
from alibi.models.pytorch.autoencoder import HeAE  # noqa: E402
from alibi.models.pytorch.cfrl_models import ADULTDecoder, ADULTEncoder  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from plain.model import PlainModel  # noqa: E402
from plain.serving import serve  # noqa: E402
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset  # noqa: E402

HIDDEN, LATENT, EPOCHS, ROWS_AT_ONCE = 128, 15, 50, 128
"""Of the auto-encoder."""
STEPS, COEFFICIENT = 10_000, 0.5
"""Of the policy; the coefficient is that of sparsity and of consistency."""
SEED = 0
FAVOURABLE = np.array([1])
PORTIONS = {"library": 200, "arrays": 150}
"""Rows in a call with most answers a second: each repeats its conditions once a row, which for 10,000 takes 40 GiB."""
LEARNT = ("encoder", "decoder", "actor")
ARRAYS, ABOUT = "cfrl.npz", "cfrl.json"

Ways = tuple[Callable[[Any], Any], Callable[[Any], Any]]
"""From the library's rows to the networks' columns, and back."""


class Coded:
    """The library's rows: numbers, then the places of levels; whole numbers stay whole, as its example has it."""

    def __init__(self, model: PlainModel, train: pd.DataFrame) -> None:
        self.model, self.columns = model, model.columns
        self.n = len(self.columns.numbers)
        self.names = [*self.columns.numbers, *self.columns.levels]
        self.levels = {self.n + i: levels.tolist() for i, levels in enumerate(self.columns.levels.values())}
        self.train = self.rows(train)
        self.whole = (self.train == np.rint(self.train)).all(axis=0)[: self.n]

    @property
    def heads(self) -> list[int]:
        """How many columns belong together: all numbers, then those of each list of levels."""
        return [self.n, *map(len, self.levels.values())]

    def rows(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """A table as such rows."""
        return np.hstack([frame[self.columns.numbers].to_numpy(dtype=float), self.columns.codes(frame)])

    def predict(self, X: Any) -> Any:
        """What the model says."""
        return self.model.probabilities(self.inputs(X))

    def spelled(self, X: Any, names: list[str]) -> Any:
        """Rows with the names of their levels."""
        return self.columns.spelled(X[:, : self.n].astype(float), X[:, self.n :].astype(np.intp), names)

    def library(self) -> Ways:
        """The library's own functions."""
        whole = {name: int for name, whole in zip(self.columns.numbers, self.whole, strict=True) if whole}
        return tuple(get_he_preprocessor(self.train, self.names, self.levels, whole))

    def arrays(self) -> Ways:
        """The same as plain arithmetic: most of the library's time goes into its own, through arrays of objects."""
        return lambda X: self.inputs(X).astype(np.float32), self.outputs

    def inputs(self, X: Any) -> Any:
        """The columns that the model sees."""
        return self.columns.encoded(X[:, : self.n].astype(float), X[:, self.n :].astype(np.intp))

    def outputs(self, inputs: Any) -> Any:
        """Rows from such columns."""
        parts = np.split(inputs, np.cumsum(self.heads)[:-1], axis=1)
        numbers = parts[0] * self.columns.std + self.columns.mean
        places = [part.argmax(axis=1)[:, None] for part in parts[1:]]
        return np.hstack([np.where(self.whole, np.rint(numbers), numbers), *places])


def main(folder: Path, steps: int) -> None:
    """Serve ``library`` and ``arrays``: the same networks between two ways to prepare rows and to read answers."""
    model = PlainModel.read(folder)
    train, queries = (model.columns.table(folder / f"{part}.csv") for part in ("train", "queries"))
    coded = Coded(model, train)
    with redirect_stdout(sys.stderr):  # stdout is for replies
        explainers = _explainers(folder, coded, steps)

    def answer(method: str, rows: pd.DataFrame) -> tuple[list[Any], float]:
        X, explainer, portion = coded.rows(rows), explainers[method], PORTIONS[method]
        started = time.perf_counter()
        found = [explainer.explain(X[i : i + portion], FAVOURABLE, [], portion) for i in range(0, len(X), portion)]
        seconds = time.perf_counter() - started
        return coded.spelled(np.concatenate([one.cf["X"] for one in found]), list(rows.columns)), seconds

    serve(queries, answer)


def _explainers(folder: Path, coded: Coded, steps: int) -> dict[str, Any]:
    """From what the folder has; learnt first where it has nothing of as many steps."""
    if _steps_of(folder) != steps:
        _learn(folder, coded, steps)
    with np.load(folder / ARRAYS) as arrays:
        kept = {name: torch.from_numpy(arrays[name]) for name in arrays}
    return {"library": _restored(coded, coded.library(), kept), "arrays": _restored(coded, coded.arrays(), kept)}


def _steps_of(folder: Path) -> int | None:
    file = folder / ABOUT
    return json.loads(file.read_text(encoding="utf-8"))["steps"] if file.is_file() else None


def _learn(folder: Path, coded: Coded, steps: int) -> None:
    """The auto-encoder, then the policy."""
    begun = time.perf_counter()
    torch.manual_seed(SEED)
    networks = _networks(coded)
    _train(coded, *networks)
    between = time.perf_counter()
    explainer = _explainer(coded, coded.library(), networks, steps).fit(coded.train)
    ended = time.perf_counter()
    seconds = {"seconds": ended - begun, "of_them_autoencoder": between - begun, "threads": torch.get_num_threads()}
    _keep(folder, explainer, {"steps": steps, "epochs": EPOCHS} | seconds)
    print(f"learnt in {ended - begun:.0f} s, {between - begun:.0f} of them the auto-encoder")


def _keep(folder: Path, explainer: Any, about: dict[str, Any]) -> None:
    """The networks as arrays; the file that tells of them is never beside others: it goes first, and comes last."""
    (folder / ABOUT).unlink(missing_ok=True)
    arrays: dict[str, Any] = {}
    for part in LEARNT:
        arrays |= {f"{part}.{name}": value.numpy() for name, value in explainer.params[part].state_dict().items()}
    np.savez(folder / ARRAYS, **arrays)
    beside = folder / f"{ABOUT}.part"
    beside.write_text(json.dumps(about), encoding="utf-8")
    beside.replace(folder / ABOUT)


def _networks(coded: Coded) -> tuple[Any, Any]:
    return ADULTEncoder(HIDDEN, LATENT), ADULTDecoder(HIDDEN, coded.heads)


def _train(coded: Coded, encoder: Any, decoder: Any) -> None:
    """The auto-encoder: squared errors of the numbers, and the cross-entropies of the levels, on average."""
    rows = torch.from_numpy(coded.train)
    inputs = torch.from_numpy(coded.inputs(coded.train)).float()
    data = TensorDataset(inputs, inputs[:, : coded.n], *rows[:, coded.n :].long().T)
    batches = DataLoader(data, batch_size=None, sampler=BatchSampler(RandomSampler(data), ROWS_AT_ONCE, False))
    network, n_lists = HeAE(encoder, decoder), len(coded.levels)
    network.compile(
        torch.optim.Adam(network.parameters(), lr=1e-3),
        [torch.nn.MSELoss(), *[torch.nn.CrossEntropyLoss()] * n_lists],
        [1.0, *[1.0 / n_lists] * n_lists],
        metrics={},  # a list, as it is by default, is for networks with one head
    )
    network.fit(batches, EPOCHS)


def _explainer(coded: Coded, ways: Ways, networks: tuple[Any, Any], steps: int) -> Any:
    """Immutables and ranges are the library's own; a range is a share of that of the training rows: here all of it."""
    return CounterfactualRLTabular(
        coded.predict,
        *networks,
        *ways,
        coeff_sparsity=COEFFICIENT,
        coeff_consistency=COEFFICIENT,
        feature_names=coded.names,
        category_map=coded.levels,
        immutable_features=coded.columns.immutable,
        ranges=dict.fromkeys(coded.columns.numbers, (-1.0, 1.0)),
        latent_dim=LATENT,
        backend="pytorch",
        seed=SEED,
        train_steps=steps,
        num_workers=0,  # on two cores its processes for loading are in each other's way
    )


def _restored(coded: Coded, ways: Ways, kept: dict[str, Any]) -> Any:
    """An explainer with networks that are known: without steps, fitting only takes the ranges of the numbers."""
    explainer = _explainer(coded, ways, _networks(coded), 0).fit(coded.train)
    for part in LEARNT:
        own = {name.removeprefix(f"{part}."): value for name, value in kept.items() if name.startswith(f"{part}.")}
        explainer.params[part].load_state_dict(own)
    return explainer


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else STEPS)
