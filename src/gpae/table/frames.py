"""Data frames at the door: pandas, polars and pyarrow to Arrow and back, and tables in files."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from gpae.errors import InputError
from gpae.files import check_place, written_whole
from gpae.table.levels import closest, listed

__all__ = ["FrameKind", "column_of", "frame_kind", "from_arrow", "has_column", "read_table", "to_arrow", "write_table"]

FrameKind: TypeAlias = Literal["pandas", "polars", "pyarrow"]

# "None" is left out: it is a level of many a text column. A quoted cell is always text.
_NULLS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
_LARGEST_BLOCK = 2**31 - 1
_MANY = 12
"""Columns of a kind that are fetched faster together than one by one."""
_NUMPY = frozenset(np.dtype(kind) for kind in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"))


def _open(frame: Any) -> "nw.DataFrame[Any]":
    try:
        return nw.from_native(frame, eager_only=True)
    except DuplicateError:
        names = [str(name) for name in getattr(frame, "column_names", getattr(frame, "columns", ()))]
        raise InputError(f"column {_twice(names)!r} occurs twice in the table; rename or drop one") from None
    except TypeError:
        raise InputError(
            f"a table is needed (a pandas or polars DataFrame, a pyarrow Table), got {type(frame).__name__}; "
            "collect a lazy frame first, and wrap an array or a dict in pandas.DataFrame"
        ) from None


def _twice(names: Sequence[str]) -> str:
    return next(name for i, name in enumerate(names) if name in names[:i])


def frame_kind(frame: Any) -> FrameKind:
    """Return which library a table belongs to; anything unusual is handed back as pandas."""
    if isinstance(frame, pa.Table):
        return "pyarrow"
    if nw.dependencies.is_pandas_dataframe(frame):
        return "pandas"
    implementation = _open(frame).implementation
    if implementation.is_polars():
        return "polars"
    return "pyarrow" if implementation.is_pyarrow() else "pandas"


def to_arrow(frame: Any, what: str = "table") -> dict[str, pa.Array]:
    """Return the columns of a table by name; an empty table is an error."""
    whole = isinstance(frame, pa.Table) and len(set(frame.column_names)) == frame.num_columns
    opened = frame if whole else _open(frame)
    names = list(frame.column_names if whole else opened.columns)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"column names must be text, found {name!r}; rename the columns of the {what}")
        if not name.strip():
            at = names.index(name) + 1
            raise InputError(
                f"column {at} of the {what} has no name; name it or drop it "
                "(pandas writes its index so, unless told to_csv(index=False))"
            )
    if not names or len(opened) == 0:
        raise InputError(f"the {what} is empty ({len(opened)} rows, {len(names)} columns)")
    if whole:
        return {name: _whole(frame[name]) for name in names}
    plain = _plain_columns(frame) if nw.dependencies.is_pandas_dataframe(frame) else {}
    return {name: plain[name] if name in plain else _arrow_column(opened[name]) for name in names}


def _plain_columns(frame: Any) -> dict[str, pa.Array]:
    """The numbers of a pandas table that NumPy holds, all of a kind at once where there are many.

    Asked for one by one as series they would take twenty times as long, which counts for a table of one person.
    """
    kinds, names = frame.dtypes.to_numpy(), list(frame.columns)
    plain: dict[str, NDArray[Any]] = {}
    for kind in _NUMPY.intersection(kinds):
        which = np.flatnonzero(kinds == kind)
        if len(which) == len(kinds):
            plain |= dict(zip(names, frame.to_numpy().T, strict=True))
        elif len(which) >= _MANY:
            plain |= dict(zip([names[at] for at in which], frame.iloc[:, which].to_numpy().T, strict=True))
        else:
            plain |= {names[at]: frame[names[at]].to_numpy() for at in which}
    return {name: pa.array(values, from_pandas=True) for name, values in plain.items()}


def _arrow_column(series: "nw.Series[Any]") -> pa.Array:
    try:
        column = series.to_arrow()
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        column = _as_text(series)
    return _whole(column)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """In one piece."""
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())  # Arrow's own functions do not all know the view
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _as_text(series: "nw.Series[Any]") -> pa.Array:
    """Read an object column of mixed types, or of endless whole numbers, as text; numbers are parsed again from it."""
    absent = series.is_null().to_list()
    cells = [None if null else str(cell) for cell, null in zip(series.to_list(), absent, strict=True)]
    try:
        return pa.array(cells, pa.string())
    except UnicodeEncodeError as error:
        row = next(i for i, cell in enumerate(cells) if cell == error.object)
        raise InputError(f"column {series.name!r} holds broken text in row {row}: {error.object!r}; mend it") from None


def has_column(frame: Any, name: str) -> bool:
    """Whether a table has a column of this name."""
    return name in _open(frame).columns


def column_of(columns: dict[str, pa.Array], name: str, what: str = "table") -> pa.Array:
    """Return one column; a missing one is an error that lists the near matches."""
    if name not in columns:
        known = list(columns)
        raise InputError(
            f"the {what} has no column {name!r}; {closest(name, known)}its columns are {listed(known, 50)}"
        )
    return columns[name]


def from_arrow(table: pa.Table, kind: FrameKind) -> Any:
    """Return an Arrow table as a frame of the asked kind, integers and booleans nullable."""
    if kind == "pyarrow":
        return table
    return _to_pandas(table) if kind == "pandas" else _to_polars(table)


def _to_pandas(table: pa.Table) -> Any:
    import pandas as pd

    nullable: dict[Any, Any] = {pa.bool_(): pd.BooleanDtype()}
    for dtype in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"):
        nullable[pa.type_for_alias(dtype.lower())] = pd.api.types.pandas_dtype(dtype)
    return table.to_pandas(types_mapper=nullable.get)


def _to_polars(table: pa.Table) -> Any:
    try:
        import polars as pl
    except ImportError:
        raise InputError("polars is not installed; pip install 'gpae[polars]', or ask for pandas") from None
    frame: Any = pl.from_arrow(table)
    ordered = {
        name: pl.Enum(table[name].chunk(0).dictionary.to_pylist())
        for name in table.column_names
        if pa.types.is_dictionary(table[name].type) and table[name].type.ordered and len(table)
    }
    return frame.cast(ordered) if ordered else frame


def read_table(path: str | Path) -> pa.Table:
    """Read a table from ``.csv``, ``.csv.gz``, ``.parquet`` or a folder of parquet files."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"table {str(path)!r} does not exist; check the path")
    reader = _reader(path)
    try:
        table = reader(path)
        names = table.column_names
    except InputError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        hint = "; a CSV must be UTF-8 text with commas, every line as long as its header" if reader is _read_csv else ""
        raise InputError(f"table {str(path)!r} cannot be read: {error}{hint}") from None
    if len(set(names)) < len(names):
        raise InputError(f"table {str(path)!r} has the column {_twice(names)!r} twice; rename one in its header")
    if table.num_rows == 0:
        raise InputError(f"table {str(path)!r} has a header but no rows")
    return table


