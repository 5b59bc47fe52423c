"""How an encoded row is laid out, and which rows a person may be asked to become.

Arrays only; data frames stop at the codec. Shapes: B rows, D encoded columns, F features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from gpae.errors import InputError
from gpae.table.grid import Grid
from gpae.table.level_block import LevelBlock
from gpae.table.levels import closest, listed
from gpae.table.scaling import Array, MinMax, fit_scaling
from gpae.table.schema import (
    Binary,
    Change,
    Continuous,
    Feature,
    Integer,
    Ordinal,
    ScalingName,
    Schema,
)
from gpae.table.value_block import SAME, Mask, ValueBlock

__all__ = ["Alternatives", "Block", "Layout"]

Block: TypeAlias = Annotated[ValueBlock | LevelBlock, Field(discriminator="encoding")]


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Other settings of one feature, for every row.

    Parameters
    ----------
    feature
        Position of the feature in ``layout.features``.
    columns
        The encoded columns that the settings replace.
    values
        B x m x w: m settings of the w columns.
    allowed
        B x m: False where a setting is forbidden or is the current one.
    """

    feature: int
    columns: slice
    values: Array
    allowed: Mask


@dataclass(frozen=True)
class Layout:
    """The blocks of an encoded row, one a feature, in order.

    Examples
    --------
    >>> from gpae.table.schema import Categorical
    >>> schema = Schema(
    ...     features=(
    ...         Integer(name="age", minimum=20, maximum=60),
    ...         Categorical(name="job", levels=("a", "b")),
    ...     ),
    ...     label="y", favourable=1,
    ... )
    >>> layout = Layout.fit(schema, [np.array([20.0, 60.0]), np.array([0.0, 1.0])])
    >>> layout.column_names
    ('age', 'job=a', 'job=b')
    >>> layout.encode(np.array([[30.0, 1.0]]))
    array([[0.25, 0.  , 1.  ]])
    """

    features: tuple[Block, ...]

    @classmethod
    def fit(cls, schema: Schema, values: Sequence[Array], scaling: ScalingName = "minmax") -> "Layout":
        """Lay out a schema, given each feature's training values (ranks for levels, NaN where missing)."""
        blocks: list[Block] = []
        start = 0
        for feature, column in zip(schema.features, values, strict=True):
            blocks.append(_block(feature, start, column, scaling))
            start += blocks[-1].width
        return cls(tuple(blocks))

    def tightened(self, schema: Schema) -> "Layout":
        """The same encoding with the directions and the grids of a schema of the same features."""
        return Layout(tuple(_tight(b, feature) for b, feature in zip(self.features, schema.features, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as plain JSON values, without loss."""
        plain: dict[str, Any] = _ADAPTER.dump_python(self, mode="json")
        return plain

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> "Layout":
        """Rebuild a layout from :meth:`to_dict`."""
        return _ADAPTER.validate_python(plain)

    @property
    def width(self) -> int:
        """Number D of encoded columns."""
        return sum(block.width for block in self.features)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(block.name for block in self.features)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(name for block in self.features for name in block.column_names)

    @cached_property
    def continuous(self) -> Mask:
        """Which encoded columns hold numbers (D), for distances."""
        mask = np.zeros(self.width, dtype=np.bool_)
        mask[[block.start for block in self.features if block.kind in ("continuous", "integer")]] = True
        return mask

    @cached_property
    def discrete(self) -> Mask:
        """Which encoded columns are 0 or 1 (D): one-hot groups, binary columns and missing flags."""
        mask = np.zeros(self.width, dtype=np.bool_)
        for block in self.features:
            numeric = isinstance(block, ValueBlock) and block.kind != "binary"
            mask[block.start + numeric : block.start + block.width] = True
        return mask

    @cached_property
    def fixed(self) -> Mask:
        """Which encoded columns nobody may change (D)."""
        return np.repeat([b.change is Change.fixed for b in self.features], [b.width for b in self.features])

    @cached_property
    def groups(self) -> list[NDArray[np.intp]]:
        """Column indices of each one-hot group."""
        return [np.arange(b.start, b.start + b.width) for b in self.features if isinstance(b, LevelBlock)]

    def named(self, names: Sequence[str]) -> Mask:
        """Return which features have these names (F); an unknown name is an error."""
        for name in names:
            if name not in self.names:
                raise InputError(
                    f"column {name!r} is no feature; {closest(name, self.names)}"
                    f"the features are {listed(self.names, 50)}"
                )
        return np.array([name in names for name in self.names], dtype=np.bool_)

    def encode(self, values: Array) -> Array:
        """Encode user's values, B x F (ranks for levels, NaN where missing), to rows, B x D."""
        return np.concatenate([b.encode(values[:, i]) for i, b in enumerate(self.features)], axis=1)

    def to_user(self, U: Array) -> Array:
        """Return the user's values of rows, B x F (ranks for levels, NaN where missing)."""
        return np.stack([block.decode(U[:, block.columns]) for block in self.features], axis=1)

    def box(self, X: Array, fixed: Mask | None = None) -> tuple[Array, Array]:
        """Return the lowest and highest encoded values that each person may be asked to reach, B x D each.

        Parameters
        ----------
        X
            Encoded rows.
        fixed
            Features to keep, F or B x F, beside those that the schema fixes. Their bounds are X, bit for bit.
        """
        least, most = self._ends
        lower, upper = np.minimum(least, X), np.maximum(most, X)
        for block in self.features:
            if block.change in (Change.up, Change.down):
                lower[:, block.columns], upper[:, block.columns] = block.box(X[:, block.columns])
        keep = self._kept(fixed)
        if keep.any():
            keep = np.repeat(keep, [block.width for block in self.features], axis=-1)
            lower, upper = np.where(keep, X, lower), np.where(keep, X, upper)
        return lower, upper

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """The least and the largest value of each column (D), for whoever is not beyond them already."""
        ends = [block.ends for block in self.features]
        return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])

    def _kept(self, fixed: Mask | None) -> Mask:
        """Features that are kept, F or B x F."""
        always = np.array([block.change is Change.fixed for block in self.features])
        return always if fixed is None else always | np.asarray(fixed, dtype=np.bool_)

    def _parts(self, *rows: Array) -> Iterator[tuple[int, Block, list[Array]]]:
        for i, block in enumerate(self.features):
            yield i, block, [part[:, block.columns] for part in rows]

    def snap(self, U: Array, X: Array, lower: Array, upper: Array) -> Array:
        """Return the nearest allowed rows: one level a group, whole steps, inside the bounds.

        A feature that equals the person's is copied from X bit for bit. Snapping twice changes nothing more.
        """
        snapped = np.empty_like(U, dtype=np.float64)
        for _, block, (u, x, low, high) in self._parts(U, X, lower, upper):
            snapped[:, block.columns] = block.snap(u, x, low, high)
        return snapped

    def is_allowed(self, U: Array, X: Array, lower: Array, upper: Array) -> Mask:
        """Return which rows (B) the persons X may be asked to become, as they stand."""
        fits = np.ones(len(U), dtype=np.bool_)
        for _, block, (u, x, low, high) in self._parts(U, X, lower, upper):
            fits &= block.allowed(u, x, low, high)
        return fits

    def alternatives(self, U: Array, X: Array, lower: Array, upper: Array) -> list[Alternatives]:
        """Return other settings of each feature; the rest of U stays as it is.

        Features that nobody may change are listed too: a row's moves must not depend on the rows around it.
        """
        found = []
        for i, block, (u, x, low, high) in self._parts(U, X, lower, upper):
            values = block.settings(u, x, low, high)
            allowed = block.allowed(values, x[:, None], low[:, None], high[:, None])
            allowed &= (np.abs(values - u[:, None]) > SAME).any(axis=-1)
            found.append(Alternatives(i, block.columns, values, allowed))
        return found

    def changed(self, U: Array, X: Array) -> Mask:
        """Return which features differ, B x F."""
        apart = U - X
        np.abs(apart, out=apart)
        moved = apart > SAME
        changed = moved[:, self._starts]
        # place by place: a reduction feature by feature takes several times as long
        for wide, columns in self._further_places:
            changed[:, wide] |= moved[:, columns]
        return changed

    def __hash__(self) -> int:
        """That of the blocks, counted once: what is packed for a layout is looked up at every step of a search."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.features)

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where each feature's columns begin."""
        return np.array([block.start for block in self.features], dtype=np.intp)

    @cached_property
    def _widths(self) -> NDArray[np.intp]:
        """How many columns each feature has."""
        return np.array([block.width for block in self.features], dtype=np.intp)

    @cached_property
    def _further_places(self) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]:
        """For the second column of a feature, the third and so on: which features have one, and where it is."""
        wide = [np.flatnonzero(self._widths > place) for place in range(1, self._widths.max(initial=1))]
        return tuple((which, self._starts[which] + place) for place, which in enumerate(wide, 1))

    def n_changes(self, U: Array, X: Array) -> NDArray[np.int64]:
        """Return how many features differ, B."""
        return np.asarray(self.changed(U, X).sum(axis=1), dtype=np.int64)


