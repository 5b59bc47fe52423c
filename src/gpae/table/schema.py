"""What a table means: its features, its label, and what plans must obey; as it is written in schema files."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from gpae.errors import InputError, either
from gpae.table.change import Change
from gpae.table.constraints import AnyConstraint
from gpae.table.feature import Binary, Categorical, Continuous, Feature, Integer, Ordinal, ScalingName
from gpae.table.frozen import Frozen
from gpae.table.levels import Level, closest, find_level, listed

__all__ = [
    "SCHEMA_ENDINGS",
    "Binary",
    "Categorical",
    "Change",
    "Continuous",
    "Feature",
    "Integer",
    "Ordinal",
    "ScalingName",
    "Schema",
    "two_labels",
]

SCHEMA_ENDINGS = (".json", ".yaml", ".yml")


class Schema(Frozen):
    """The features of a table, its label, and the value of the label that a person wants.

    Parameters
    ----------
    features
        One entry a feature, in the order of the encoded row.
    label
        Name of the label column.
    favourable
        The label a person wants.
    labels
        The unfavourable and the favourable label; taken from the training table when left out.
    constraints
        What every plan must obey, beside what the features say for themselves.

    Examples
    --------
    >>> schema = Schema(
    ...     features=(Integer(name="age", minimum=17, maximum=90, change="up"),),
    ...     label="income", favourable=">50K",
    ... )
    >>> schema.names
    ('age',)
    """

    features: tuple[Feature, ...] = Field(min_length=1)
    label: str
    favourable: Level
    labels: tuple[Level, Level] | None = None
    constraints: tuple[AnyConstraint, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> "Schema":
        twice = [name for i, name in enumerate(self.names) if name in self.names[:i]]
        if twice:
            raise ValueError(f"the feature {twice[0]!r} is listed twice")
        if self.label in self.names:
            raise ValueError(f"the label {self.label!r} is also listed as a feature; remove it there")
        if self.labels and (self.labels[0] == self.labels[1] or self.labels[1] != self.favourable):
            raise ValueError(
                f"labels must be the unfavourable value, then the favourable one ({self.favourable!r}); "
                f"got {listed(self.labels)}"
            )
        for constraint in self.constraints:
            constraint.check(self)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return tuple(feature.name for feature in self.features)

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(name)

    @classmethod
    def infer(
        cls,
        frame: Any,
        *,
        label: str,
        favourable: Any,
        immutable: Sequence[str] = (),
        drop: Sequence[str] = (),
    ) -> "Schema":
        """Read a schema off a training table (pandas, polars or pyarrow)."""
        from gpae.table.inference import infer_schema

        return infer_schema(frame, label=label, favourable=favourable, immutable=immutable, drop=drop)

    def with_fixed(self, names: Iterable[str]) -> "Schema":
        """Return the schema with these features fixed, beside those that already are."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        for name in wanted:
            if name not in self.names:
                raise InputError(
                    f"immutable column {name!r} is no feature of the table; "
                    f"{closest(name, self.names)}the features are {listed(self.names, 50)}"
                )
        features = tuple(
            feature.model_copy(update={"change": Change.fixed}) if feature.name in wanted else feature
            for feature in self.features
        )
        return self.model_copy(update={"features": features})

    def with_labels(self, values: Sequence[Level]) -> "Schema":
        """Return the schema with its two label values, given all the distinct ones of the label column."""
        labels = two_labels(self.label, values, self.favourable)
        return self.model_copy(update={"labels": labels, "favourable": labels[1]})

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain JSON values, without what is left at its default."""
        plain: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        plain["features"] = [
            # Defaults too, but without the kind the rest cannot be read, and the change is what people edit.
            {"name": feature.name, "kind": feature.kind, "change": feature.change.value, **entry}
            for feature, entry in zip(self.features, plain["features"], strict=True)
        ]
        if self.constraints:
            plain["constraints"] = [constraint.to_dict() for constraint in self.constraints]
        return plain

    def to_json(self) -> str:
        """Return the schema as JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def to_yaml(self) -> str:
        """Return the schema as YAML."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)

    def save(self, path: str | Path) -> None:
        """Write the schema to a ``.json``, ``.yaml`` or ``.yml`` file."""
        path = Path(path)
        text = self.to_json() if _is_json(path) else self.to_yaml()
        path.write_text(text, encoding="utf-8")

    @classmethod
    def from_dict(cls, values: Any, where: str = "schema") -> "Schema":
        """Build a schema from plain values; ``where`` names their source in messages."""
        if not isinstance(values, dict):
            raise InputError(f"{where}: expected the keys features, label and favourable at the top")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problems = "\n".join(f"  {line}" for line in _problems(error, values))
            raise InputError(f"{where} is no valid schema; correct these entries:\n{problems}") from None

    @classmethod
    def load(cls, path: str | Path) -> "Schema":
        """Read a schema from a ``.json``, ``.yaml`` or ``.yml`` file."""
        path = Path(path)
        as_json = _is_json(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
            values = json.loads(text) if as_json else yaml.load(text, _StrictLoader)
        except OSError as error:
            raise InputError(f"schema file {str(path)!r} cannot be read: {error.strerror}") from None
        except (ValueError, yaml.YAMLError) as error:
            kind = "JSON" if as_json else "YAML"
            raise InputError(f"schema file {str(path)!r} is not valid {kind}: {error}") from None
        return cls.from_dict(values, f"schema file {str(path)!r}")

    def describe(self) -> str:
        """Return the features as a plain-text table for the terminal."""
        head = ("feature", "kind", "values", "step", "missing", "may change")
        rows = [head, *(_described(feature) for feature in self.features)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        rows.insert(1, tuple("-" * width for width in widths))
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines.append(f"label: {self.label}, favourable: {self.favourable!r}")
        return "\n".join(line.rstrip() for line in lines)


def two_labels(name: str, values: Sequence[Level], favourable: Any) -> tuple[Level, Level]:
    """Return the unfavourable and the favourable one of a label column's distinct values."""
    if len(values) != 2:
        many = "only one value" if len(values) < 2 else f"{len(values)} values"
        raise InputError(
            f"label column {name!r} has {many} ({listed(values)}); two are needed: "
            "check that it is the label, or turn it into a column of two values"
        )
    position = find_level(values, favourable)
    if position is None:
        raise InputError(
            f"favourable value {favourable!r} does not occur in label column {name!r}; "
            f"its values are {listed(values)}: choose one of them"
        )
    return values[1 - position], values[position]


