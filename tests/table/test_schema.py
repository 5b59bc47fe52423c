"""Schemas: validation, files and the table for the terminal."""

import json

import pytest
from pydantic import ValidationError

from gpae.errors import InputError
from gpae.table.schema import Binary, Categorical, Change, Continuous, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Continuous(name="rate", minimum=0.1, maximum=9.9, step=0.1, change="down", scaling="robust"),
        Integer(name="months", minimum=0, maximum=80, codes=(-9, -8), missing=True),
        Ordinal(name="size", levels=("S", "M", "L"), change="up"),
        Categorical(name="job", levels=("no", "null", "1", "ü"), change="fixed"),
        Binary(name="member", levels=(False, True)),
    ),
    label="paid",
    favourable=1,
    labels=(0, 1),
)


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_a_saved_schema_loads_as_the_same(tmp_path, suffix):
    SCHEMA.save(tmp_path / f"schema{suffix}")
    assert Schema.load(tmp_path / f"schema{suffix}") == SCHEMA


def test_yaml_and_json_hold_the_same_values():
    assert json.loads(SCHEMA.to_json()) == SCHEMA.to_dict()
    assert SCHEMA.to_yaml().startswith("features:\n- name: rate\n  kind: continuous\n")


def test_a_schema_cannot_be_written_to():
    with pytest.raises(ValidationError, match="frozen"):
        SCHEMA.label = "other"


def test_decimals_follow_from_step_and_minimum():
    assert SCHEMA["rate"].decimals == 1
    assert Continuous(name="x", minimum=0.125, maximum=2, step=0.5).decimals == 3
    assert Continuous(name="x", minimum=0, maximum=2).decimals is None
    assert Continuous(name="x", minimum=0, maximum=2, step=1 / 3).decimals is None


@pytest.mark.parametrize("change", ["up", "down"])
def test_a_categorical_has_no_direction(change):
    with pytest.raises(ValidationError, match=f"change='{change}' needs an order.*use 'any' or 'fixed'"):
        Categorical(name="job", levels=("a", "b"), change=change)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Integer(name="x", minimum=5, maximum=1), "minimum 5 is above maximum 1"),
        (lambda: Integer(name="x", minimum=0, maximum=9, step=0), "greater than 0"),
        (lambda: Integer(name="x", minimum=0, maximum=9, codes=(3,)), "codes 3.0 lie inside 0 to 9"),
        (lambda: Continuous(name="x", minimum=0, maximum=float("inf")), "finite number"),
        (lambda: Binary(name="x", levels=("a", "b", "c")), "at most 2"),
        (lambda: Categorical(name="x", levels=("a", "a")), "level 'a' is listed twice"),
        (lambda: Schema(features=(), label="y", favourable=1), "at least 1"),
        (lambda: Schema(features=SCHEMA.features, label="job", favourable=1), "also listed as a feature"),
        (lambda: Schema(features=SCHEMA.features * 2, label="y", favourable=1), "'rate' is listed twice"),
        (
            lambda: Schema(features=SCHEMA.features, label="y", favourable=1, labels=(1, 0)),
            "unfavourable value, then",
        ),
    ],
)
def test_a_contradiction_is_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


def test_with_fixed_adds_to_what_is_fixed():
    fixed = SCHEMA.with_fixed(["rate"])
    assert fixed["rate"].change is Change.fixed
    assert fixed["job"].change is Change.fixed
    assert fixed["size"].change is Change.up


def test_an_unknown_immutable_name_lists_near_matches_and_columns():
    with pytest.raises(InputError, match=r"'Member' .*did you mean 'member'\? the features are 'rate', 'months'"):
        SCHEMA.with_fixed(["Member"])


def test_describe_names_range_codes_levels_step_and_change():
    lines = SCHEMA.describe().splitlines()
    assert lines[2].split() == ["rate", "continuous", "0.1", "to", "9.9", "0.1", "no", "down"]
    assert "0 to 80 or -9, -8" in lines[3]
    assert "S < M < L" in lines[4]
    assert lines[-1] == "label: paid, favourable: 1"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "not valid JSON"),
        ("a.yaml", "features: [", "not valid YAML"),
        ("a.yaml", "- 1", "expected the keys features, label and favourable"),
        ("a.txt", "", "must end in .json, .yaml or .yml"),
        (
            "a.yaml",
            "label: y\nfavourable: 1\nfeatures:\n- name: a\n  kind: binary\n  name: b",
            "the key 'name' occurs twice in the entry that starts in line 4",
        ),
        (
            "a.yaml",
            "label: y\nfavourable: 1\nfeatures:\n- {name: age, kind: integer, minimum: low, maximum: 3}",
            r"features\[0\] \('age'\) minimum: .*valid integer",
        ),
        (
            "a.yaml",
            "label: y\nfavourable: 1\nfeatures:\n- {name: age, kind: whole}",
            r"features\[0\] \('age'\): .*'whole'.*'continuous', 'integer'",
        ),
        (
            "a.yaml",
            "label: y\nfeatures:\n- {name: b, kind: binary, levels: [0, 1]}",
            "favourable: Field required",
        ),
    ],
)
def test_a_wrong_file_is_refused_by_the_field(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        Schema.load(tmp_path / name)


def test_a_missing_file_is_named():
    with pytest.raises(InputError, match=r"'nowhere\.json' cannot be read"):
        Schema.load("nowhere.json")
