"""``gpae doctor``: does gpae work here, and what is this machine."""

import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import typer

from gpae.cli.options import Json
from gpae.cli.terminal import grid, print_json, results

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType

__all__ = ["doctor"]

PACKAGES = (
    "torch",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "pydantic",
    "safetensors",
    "matplotlib",
    "typer",
    "rich",
)
SMALL: dict[str, Any] = {"n_features": 100, "density_features": 50, "max_epochs": 5, "beta": 0.1}
"""Hyper-parameters that make the self-test a matter of seconds."""


def doctor(as_json: Json = False) -> None:
    """Show versions, devices and data, and test that gpae works here (some seconds)."""
    findings = {
        "versions": _versions(),
        "devices": _devices(),
        "data": _data(),
        "disk": _disk(),
        "self_test": _self_test(),
    }
    if as_json:
        print_json(findings)
    else:
        results().print(_shown(findings))
    if not findings["self_test"]["ok"]:
        raise typer.Exit(1)


def _versions() -> dict[str, str]:
    import platform

    from gpae import __version__

    own = {"gpae": __version__, "python": platform.python_version(), "system": platform.platform()}
    return own | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def _devices() -> dict[str, Any]:
    import torch

    cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {"cpu_threads": torch.get_num_threads(), "cuda": cuda, "compiled_search": _compiled()}


def _compiled() -> str:
    """Whether the search's inner loop can be compiled here, and why not."""
    from gpae.kernels.compiled import library, why_not
    from gpae.kernels.packing import MACROS

    double, single = MACROS["double"], MACROS["single"]
    kinds: tuple[tuple[str, dict[str, str]], ...] = (
        ("newton.c", double | {"LATENT": "4"}),
        ("newton.c", single | {"LATENT": "4"}),
        ("polish.c", double | {"LATENT": "4"}),
        ("cosines.c", double),
        ("cosines.c", single),
        ("neighbours.c", single),
        ("slopes.c", single),
        ("snap.c", {}),
    )
    missing = [source for source, macros in kinds if library(source, **macros) is None]
    return f"no: {why_not(missing[0])}" if missing else "yes"


def _data() -> dict[str, str]:
    from gpae.datasets import DATASETS

    return {name: ", ".join(sorted({file.where() for file in entry.files})) for name, entry in DATASETS.items()}


def _disk() -> dict[str, Any]:
    import shutil
    from pathlib import Path

    import pooch

    cache = Path(pooch.os_cache("gpae"))
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    return {"cache": str(cache), "free_gb": round(shutil.disk_usage(there).free / 1e9, 1)}


def _self_test() -> dict[str, Any]:
    """Fit, explain, save, load and explain again; whatever goes wrong is a finding, not a crash."""
    start = time.perf_counter()
    try:
        problem = _trial()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return {"ok": not problem, "problem": problem, "seconds": round(time.perf_counter() - start, 1)}


def _trial() -> str:
    """Return what is wrong, or an empty text."""
    import tempfile
    from pathlib import Path

    from gpae.tabular import TabularExplainer

    people = _small_table()
    explainer = TabularExplainer(label="granted", favourable="yes", **SMALL)
    explainer.fit(people)
    refused = people.filter([label == "no" for label in people["granted"].to_pylist()]).slice(0, 5)
    answer = explainer.explain(refused, k=2, seed=0).table
    if not any(answer["found"].to_pylist()):
        return "no plan was found for any of five refused people"
    with tempfile.TemporaryDirectory() as folder:
        explainer.save(Path(folder) / "test.gpae")
        again = TabularExplainer.load(Path(folder) / "test.gpae").explain(refused, k=2, seed=0).table
    return "" if answer.equals(again) else "a saved and loaded model gives another answer"


def _small_table() -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(0)
    income, debt = random.integers(10, 100, 400), random.integers(0, 50, 400)
    home = random.choice(["rents", "owns"], 400)
    granted = np.where(income - debt + 20 * (home == "owns") > 40, "yes", "no")
    return pa.table({"income": income, "debt": debt, "home": home, "granted": granted})


def _shown(findings: dict[str, Any]) -> "RenderableType":
    versions, devices, disk = findings["versions"], findings["devices"], findings["disk"]
    data = ", ".join(f"{name} ({place})" for name, place in findings["data"].items())
    return grid(
        [
            ("versions", ", ".join(f"{name} {number}" for name, number in versions.items())),
            ("devices", f"CPU with {devices['cpu_threads']} threads; CUDA: {', '.join(devices['cuda']) or 'none'}"),
            ("compiled search", devices["compiled_search"]),
            ("data sets", data),
            ("cache", f"{disk['cache']} ({disk['free_gb']} GB free)"),
            ("self-test", _verdict(findings["self_test"])),
        ]
    )


def _verdict(test: dict[str, Any]) -> "RenderableType":
    from rich.text import Text

    if test["ok"]:
        return Text.assemble(("OK", "bold green"), f" ({test['seconds']} s)")
    return Text.assemble(("FAIL", "bold red"), f" {test['problem']}")
