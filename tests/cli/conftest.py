import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import gpae
from gpae.cli import main

SMALL = ("--set", "n_features=100", "--set", "density_features=50", "--set", "max_epochs=3", "--set", "beta=0.1")


class Outcome:
    """How a command ended."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code, self.stdout, self.stderr = code, stdout, stderr


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """A function that runs a command line in this process."""

    def command(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in arguments])
        written = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Outcome(end.value.code, written.out, written.err)

    return command


@pytest.fixture
def python() -> Callable[[str], str]:
    """A function that runs code in a fresh interpreter, which has loaded nothing yet, and returns its stdout."""

    def execute(code: str) -> str:
        source = str(Path(gpae.__file__).parents[1])  # the same gpae, installed or not
        environment = {**os.environ, "PYTHONPATH": source}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        return done.stdout

    return execute


def applicants(n: int = 300) -> pa.Table:
    random = np.random.default_rng(0)
    income, debt = random.integers(10, 100, n), random.integers(0, 50, n)
    home = random.choice(["owns", "rents", "shares"], n)
    sex = random.choice(["f", "m"], n)
    granted = np.where(income - debt + 20 * (home == "owns") > 40, "yes", "no")
    return pa.table({"income": income, "debt": debt, "home": home, "sex": sex, "granted": granted})


@pytest.fixture(scope="session")
def table_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training table in a file."""
    path = tmp_path_factory.mktemp("table") / "applicants.csv"
    pacsv.write_csv(applicants(), path)
    return path


@pytest.fixture(scope="session")
def small() -> tuple[str, ...]:
    """Options for a model that is fitted in a second."""
    return SMALL


@pytest.fixture(scope="session")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four refused people and one who is not."""
    path = tmp_path_factory.mktemp("queries") / "queries.csv"
    lines = ["20,30,rents,f", "35,25,shares,m", "15,5,rents,m", "30,40,owns,f", "99,1,owns,m"]
    path.write_text("\n".join(["income,debt,home,sex", *lines, ""]))
    return path


@pytest.fixture(scope="session")
def model(table_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that the command line fitted."""
    path = tmp_path_factory.mktemp("model") / "small.gpae"
    with pytest.raises(SystemExit) as end:
        main(
            [
                "fit",
                str(table_file),
                *("--label", "granted", "--favourable", "yes", "--immutable", "sex"),
                *SMALL,
                *("-o", str(path)),
            ]
        )
    assert end.value.code == 0
    return path
