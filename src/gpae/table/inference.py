"""Read a schema off a training table: kinds, ranges, steps, special codes; and say what is wrong with it."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gpae.errors import InputError
from gpae.table.columns import distinct, is_text, plain_values, read_numbers
from gpae.table.frames import column_of, to_arrow
from gpae.table.levels import Level, listed, plain
from gpae.table.scaling import Array
from gpae.table.schema import Binary, Categorical, Continuous, Feature, Integer, Ordinal, Schema, two_labels

__all__ = ["infer_schema", "label_values"]

_MOST_LEVELS = 100
_MOST_CODES = 3
_MOST_DECIMALS = 9
# Beyond this a square overflows.
_LARGEST_NUMBER = 1e150
# With fewer distinct values a common step is likely to be chance.
_ENOUGH_FOR_A_STEP = 10
# Text with more levels than this, all or nearly all of them numbers, is a column of numbers.
_MOST_NUMBERED_LEVELS = 20
_LEADING_ZERO = re.compile(r"[+-]?0\d")


def infer_schema(
    frame: Any,
    *,
    label: str,
    favourable: Any,
    immutable: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> Schema:
    """Read a schema off a training table.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow table with the label column.
    label, favourable
        The label column, and its value that a person wants.
    immutable
        Features that must not change.
    drop
        Columns that are no features.
    """
    columns = to_arrow(frame, "training table")
    found = label_values(label, column_of(columns, label, "training table"))
    labels = two_labels(label, found, favourable)
    drop = (drop,) if isinstance(drop, str) else drop
    for name in drop:
        column_of(columns, name, "training table")
    features = tuple(_feature(name, column) for name, column in columns.items() if name != label and name not in drop)
    if not features:
        raise InputError(f"the training table has no feature beside the label {label!r}")
    schema = Schema(features=features, label=label, favourable=labels[1], labels=labels)
    return schema.with_fixed(immutable)


def label_values(name: str, column: pa.Array) -> list[Level]:
    """Return the distinct values of a label column in order; a missing label is an error."""
    values, codes = distinct(plain_values(name, column))
    absent = np.flatnonzero(codes < 0)
    if len(absent):
        raise InputError(f"label column {name!r} has no value in row {absent[0]}; fill it or drop the row")
    return sorted({plain(values[code]) for code in np.unique(codes)})


def _feature(name: str, column: pa.Array) -> Feature:
    ordered = pa.types.is_dictionary(column.type) and column.type.ordered
    in_order = column.dictionary.to_pylist() if pa.types.is_dictionary(column.type) else None
    cells = plain_values(name, column)
    values, codes = distinct(cells)
    seen = [values[code] for code in np.unique(codes) if code >= 0]
    missing = bool((codes < 0).any())
    if not seen:
        raise InputError(f"column {name!r} has no values at all; drop it or fill it")
    if len(seen) == 1 and not missing:
        raise InputError(f"column {name!r} holds {seen[0]!r} in every row and tells nothing; drop it")
    if in_order is not None:
        levels = [plain(value) for value in in_order if value in seen]
        return _levelled(name, levels, missing, ordered=ordered)
    if pa.types.is_boolean(cells.type) or (is_text(cells.type) and not _holds_numbers(name, seen, cells)):
        return _levelled(name, sorted(seen), missing)
    return _number(name, read_numbers(name, cells).values)


def _levelled(name: str, levels: list[Any], missing: bool, *, ordered: bool = False) -> Feature:
    if len(levels) > _MOST_LEVELS:
        raise InputError(
            f"column {name!r} has {len(levels)} different levels ({listed(levels, 3)}); "
            f"at most {_MOST_LEVELS} are taken: drop it, group its levels, or turn it into numbers"
        )
    if ordered and len(levels) > 1:
        return Ordinal(name=name, levels=tuple(levels), missing=missing)
    if len(levels) == 2:
        return Binary(name=name, levels=tuple(levels), missing=missing)
    return Categorical(name=name, levels=tuple(levels), missing=missing)


def _holds_numbers(name: str, seen: list[str], cells: pa.Array) -> bool:
    """Return whether text is numbers; if it nearly is, the rest are slips, and as levels they would hide a number."""
    # 007 is a code, not the number 7.
    if len(seen) <= _MOST_NUMBERED_LEVELS or any(_LEADING_ZERO.match(text) for text in seen):
        return False
    read = read_numbers(name, cells)
    wrong = np.flatnonzero(read.unreadable)
    if 0 < len(wrong) <= 0.1 * (len(cells) - cells.null_count):
        raise InputError(
            f"column {name!r} holds numbers, except for {len(wrong)} cells, the first in row {wrong[0]}: "
            f"{cells[int(wrong[0])].as_py()!r}; correct them or leave them empty"
        )
    return not len(wrong)


def _number(name: str, cells: Array) -> Feature:
    too_large = np.flatnonzero(np.abs(cells) > _LARGEST_NUMBER)
    if len(too_large):
        row = too_large[0]
        raise InputError(
            f"column {name!r} holds {cells[row]:g} in row {row}, too large to reckon with; "
            "write the number that is meant or leave it empty"
        )
    values = np.unique(cells[~np.isnan(cells)])
    missing = bool(np.isnan(cells).any())
    whole = bool((values == np.floor(values)).all() and np.abs(values).max() < 2.0**53)
    if len(values) == 1 or (len(values) == 2 and whole):
        return _levelled(name, [plain(value) for value in values.tolist()], missing)
    return _integer(name, values, missing) if whole else _continuous(name, values, missing)


def _integer(name: str, values: Array, missing: bool) -> Integer:
    codes = values[values < 0]
    if not (0 < len(codes) <= _MOST_CODES and len(codes) < len(values)):
        codes = codes[:0]
    values = values[len(codes) :]
    # Beside codes the range starts at 0, whether or not training saw a 0.
    minimum = 0 if len(codes) else int(values[0])
    step = _common_step(values.astype(np.int64) - minimum)
    return Integer(
        name=name,
        minimum=minimum,
        maximum=int(values[-1]),
        step=step,
        codes=tuple(codes.tolist()),
        missing=missing,
    )


def _continuous(name: str, values: Array, missing: bool) -> Continuous:
    low, high = float(values[0]), float(values[-1])
    for places in range(1, _MOST_DECIMALS + 1):
        ten = 10.0**places
        scaled = np.rint(values * ten)
        if (high - low) * ten >= 2.0**50 or np.abs(scaled).max() >= 2.0**53:
            break
        if (scaled / ten == values).all():
            step = _common_step((scaled - scaled[0]).astype(np.int64)) / ten
            return Continuous(name=name, minimum=low, maximum=high, step=step, missing=missing)
    return Continuous(name=name, minimum=low, maximum=high, missing=missing)


def _common_step(distances: Any) -> int:
    """Return the greatest common divisor of the distances from the minimum, if there are enough."""
    return int(np.gcd.reduce(distances)) or 1 if len(distances) >= _ENOUGH_FOR_A_STEP else 1