class _StrictLoader(yaml.SafeLoader):
    """YAML lets the last of two equal keys win in silence; in a schema that is a slip of the editor."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that is there already."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for i, key in enumerate(keys) if key in keys[:i]]
        if twice:
            line = node.start_mark.line + 1
            raise yaml.YAMLError(f"the key {twice[0]!r} occurs twice in the entry that starts in line {line}")
        return super().construct_mapping(node, deep)


def _is_json(path: Path) -> bool:
    if path.suffix.lower() not in SCHEMA_ENDINGS:
        raise InputError(f"schema file {str(path)!r} must end in {either(SCHEMA_ENDINGS)}")
    return path.suffix.lower() == ".json"


def _problems(error: ValidationError, values: dict[str, Any]) -> list[str]:
    found = error.errors()
    # Features that are wrong do not count for pydantic, which then misses them too.
    real = [item for item in found if item["type"] != "too_short" or not item["input"]] or found
    return [f"{_place(item['loc'], values)}: {item['msg'].removeprefix('Value error, ')}" for item in real]


def _place(location: tuple[int | str, ...], values: dict[str, Any]) -> str:
    """Return where in the file an entry is: ``features[2] ('age') minimum``."""
    if len(location) < 2 or location[0] != "features" or not isinstance(location[1], int):
        return ".".join(str(part) for part in location) or "top level"
    entry = values["features"][location[1]]
    name = f" ({entry.get('name')!r})" if isinstance(entry, dict) else ""
    # The third part is pydantic's tag of the feature's kind, which is no key of the file.
    return " ".join([f"features[{location[1]}]{name}", *(str(part) for part in location[3:])])


def _described(feature: Feature) -> tuple[str, ...]:
    missing = "yes" if feature.missing else "no"
    change = feature.change.value
    if isinstance(feature, Continuous | Integer):
        codes = f" or {', '.join(f'{code:.12g}' for code in feature.codes)}" if feature.codes else ""
        values = f"{feature.minimum:.12g} to {feature.maximum:.12g}{codes}"
        step = "" if feature.step is None else f"{feature.step:.12g}"
        return feature.name, feature.kind, values, step, missing, change
    joint = " < " if feature.kind == "ordinal" else ", "
    shown = [str(level) for level in feature.levels]
    values = joint.join(shown[:5]) + (f", ... ({len(shown)})" if len(shown) > 5 else "")
    return feature.name, feature.kind, values, "", missing, change
