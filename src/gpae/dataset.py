"""What a data set is: where its file lies, what its columns mean, and how its rows are split.

The catalogue is the folder :mod:`gpae.datasets`; each file there makes one :class:`Dataset`.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpae.errors import DataMissingError, InputError

__all__ = ["DATA_HOME", "DataFile", "Dataset", "SplitRule"]

DATA_HOME = "GPAE_DATA_HOME"
"""The environment variable that names the folder with the data files."""

Part: TypeAlias = Literal["train", "valid", "test"]
Positions: TypeAlias = NDArray[np.int64]
State: TypeAlias = Literal["ok", "absent", "damaged"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a data set: its place below a data folder, and its checksum.

    Parameters
    ----------
    path
        Relative to the data folder, with forward slashes.
    sha256
        Of the file as it is stored (compressed).
    shipped
        The folder of a file that comes with the package; such a file is looked for nowhere else.
    url
        A public address that serves this very file, byte for byte; None where there is none.
    """

    path: str
    sha256: str
    shipped: Path | None = None
    url: str | None = None

    def places(self) -> dict[str, Path]:
        """Return where the file may lie, first choice first, by a word for the place."""
        if self.shipped is not None:
            return {"package": self.shipped / self.path}
        home = os.environ.get(DATA_HOME)
        named = {"data home": Path(home).expanduser() / self.path} if home else {}
        return {**named, "cache": _cache() / self.path}

    def where(self) -> str:
        """Return the word for the place that holds the file, or ``absent``."""
        return next((word for word, path in self.places().items() if path.is_file()), "absent")

    def find(self) -> Path | None:
        """Return the file's path, or None; the checksum is not looked at."""
        return self.places().get(self.where())

    def state(self) -> State:
        """Return whether the file is there and is the expected one."""
        path = self.find()
        if path is None:
            return "absent"
        return "ok" if _sha256(path) == self.sha256 else "damaged"

    def download(self) -> Path | None:
        """Fetch the file into the cache and return its path; None where no address serves it."""
        if self.url is None:
            return None
        import pooch  # here, because it is slow to import and seldom needed

        target = _cache() / self.path
        try:
            return Path(pooch.retrieve(self.url, f"sha256:{self.sha256}", target.name, target.parent))
        except (OSError, ValueError) as error:  # no connection; or the address serves other bytes than it did
            raise DataMissingError(
                f"could not download {self.url}: {error}\n"
                f"Try again later, or get the file elsewhere (its sha256 must be {self.sha256}) and put it "
                f"at {target}."
            ) from error


