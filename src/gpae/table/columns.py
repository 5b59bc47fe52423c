"""One column of a table as numbers or as ranks of levels, whatever type it arrived in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpae.errors import InputError
from gpae.table.levels import Level, find_level
from gpae.table.scaling import Array
from gpae.table.value_block import Mask

__all__ = ["Read", "distinct", "is_number", "is_text", "plain_values", "read_levels", "read_numbers"]


_EXACT = (pa.int64(), pa.int32(), pa.float64())
"""Types whose values are numbers as they stand."""


@dataclass(frozen=True, eq=False)
class Read:
    """Values of a column: NaN where missing or unreadable.

    Parameters
    ----------
    values
        Numbers, or ranks of levels.
    unreadable
        Where a cell holds something that is no number, or no known level.
    """

    values: Array
    unreadable: Mask


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def plain_values(name: str, column: pa.Array) -> pa.Array:
    """Return a column without its dictionary; dates, lists and the like are refused."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return column
    raise InputError(
        f"column {name!r} holds values of type {kind}{_example(column)}, which is neither number, text nor "
        "true/false; turn it into one of those (a date into a number of days), or drop it"
    )


def _example(column: pa.Array) -> str:
    known = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    return f" (row {known[0]}: {column[int(known[0])].as_py()!r})" if len(known) else ""


def distinct(column: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct values of a plain column, and each row's position among them (-1: missing)."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # NaN, unlike null, is a value to Arrow.
    absent = [i for i, value in enumerate(values) if value is None or value != value]
    return values, np.where(np.isin(codes, absent), -1, codes)


def read_numbers(name: str, column: pa.Array) -> Read:
    """Read a column as numbers; text is parsed cell by cell."""
    if column.type in _EXACT and not column.null_count:
        return Read(column.to_numpy().astype(np.float64), np.zeros(len(column), dtype=np.bool_))
    column = plain_values(name, column)
    if is_text(column.type):
        return _lookup(column, _parse)
    if pa.types.is_float16(column.type):
        column = pc.cast(column, pa.float32())
    if pa.types.is_float32(column.type) or pa.types.is_decimal(column.type):
        # Through the shortest decimal: the float32 0.1 means 0.1, not 0.10000000149.
        column = pc.cast(column, pa.string())
    values = pc.cast(column, pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    return Read(values, np.zeros(len(values), dtype=np.bool_))


def read_levels(name: str, column: pa.Array, levels: Sequence[Level]) -> Read:
    """Read a column as ranks among the levels."""
    return _lookup(plain_values(name, column), lambda value: find_level(levels, value))


def _lookup(column: pa.Array, meaning: Any) -> Read:
    """Translate each distinct value once; a meaning of None is unreadable."""
    values, codes = distinct(column)
    found = [None if value is None else meaning(value) for value in values]
    table = np.array([np.nan if number is None else float(number) for number in found] + [np.nan])
    strange = np.array([number is None for number in found] + [False])
    return Read(table[codes], strange[codes])


def _parse(text: str) -> float | None:
    if not text.strip():
        return np.nan
    try:
        return float(text)
    except ValueError:
        return None
