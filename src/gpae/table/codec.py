"""From a table in the user's units to encoded rows and back, exactly."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpae.errors import InputError
from gpae.table.columns import Read, is_number, is_text, plain_values, read_levels, read_numbers
from gpae.table.frames import FrameKind, column_of, frame_kind, from_arrow, to_arrow
from gpae.table.inference import label_values
from gpae.table.layout import Layout
from gpae.table.levels import Level, listed
from gpae.table.scaling import Array
from gpae.table.schema import Continuous, Feature, Integer, ScalingName, Schema
from gpae.table.value_block import Mask

_FAR = 1e6
_PLAIN = (pa.int64(), pa.float64())
"""Types in which most numbers come."""

__all__ = ["Codec", "ColumnType", "Encoded"]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Encoded rows, and which of the table's rows could not be encoded.

    Parameters
    ----------
    rows
        B x D; NaN throughout where ``bad``.
    values
        B x F: what was read, bit for bit; ranks for levels, NaN where missing.
    bad
        B.
    reasons
        B texts that name column and value; empty where a row is good.
    """

    rows: Array
    values: Array
    bad: Mask
    reasons: list[str]


@dataclass(frozen=True)
class ColumnType:
    """The type in which a column of the training table is written back.

    Parameters
    ----------
    arrow
        Name of the Arrow type of the values.
    categories
        The categories, in order, of a dictionary column; None for any other.
    ordered
        Whether those categories have an order.
    """

    arrow: str
    categories: tuple[Level, ...] | None = None
    ordered: bool = False

    @classmethod
    def of(cls, column: pa.Array, feature: Feature) -> "ColumnType":
        """Return the type of a training column."""
        if isinstance(feature, Continuous | Integer) and not _is_plain_number(column.type):
            # Numbers that came as text, decimals or categories go back as numbers.
            return cls("int64" if isinstance(feature, Integer) else "double")
        if pa.types.is_dictionary(column.type):
            categories = tuple(column.dictionary.to_pylist())
            return cls(str(column.type.value_type), categories, bool(column.type.ordered))
        return cls(str(column.type))

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return pa.type_for_alias(self.arrow)

    def dress(self, values: pa.Array) -> pa.Array:
        """Return values as a dictionary column if the training column was one."""
        if self.categories is None:
            return values
        categories = pa.array(self.categories, self.type)
        index = pc.index_in(values, value_set=categories)
        return pa.DictionaryArray.from_arrays(index, categories, ordered=self.ordered)


def _is_plain_number(kind: pa.DataType) -> bool:
    return is_number(kind) and not pa.types.is_decimal(kind)


