"""The parts of the study that look at ours alone: how cost grows, where time goes, how far the limit is.

Each is measured on Adult and FICO at the paper's size; what is finished of one is kept and not measured again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from gpae.benchmark.peers.conditions import Condition
from gpae.benchmark.speed.gpu import figures as gpu_figures
from gpae.benchmark.speed.latency import one_row
from gpae.benchmark.speed.limit import BOTH, beside_the_peak
from gpae.benchmark.speed.part import Outcome, Part, Terms
from gpae.benchmark.speed.rows import by_rows
from gpae.benchmark.speed.sizes import by_sizes
from gpae.benchmark.speed.stages import by_stage
from gpae.benchmark.speed.subject import Subject
from gpae.benchmark.speed.training import of_dataset
from gpae.benchmark.speed.work import problem_of, work_of_a_plan
from gpae.dataset import Dataset
from gpae.datasets import load
from gpae.errors import InputError
from gpae.explainers.gpae import GPAE
from gpae.files import written_whole

__all__ = ["OWN_PARTS"]

DATASETS = ("adult", "fico")
_LINEAR, _FLAT, _WARM_MS, _LINEARISING, _OF_THE_PEAK = 0.05, 1.05, 50.0, 0.5, 0.6
_ITERATIONS = {"median": 10, "p99": 30}
_MILLIONS, _L2_APART = 5.0, 1e-3
_COLUMNS_39 = "fico"

Measure = Callable[[Dataset, Path, int], pd.DataFrame]
"""(the data set, where fitted explainers are kept, the seed) -> what was measured."""
Judge = Callable[[pd.DataFrame], Iterator[Condition]]


@dataclass(frozen=True, slots=True)
class _OwnPart:
    """A measurement of each data set, what of it is printed, and what is to hold."""

    name: str
    measure: Measure
    shown: Mapping[str, str]
    judge: Judge

    def __call__(self, folder: Path, terms: Terms) -> Outcome:
        torch.set_num_threads(terms.threads)
        table = pd.concat([self._of(folder, name, terms) for name in DATASETS], ignore_index=True)
        with written_whole(folder / f"{self.name}.csv") as temporary:
            table.to_csv(temporary, index=False, float_format="%.6g")
        return Outcome(table, self.shown, list(self.judge(table)))

    def _of(self, folder: Path, name: str, terms: Terms) -> pd.DataFrame:
        kept = folder / "cells" / self.name / f"{name}-seed{terms.seed}-threads{terms.threads}.csv"
        if not kept.is_file():
            kept.parent.mkdir(parents=True, exist_ok=True)
            table = self.measure(load(name), folder / "shared", terms.seed)
            with written_whole(kept) as temporary:
                table.to_csv(temporary, index=False)
        return pd.read_csv(kept)


# what is to hold


def _linear_and_flat(table: pd.DataFrame) -> Iterator[Condition]:
    for name, lines in table.groupby("dataset", sort=False):
        power = float(lines["exponent"].iloc[0])
        words = f"{name}: cost grows linearly in rows, exponent 1 +- {_LINEAR:g}"
        yield Condition(words, f"{power:.3f}", abs(power - 1.0) <= _LINEAR)
        some, all_of_them = lines.iloc[min(2, len(lines) - 1)], lines.iloc[-1]
        share = float(all_of_them["peak_mib"] / some["peak_mib"])
        words = f"{name}: peak memory of {all_of_them['rows']:,} rows at most {_FLAT:g} of that of {some['rows']:,}"
        yield Condition(words, f"{share:.3f} ({all_of_them['peak_mib']:.0f} MiB)", share <= _FLAT)


def _soon(table: pd.DataFrame) -> Iterator[Condition]:
    for line in table.to_dict("records"):
        if line["k"] == 4:
            words = f"{line['dataset']}: one row, k = 4, p95 at most {_WARM_MS:g} ms"
            yield Condition(words, f"{line['p95_ms']:.1f} ms (p50 {line['p50_ms']:.1f})", line["p95_ms"] <= _WARM_MS)


def _near_the_peak(table: pd.DataFrame) -> Iterator[Condition]:
    for line in table[table["search"] == BOTH].to_dict("records"):
        words = f"{line['dataset']}: the solver at least {_LINEARISING:.0%} of its time in products and sines"
        times = f"{line['microseconds_each']:.1f} us a point, {line['alone_microseconds']:.1f} of them in these"
        yield Condition(words, f"{line['linearising']:.2f}; {times}", line["linearising"] >= _LINEARISING)
        words = f"{line['dataset']}: and these at {_OF_THE_PEAK:g} of the core's own peak at least"
        whole = f"{line['share']:.2f} ({line['share_least']:.2f}–{line['share_most']:.2f}) of the whole solver"
        beside = f"by the library {line['library_microseconds']:.1f} us"
        yield Condition(words, f"{line['at_peak']:.2f}, {whole}; {beside}", line["at_peak"] >= _OF_THE_PEAK)


def _few_iterations(table: pd.DataFrame) -> Iterator[Condition]:
    for line in table[table["counted"] == "iterations"].to_dict("records"):
        for figure, most in _ITERATIONS.items():
            words = f"{line['dataset']}: iterations of a row in all its searches, {figure} at most {most}"
            left = f", {line['stalled']:.2%} of the rows left one before they had arrived"
            yield Condition(words, f"{line[figure]:g}{left}", line[figure] <= most)


def _nothing(table: pd.DataFrame) -> Iterator[Condition]:
    yield from ()


# the parts


def _of_subject(measure: Callable[[Subject], pd.DataFrame]) -> Measure:
    return lambda dataset, shared, seed: measure(Subject.of(shared, dataset, seed))


def _third_of_the_time(table: pd.DataFrame) -> Iterator[Condition]:
    for line in table[table["training"] != "ours"].to_dict("records"):
        never = "" if line["reached"] > 0 else ", which never gets as low"
        words = f"{line['dataset']}: fitted in at most a third of the time of plain Adam{never}"
        yield Condition(words, f"{line['ratio']:.3f}", line["ratio"] <= 1 / 3)


def _on_a_gpu(subject: Subject) -> pd.DataFrame:
    if not torch.cuda.is_available():
        raise InputError("the part 'gpu' needs a GPU with CUDA, and there is none; leave it out with --parts")
    method = subject.explainer.method_
    assert isinstance(method, GPAE)
    lines = gpu_figures(method.surface(), problem_of(subject, min(len(subject.people), 20_000)))
    return pd.DataFrame(lines).assign(dataset=subject.name)


def _five_million(table: pd.DataFrame) -> Iterator[Condition]:
    for name, lines in table.groupby("dataset", sort=False):
        said: dict[str, float] = dict(zip(lines["what"].str.strip(), lines["figure"], strict=True))
        alone = said["valid as on the processor"]
        yield Condition(f"{name}: the same rows valid on the GPU as on the processor", f"{alone:g}", alone == 1.0)
        apart = abs(said["mean L2 on the GPU"] - said["mean L2 on the processor"])
        yield Condition(
            f"{name}: mean L2 on the GPU within {_L2_APART:g} of the processor's", f"{apart:.1e}", apart <= _L2_APART
        )
        if name == _COLUMNS_39:
            yield from _rates(str(name), lines, said)


def _rates(name: str, lines: pd.DataFrame, said: Mapping[str, float]) -> Iterator[Condition]:
    """What is asked of 39 columns; Adult has 48, and takes three times as many steps."""
    times = said["times torch.compile"]
    yield Condition(
        f"{name}: at least {_MILLIONS:g} x torch.compile of the plain code", f"{times:.2f}", times >= _MILLIONS
    )
    for line in lines.to_dict("records"):
        if line["unit"] == "M rows/s" and not line["what"].startswith(" "):
            words = f"{name}: {line['what']}: at least {_MILLIONS:g} M rows/s"
            yield Condition(words, f"{line['figure']:.2f} M rows/s", line["figure"] >= _MILLIONS)


_ROWS = {
    "dataset": "data",
    "rows": "rows",
    "rows_per_second": "rows/s",
    "peak_mib": "MiB",
    "at_once_mib": "in one call",
    "exponent": "exponent",
}
_SIZES = {"dataset": "data", "varied": "of", "size": "size", "us_per_row": "us/row", "exponent": "exponent"}
_STAGES = {"dataset": "data", "stage": "stage", "share": "share", "microseconds_per_row": "us/row"}
_LATENCY = {"dataset": "data", "k": "k", "p50_ms": "p50 ms", "p95_ms": "p95 ms"}
_LIMIT = {
    "dataset": "data", "search": "search", "microseconds_each": "us", "library_microseconds": "library us",
    "linearising": "products, sines", "at_peak": "these of the peak", "share": "all of the peak",
}  # fmt: skip
_WORK = {"dataset": "data", "counted": "counted", "median": "median", "p99": "p99"}
_TRAINING = {"dataset": "data", "training": "training", "seconds": "s", "loss": "loss", "reached": "reached, s"}
_GPU = {"dataset": "data", "what": "what", "figure": "figure", "unit": "unit", "share": "of the ceiling"}

OWN_PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        _OwnPart("rows", _of_subject(by_rows), _ROWS, _linear_and_flat),
        _OwnPart("sizes", lambda dataset, _, seed: by_sizes(dataset, seed=seed), _SIZES, _nothing),
        _OwnPart("stages", _of_subject(by_stage), _STAGES, _nothing),
        _OwnPart("latency", _of_subject(one_row), _LATENCY, _soon),
        _OwnPart("limit", _of_subject(beside_the_peak), _LIMIT, _near_the_peak),
        _OwnPart("work", _of_subject(work_of_a_plan), _WORK, _few_iterations),
        _OwnPart("training", lambda dataset, _, seed: of_dataset(dataset, seed), _TRAINING, _third_of_the_time),
        _OwnPart("gpu", _of_subject(_on_a_gpu), _GPU, _five_million),
    )
}
