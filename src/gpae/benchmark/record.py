"""The figures of a study: one line a data set, method, mask, seed and metric."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from gpae import __version__
from gpae.errors import InputError
from gpae.files import written_whole

__all__ = ["COLUMNS", "Record", "begun_by", "describe_run", "other_code", "read_records", "read_run", "write_records"]

COLUMNS = ("dataset", "method", "masked", "seed", "metric", "value", "n_rows", "seconds")


@dataclass(frozen=True, slots=True)
class Record:
    """One figure.

    Parameters
    ----------
    dataset, method
        The paper's names.
    n_rows
        The rows that the value is a mean of.
    seconds
        What the search (or, in classification, the fit) took.
    """

    dataset: str
    method: str
    masked: bool
    seed: int
    metric: str
    value: float
    n_rows: int
    seconds: float


def write_records(folder: Path, records: Iterable[Record]) -> pd.DataFrame:
    """Write ``records.parquet``, sorted, whole or not at all."""
    frame = pd.DataFrame([asdict(record) for record in records], columns=list(COLUMNS))
    frame = frame.sort_values(["dataset", "masked", "method", "seed", "metric"], ignore_index=True)
    with written_whole(folder / "records.parquet") as temporary:
        frame.to_parquet(temporary, index=False)
    return frame


def read_records(folder: Path) -> pd.DataFrame:
    """Read the records of a study."""
    path = folder / "records.parquet"
    if not path.is_file():
        raise InputError(f"{folder} holds no records.parquet; make it with `gpae bench paper -o {folder.parent}`")
    frame = pd.read_parquet(path)
    absent = [column for column in COLUMNS if column not in frame]
    if absent:
        raise InputError(f"{path} lacks the column {absent[0]!r}; it is no table of records")
    return frame[list(COLUMNS)]


def read_run(folder: Path) -> dict[str, Any]:
    """Read what :func:`describe_run` wrote; empty where it wrote nothing."""
    path = folder / "run.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def begun_by(cells: Path) -> str | None:
    """The code that began a folder of cells, where that is known."""
    path = cells / "code.txt"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def describe_run(folder: Path, command: list[str], **more: Any) -> None:
    """Write ``run.json``: with what, and on what, the records were made."""
    run = {
        "command": " ".join(command),
        "gpae": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "versions": _versions("torch", "numpy", "scikit-learn"),
        "machine": _machine(),
        **more,
    }
    with written_whole(folder / "run.json") as temporary:
        temporary.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def other_code(cells: Path) -> str | None:
    """What to tell a user whose finished cells were made by other code; remembers the code of a new folder."""
    now, before = f"{__version__} {_commit() or ''}".strip(), begun_by(cells)
    if before is None:
        cells.mkdir(parents=True, exist_ok=True)
        with written_whole(cells / "code.txt") as temporary:
            temporary.write_text(now + "\n", encoding="utf-8")
    if before in (None, now):
        return None
    return (
        f"the finished cells in {cells} were begun by gpae {before}, this is {now}; remove the folder to run them again"
    )


def _versions(*packages: str) -> dict[str, str]:
    from importlib.metadata import version

    return {package: version(package) for package in packages}


def _machine() -> str:
    """The processor, and the GPUs where there are any."""
    import torch

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return ", ".join([f"{platform.system()} {platform.machine()}", f"{os.cpu_count()} cores", *gpus])


def _commit() -> str | None:
    """The commit of a checkout; None for an installed package."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