@dataclass(frozen=True)
class Codec:
    """A schema, the layout of its encoded rows, and the types of the training table.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"age": [20, 30, 60], "job": ["a", "b", "c"], "paid": ["no", "yes", "no"]})
    >>> codec = Codec.fit(people, Schema.infer(people, label="paid", favourable="yes"))
    >>> encoded = codec.encode(people)
    >>> encoded.rows[1]
    array([0.25, 0.  , 1.  , 0.  ])
    >>> codec.decode(encoded.rows).equals(people.drop_columns("paid"))
    True
    """

    schema: Schema
    layout: Layout
    types: tuple[ColumnType, ...]
    kind: FrameKind = field(default="pandas")

    @classmethod
    def fit(cls, frame: Any, schema: Schema, scaling: ScalingName = "minmax") -> "Codec":
        """Learn the encoding from a training table; a row that does not fit the schema is an error."""
        columns = to_arrow(frame, "training table")
        if schema.labels is None:
            column = column_of(columns, schema.label, "training table")
            schema = schema.with_labels(label_values(schema.label, column))
        values, types = [], []
        for feature in schema.features:
            column = column_of(columns, feature.name, "training table")
            read = _read(feature, column)
            for row, reason in _problems(feature, column, read):
                raise InputError(f"training table, row {row}: {reason}; correct the cell or drop the row")
            values.append(read.values)
            types.append(ColumnType.of(column, feature))
        return cls(schema, Layout.fit(schema, values, scaling), tuple(types), frame_kind(frame))

    def encode(self, frame: Any) -> Encoded:
        """Encode a table; columns beside the features are ignored and the order of columns is free."""
        columns = to_arrow(frame)
        features = self.schema.features
        reads = [_read(feature, column_of(columns, feature.name)) for feature in features]
        values = np.stack([read.values for read in reads], axis=1)
        reasons: dict[int, list[str]] = {}
        for i in np.flatnonzero(~np.isfinite(values).all(axis=0)).tolist():  # what is unreadable is NaN too
            for row, reason in _problems(features[i], columns[features[i].name], reads[i]):
                reasons.setdefault(row, []).append(reason)
        with np.errstate(over="ignore"):
            rows = self.layout.encode(np.where(np.isfinite(values), values, np.nan))
        for row, reason in self._far_out(values, rows):
            reasons.setdefault(row, []).append(reason)
        texts, bad = [""] * len(values), np.zeros(len(values), dtype=np.bool_)
        for row, told in reasons.items():
            texts[row] = "; ".join(told)
        bad[list(reasons)] = True
        rows[bad] = np.nan
        return Encoded(rows, values, bad, texts)

    def _far_out(self, values: Array, rows: Array) -> Iterator[tuple[int, str]]:
        """Yield the rows with a number so far outside the training range that no distance to it makes sense."""
        far = np.abs(rows) > _FAR
        if not far.any():
            return
        for i, block in enumerate(self.layout.features):
            for row in np.flatnonzero(far[:, block.columns].any(axis=1)).tolist():
                yield row, f"column {block.name!r} holds {values[row, i]:g}, more than {_FAR:g} training ranges away"

    def labels(self, frame: Any) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the label of each row, 1 for the favourable one."""
        assert self.schema.labels is not None
        name = self.schema.label
        column = plain_values(name, column_of(to_arrow(frame), name))
        read = read_levels(name, column, self.schema.labels)
        wrong = np.flatnonzero(np.isnan(read.values))
        if len(wrong):
            cell = column[int(wrong[0])].as_py()
            raise InputError(
                f"label column {name!r}, row {wrong[0]}: {cell!r} is no known label; "
                f"expected {listed(self.schema.labels)}"
            )
        return read.values.astype(np.int64)

    def decode(
        self,
        U: Array,
        *,
        origin: Any = None,
        X: Array | None = None,
        kind: FrameKind | Literal["same"] = "same",
        null: Mask | None = None,
        values: Array | None = None,
        wide: bool = False,
    ) -> Any:
        """Return rows as a table in the user's units, with the types of the training table.

        Parameters
        ----------
        U
            Encoded rows.
        origin, X
            The table that the rows started from and its encoding, row by row: a feature that U did not change
            is copied from there bit for bit.
        kind
            Which library's frame to return; ``same`` follows ``origin``, or else the training table.
        null
            Rows to leave empty; those that are NaN in U are left empty too.
        values
            What the rows are in the user's units (B x F; ranks for levels), where that is known better than by U.
        wide
            Write numbers of single precision in double: where a rule between columns asks for more than theirs.
        """
        empty = np.asarray(np.isnan(U).any(axis=1), dtype=np.bool_)
        if null is not None:
            empty |= null
        values = self.layout.to_user(U) if values is None else values
        copied = None if origin is None or X is None else to_arrow(origin)
        kept = None if X is None else ~self.layout.changed(U, X) & ~empty[:, None]
        columns = []
        for i, (feature, type_) in enumerate(zip(self.schema.features, self.types, strict=True)):
            cells = np.where(empty, np.nan, values[:, i])
            number = pa.float64() if wide and pa.types.is_float32(type_.type) else type_.type
            if not isinstance(feature, Continuous | Integer):
                columns.append(type_.dress(_levels(feature.levels, cells, type_.type)))
            elif copied is None or kept is None:
                columns.append(_numbers(cells, number))
            else:
                own = column_of(copied, feature.name)
                columns.append(_merge(feature.name, own, kept[:, i], cells, number))
        table = pa.table(columns, names=list(self.schema.names))
        same = self.kind if origin is None else frame_kind(origin)
        return from_arrow(table, same if kind == "same" else kind)

    def to_dict(self) -> dict[str, Any]:
        """Return the codec as plain JSON values, without loss."""
        types = [
            {"arrow": t.arrow, "categories": t.categories and list(t.categories), "ordered": t.ordered}
            for t in self.types
        ]
        schema = self.schema.to_dict()
        return {"schema": schema, "layout": self.layout.to_dict(), "types": types, "kind": self.kind}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> "Codec":
        """Rebuild a codec from :meth:`to_dict`."""
        types = tuple(
            ColumnType(t["arrow"], t["categories"] and tuple(t["categories"]), t["ordered"]) for t in plain["types"]
        )
        layout = Layout.from_dict(plain["layout"])
        return Codec(Schema.from_dict(plain["schema"]), layout, types, plain["kind"])


def _read(feature: Feature, column: pa.Array) -> Read:
    if isinstance(feature, Continuous | Integer):
        return read_numbers(feature.name, column)
    return read_levels(feature.name, column, feature.levels)


def _problems(feature: Feature, column: pa.Array, read: Read) -> Iterator[tuple[int, str]]:
    """Yield the rows whose cell cannot be encoded, each with the reason."""
    infinite = np.isinf(read.values)
    absent = np.isnan(read.values) & ~read.unreadable & (not feature.missing)
    for row in np.flatnonzero(infinite | absent | read.unreadable).tolist():
        cell = column[row].as_py()
        if absent[row]:
            reason = f"column {feature.name!r} has no value, and training had one in every row"
        elif isinstance(feature, Continuous | Integer):
            reason = f"column {feature.name!r} holds {cell!r}, which is no finite number"
        else:
            known = listed(feature.levels)
            reason = f"column {feature.name!r} holds {cell!r}, a level unknown in training (known: {known})"
        yield row, reason


def _levels(levels: tuple[Level, ...], ranks: Array, kind: pa.DataType) -> pa.Array:
    index = pa.array(np.nan_to_num(ranks).astype(np.int64), mask=np.isnan(ranks))
    return _typed_levels(levels, kind).take(index)


def _typed_levels(levels: tuple[Level, ...], kind: pa.DataType) -> pa.Array:
    """Return the levels in the training table's type, which need not be the schema's ("1" for 1)."""
    if is_text(kind):
        return pa.array([str(level) for level in levels], kind)
    return pa.array(levels).cast(kind, safe=False)


def _numbers(values: Array, kind: pa.DataType) -> pa.Array:
    """Return numbers in a type, or in the next wider one that holds them; NaN is missing."""
    exact = pa.array(values, mask=np.isnan(values))
    return _widened(exact, kind)


def _widened(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(kind):
        return pc.cast(values, kind, safe=False)
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    for wider in (kind, pa.int64()):
        try:
            return pc.cast(values, wider)
        except pa.ArrowInvalid:
            continue
    return pc.cast(values, pa.float64(), safe=False)


def _fits(values: pa.Array, kind: pa.DataType) -> bool:
    """Whether a narrower type holds every value bit for bit."""
    wide = pc.cast(values, pa.float64(), safe=False)
    there_and_back = pc.cast(pc.cast(values, kind, safe=False), pa.float64())
    return pc.all(pc.equal(there_and_back, wide)).as_py() is not False


def _merged_as_they_are(own: pa.Array, kept: Mask, values: Array, kind: pa.DataType) -> pa.Array | None:
    """The same where both are of the type that is wanted and nothing is missing, in a tenth of the time; else None."""
    if own.type != kind or kind not in _PLAIN or own.null_count or not np.isfinite(values[~kept]).all():
        return None
    cells = own.to_numpy().copy()
    cells[~kept] = values[~kept]
    return pa.array(cells) if (cells[~kept] == values[~kept]).all() else None


def _merge(name: str, own: pa.Array, kept: Mask, values: Array, kind: pa.DataType) -> pa.Array:
    """Return the origin's cells where kept, the new values elsewhere."""
    if (plain := _merged_as_they_are(own, kept, values, kind)) is not None:
        return plain
    own = plain_values(name, own)
    if not _is_plain_number(own.type):
        read = read_numbers(name, own).values
        own = pa.array(read, mask=np.isnan(read))
    own = pc.if_else(pa.array(kept), own, pa.scalar(None, own.type))
    # in the training type first: whether a neighbour needs a wider column must not change a value
    new = _numbers(np.where(kept, np.nan, values), kind)
    own = _widened(own, pa.float64() if pa.types.is_float32(kind) and not _fits(own, kind) else kind)
    if own.type != new.type:
        own, new = (pc.cast(part, pa.float64(), safe=False) for part in (own, new))
    return pc.if_else(pa.array(kept), own, new)