def _reader(path: Path) -> Callable[[Path], pa.Table]:
    name = path.name.lower()
    if path.is_dir():
        if not any(path.rglob("*.parquet")):
            raise InputError(f"folder {str(path)!r} holds no .parquet file")
        return _read_parquet
    if name.endswith((".parquet", ".pq")):
        return _read_parquet
    if name.endswith((".csv", ".csv.gz")):
        return _read_csv
    raise InputError(f"table {str(path)!r} must be .csv, .csv.gz, .parquet or a folder of parquet files")


def _read_parquet(path: Path) -> pa.Table:
    if path.is_dir():
        _refuse_uneven(sorted(path.rglob("*.parquet")))
    return pq.read_table(path)


def _refuse_uneven(files: Sequence[Path]) -> None:
    """Arrow fills a column that one of the files lacks with nulls, which would pass for missing values."""
    columns = {file: pq.read_schema(file).names for file in files}
    every = dict.fromkeys(name for names in columns.values() for name in names)
    for file, names in columns.items():
        for name in every:
            if name not in names:
                raise InputError(f"table {str(file)!r} lacks the column {name!r} that other files of its folder have")


def _read_csv(path: Path) -> pa.Table:
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        data = gzip.decompress(data)
    if not data.strip():
        raise InputError(f"table {str(path)!r} is an empty file")
    # One block: Arrow settles the types on the first block and fails on a later one that disagrees.
    block = min(max(len(data), 1), _LARGEST_BLOCK)
    # Single-threaded: Arrow's reader threads abort the process when it ends soon after reading.
    options = pacsv.ReadOptions(block_size=block, use_threads=False)
    convert = pacsv.ConvertOptions(null_values=_NULLS, strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = pacsv.read_csv(pa.BufferReader(data), read_options=options, convert_options=convert)
    if table.num_columns == 1 and any(mark in table.column_names[0] for mark in ";\t|"):
        raise InputError(
            f"table {str(path)!r} has one column, {table.column_names[0]!r}; separate its columns by commas"
        )
    for column in table.schema:
        if pa.types.is_binary(column.type):  # what Arrow makes of bytes that are no UTF-8
            raise ValueError(f"column {column.name!r} holds text in another encoding")
    return table


def write_table(frame: Any, path: str | Path) -> None:
    """Write a table to ``.csv``, ``.parquet`` or ``.json`` (records), whole or not at all."""
    path = Path(path)
    writers = {".csv": _write_csv, ".parquet": pq.write_table, ".json": _write_json}
    check_place(path, tuple(writers))
    opened = _open(frame)
    table = pa.table({name: _arrow_column(opened[name]) for name in opened.columns})
    with written_whole(path) as temporary:
        writers[path.suffix.lower()](table, temporary)


def _write_csv(table: pa.Table, path: Path) -> None:
    columns = [pc.cast(c, c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    pacsv.write_csv(pa.table(dict(zip(table.column_names, columns, strict=True))), path)


def _short_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The float32 0.1 as 0.1, not as 0.10000000149."""
    return pc.cast(pc.cast(column, pa.string()), pa.float64()) if pa.types.is_float32(column.type) else column


def _write_json(table: pa.Table, path: Path) -> None:
    columns = {name: _short_numbers(table[name]) for name in table.column_names}
    rows = pa.table(columns).to_pylist()
    records = [{name: None if cell != cell else cell for name, cell in record.items()} for record in rows]
    text = json.dumps(records, ensure_ascii=False, indent=1, default=str, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
