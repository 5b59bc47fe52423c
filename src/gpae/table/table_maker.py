"""Tables like the training table, made fast from arrays of values: what a user's own model is asked with.

The codec writes answers and goes through Arrow, cell by cell as exact as it gets. A model is asked about a hundred
thousand rows in a search; here each column is one array operation, in the very type that the training table had.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from gpae.table.frames import FrameKind, column_of, frame_kind, from_arrow, to_arrow
from gpae.table.levels import find_level, plain
from gpae.table.scaling import Array
from gpae.table.schema import Continuous, Feature, Integer, Schema

__all__ = ["TableMaker"]

Column = Callable[[Array], Any]
"""Values of a feature (ranks for levels, NaN where missing) -> a column of the table."""


@dataclass(frozen=True, slots=True, eq=False)
class TableMaker:
    """The columns of a training table, by name."""

    names: tuple[str, ...]
    kind: FrameKind
    columns: tuple[Column, ...]

    @classmethod
    def like(cls, frame: Any, schema: Schema) -> "TableMaker":
        """Learn a table's types; its levels are written as the table has them, not as the schema does."""
        kind = frame_kind(frame)
        if kind == "pandas":
            columns = [_pandas_column(feature, frame[feature.name]) for feature in schema.features]
        else:
            arrow = to_arrow(frame)
            columns = [_arrow_column(feature, column_of(arrow, feature.name)) for feature in schema.features]
        return cls(schema.names, kind, tuple(columns))

    def table(self, values: Array, names: Sequence[str] | None = None) -> Any:
        """Return values, B x F, as a table of all features or of those named, in that order."""
        wanted = self.names if names is None else tuple(names)
        made = {name: self.columns[self.names.index(name)](values[:, self.names.index(name)]) for name in wanted}
        if self.kind == "pandas":
            import pandas as pd

            return pd.DataFrame(made)
        return from_arrow(pa.table(made), self.kind)


def _pandas_column(feature: Feature, series: Any) -> Column:
    import pandas as pd

    dtype = series.dtype
    if isinstance(feature, Continuous | Integer):
        if isinstance(dtype, np.dtype) and dtype.kind in "fiu":
            return lambda values: values.astype(dtype if dtype.kind == "f" or _are_whole(values) else np.float64)
        whole = pd.api.types.is_integer_dtype(dtype)
        return lambda values: pd.Series(values).astype(
            np.float64 if whole and not _are_whole(values[~np.isnan(values)]) else dtype
        )
    cells = pd.Series(_cells(feature, series.dropna().unique().tolist()), dtype=dtype).array

    def levels(ranks: Array) -> Any:
        absent = np.isnan(ranks)
        index = np.where(absent, -1, ranks).astype(np.intp)
        return cells.take(index, allow_fill=bool(absent.any()))

    return levels


def _arrow_column(feature: Feature, column: Any) -> Column:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if isinstance(feature, Continuous | Integer):
        whole = pa.types.is_integer(kind)
        return lambda values: pa.array(values, mask=np.isnan(values)).cast(
            pa.float64() if whole and not _are_whole(values[~np.isnan(values)]) else kind, safe=False
        )
    cells = pa.array(_cells(feature, column.unique().drop_null().to_pylist()), kind)

    def levels(ranks: Array) -> Any:
        taken = cells.take(pa.array(np.nan_to_num(ranks).astype(np.int64), mask=np.isnan(ranks)))
        return taken.dictionary_encode() if pa.types.is_dictionary(column.type) else taken

    return levels


def _cells(feature: Feature, seen: list[Any]) -> list[Any]:
    """Each level as the table writes it; one that the table does not hold, as the schema does."""
    levels = feature.levels
    written = {find_level(levels, plain(value)): value for value in seen}
    return [written.get(rank, level) for rank, level in enumerate(levels)]


def _are_whole(values: Array) -> bool:
    """Whether whole numbers can hold them: a person may have a half, or nothing, where training had neither."""
    return bool((values == np.floor(values)).all())
