from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest

from gpae.dataset import DATA_HOME, DataFile, Dataset, SplitRule
from gpae.datasets import DATASETS

CONTENT = b"x,y\n1,0\n2,1\n3,0\n4,1\n5,0\n6,1\n"


@pytest.fixture(params=list(DATASETS))
def dataset(request: pytest.FixtureRequest) -> Dataset:
    """Each data set whose file is here; a file that ships with gpae must be here."""
    entry = DATASETS[request.param]
    for file in entry.files:
        if file.shipped is None and file.find() is None:
            pytest.skip(f"{file.path} is not on this machine; {DATA_HOME} names the folder that has it")
    return entry


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data home and a cache without files; the data home's path."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv(DATA_HOME, str(home))
    monkeypatch.setattr("gpae.dataset._cache", lambda: tmp_path / "cache")
    return home


@pytest.fixture
def toy(empty_machine: Path) -> Dataset:
    """A data set of six rows whose file is nowhere yet."""
    return Dataset(
        name="toy",
        paper_name="Toy",
        title="Six rows",
        label="y",
        favourable=1,
        features=("x",),
        rows=6,
        files=(DataFile("toy/toy.csv", sha256(CONTENT).hexdigest()),),
        read=pd.read_csv,
        rule=SplitRule(valid=2, test=2, balanced=frozenset({"valid", "test"})),
        licence="CC0",
        source="the toy shop",
    )


@pytest.fixture
def put(empty_machine: Path) -> Callable[..., Path]:
    """A function that puts a file for a data set into the data home."""

    def write(entry: Dataset, content: bytes = CONTENT) -> Path:
        path = empty_machine / entry.files[0].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def with_url() -> Callable[[Dataset, str], Dataset]:
    """A function that gives the file of a data set a public address."""
    return lambda entry, url: replace(entry, files=(replace(entry.files[0], url=url),))