@dataclass(frozen=True, slots=True)
class SplitRule:
    """How many rows go to which part.

    Parameters
    ----------
    valid, test, train
        Rows of each part; None for train takes all that are left, or, if train is balanced, as many as the
        smaller class allows.
    balanced
        The parts that hold as many rows of one class as of the other; the other parts take rows as they come.
    test_rows
        Column and value that mark the test rows where a split is published; they are the same for every seed.
    """

    valid: int
    test: int
    train: int | None = None
    balanced: frozenset[Part] = frozenset()
    test_rows: tuple[str, str] | None = None

    def draw(self, table: pd.DataFrame, label: str, seed: int) -> tuple[Positions, Positions, Positions]:
        """Return the positions of the train, validation and test rows, each in shuffled order."""
        y: Positions = pd.factorize(table[label], sort=True)[0].astype(np.int64)
        rows = _shuffled(len(table), seed)
        if self.test_rows is None:
            test, rows = self._take("test", rows, y, self.test)
        else:
            column, value = self.test_rows
            held_out = (table[column] == value).to_numpy()[rows]
            test, rows = rows[held_out], rows[~held_out]
        valid, rows = self._take("valid", rows, y, self.valid)
        train = self._train(rows, y)
        # balanced cuts leave the last rows of a part to one class: shuffle each part once more
        train, valid, test = (part[_shuffled(len(part), seed)] for part in (train, valid, test))
        return train, valid, test

    def _train(self, rows: Positions, y: Positions) -> Positions:
        size = len(rows) if self.train is None else self.train
        if "train" in self.balanced:
            size = min(size, 2 * int(np.bincount(y[rows], minlength=y.max() + 1).min()))
        return self._take("train", rows, y, size)[0]

    def _take(self, part: Part, rows: Positions, y: Positions, size: int) -> tuple[Positions, Positions]:
        """Cut the first ``size`` rows off, half of them of each class if the part is balanced."""
        if part in self.balanced:
            classes = pd.Series(y[rows])
            taken = (classes.groupby(classes).cumcount() < size // 2).to_numpy()
        else:
            taken = np.arange(len(rows)) < size
        return rows[taken], rows[~taken]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dataset:
    """A table of people with a label, as the paper uses it.

    Parameters
    ----------
    name, paper_name, title
        Our name, the one the paper prints, and one for readers.
    label, favourable
        The label column and its value that a person wants.
    features
        The columns used, in order.
    rows
        How many rows :meth:`frame` has.
    files, read
        The files, and the function from their paths to a table in the user's units; the table may have more
        columns than are used.
    rule
        How the rows are split.
    licence, source
        The terms of the data, and where they come from and what was done to them.
    masked
        The columns that the paper's masked study does not let a plan change.
    categorical
        Columns of numbers that are names, delivered as text so that nobody mistakes them for quantities.
    codes
        Values of a numeric column that stand for a state ("no record") and not for a quantity.
    notes
        What a user of the numbers should know.
    """

    name: str
    paper_name: str
    title: str
    label: str
    favourable: str | int
    features: tuple[str, ...]
    rows: int
    files: tuple[DataFile, ...]
    read: Callable[..., pd.DataFrame] = field(repr=False)
    rule: SplitRule
    licence: str
    source: str
    masked: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    codes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: str = ""

    def frame(self) -> pd.DataFrame:
        """Return all rows: the features in order, then the label."""
        return self._columns(self._table())

    def split(self, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Return the train, validation and test rows, shuffled; no row is in two of them.

        Examples
        --------
        >>> from gpae import datasets
        >>> train, valid, test = datasets.load("adult").split(seed=0)
        >>> len(train), len(valid), len(test)
        (46842, 1000, 1000)
        """
        table = self._table()
        train, valid, test = self.rule.draw(table, self.label, seed)
        used = self._columns(table)
        return _pick(used, train), _pick(used, valid), _pick(used, test)

    def split_rows(self, seed: int = 0) -> tuple[Positions, Positions, Positions]:
        """Return the positions in :meth:`frame` of the rows that :meth:`split` gives."""
        return self.rule.draw(self._table(), self.label, seed)

    def path(self) -> Path:
        """Return the path of the (first) file; see :meth:`paths`."""
        return self.paths()[0]

    def paths(self) -> tuple[Path, ...]:
        """Return the paths of the files, downloaded if need be, their checksums verified.

        Raises
        ------
        DataMissingError
            If a file is not on this machine and no public address serves it.
        InputError
            If a file is there but is not the expected one.
        """
        return tuple(self._verified(file) for file in self.files)

    def _table(self) -> pd.DataFrame:
        return self.read(*self.paths())

    def _columns(self, table: pd.DataFrame) -> pd.DataFrame:
        return table[[*self.features, self.label]]

    def _verified(self, file: DataFile) -> Path:
        path = file.find() or file.download()
        if path is None:
            raise DataMissingError(self._how_to_get(file))
        if (found := _sha256(path)) != file.sha256:
            raise InputError(
                f"{path} is not the expected file of the data set {self.name!r}: its sha256 is {found}, "
                f"expected {file.sha256}. It is damaged or another version; replace or delete it, then run "
                f"`gpae data fetch {self.name}`."
            )
        return path

    def _how_to_get(self, file: DataFile) -> str:
        looked = " and ".join(str(path) for path in file.places().values())
        if file.shipped is not None:
            return f"{looked}, a part of gpae itself, is missing; install gpae again"
        return (
            f"the data set {self.name!r} ({self.title}) is not on this machine (looked for {looked}), and no "
            f"public address serves the file as it is used here.\n"
            f"Where it comes from: {self.source}.\n"
            f"Terms: {self.licence}.\n"
            f"Where to put it: as {file.path} in a folder named by the environment variable {DATA_HOME}, "
            f"or as {_cache() / file.path}.\n"
            f"Its sha256 must be {file.sha256}; `gpae data check` verifies it."
        )


def _cache() -> Path:
    import pooch  # here, because it is slow to import and a shipped file does not need it

    return Path(pooch.os_cache("gpae"))


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _shuffled(n: int, seed: int) -> Positions:
    """Return 0..n-1 in an order that depends on the seed only.

    Sorting raw draws, and not ``Generator.permutation``: numpy promises never to change the raw stream of a
    bit generator, but not the methods built on it, and a split must outlive versions.
    """
    if seed < 0:
        raise InputError(f"the seed of a split must be zero or more, not {seed}")
    keys = np.random.Philox(seed).random_raw(n)
    return np.argsort(keys, kind="stable").astype(np.int64)


def _pick(table: pd.DataFrame, rows: Positions) -> pd.DataFrame:
    return table.iloc[rows].reset_index(drop=True)