_ADAPTER = TypeAdapter(Layout)


def _block(feature: Feature, start: int, values: Array, scaling: ScalingName) -> Block:
    if isinstance(feature, Continuous | Integer):
        return _number_block(feature, start, values, scaling)
    if isinstance(feature, Ordinal) or (isinstance(feature, Binary) and not feature.missing):
        return _rank_block(feature, start, values)
    return LevelBlock(feature.name, feature.kind, feature.change, start, feature.levels, feature.missing)


def _tight(block: Block, feature: Feature) -> Block:
    if isinstance(block, ValueBlock) and isinstance(feature, Continuous | Integer):
        return replace(block, change=feature.change, grid=_grid(feature))
    return replace(block, change=feature.change)


def _grid(feature: Continuous | Integer) -> Grid:
    step = None if feature.step is None else float(feature.step)
    return Grid(float(feature.minimum), float(feature.maximum), step, feature.decimals, feature.codes)


def _number_block(feature: Continuous | Integer, start: int, values: Array, scaling: ScalingName) -> ValueBlock:
    known = values[~np.isnan(values)]
    low, high = (end([feature.minimum, feature.maximum, *feature.codes]) for end in (min, max))
    scale = fit_scaling(feature.scaling or scaling, known, float(low), float(high))
    grid = _grid(feature)
    numbers = known[~np.isin(known, feature.codes)]
    fill = float(scale.to_unit(_middle(numbers, grid.minimum)))
    return ValueBlock(feature.name, feature.kind, feature.change, start, scale, grid, feature.missing, fill)


def _rank_block(feature: Ordinal | Binary, start: int, values: Array) -> ValueBlock:
    top = float(len(feature.levels) - 1)
    scale, grid = MinMax(0.0, top), Grid(0.0, top, 1.0, 0)
    fill = float(scale.to_unit(_middle(values[~np.isnan(values)], 0.0)))
    return ValueBlock(feature.name, feature.kind, feature.change, start, scale, grid, feature.missing, fill)


def _middle(values: Array, otherwise: float) -> float:
    """Return the lower median: a value that occurs, hence one that is allowed."""
    return float(np.quantile(values, 0.5, method="lower")) if len(values) else otherwise
