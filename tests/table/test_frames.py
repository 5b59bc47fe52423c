"""Tables in files: the formats, and what a broken file is told."""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpae.errors import InputError
from gpae.table.frames import read_table, to_arrow, write_table

TABLE = pa.table({"a": [1, 2, None], "s": ["x", None, 'y "q"'], "f": [0.1, None, 1e-300], "b": [True, None, False]})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_written_table_reads_back(tmp_path, suffix):
    write_table(TABLE, tmp_path / f"t{suffix}")
    assert read_table(tmp_path / f"t{suffix}").equals(TABLE)
    assert [p.name for p in tmp_path.iterdir()] == [f"t{suffix}"]


def test_json_is_a_list_of_records(tmp_path):
    write_table(TABLE, tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == TABLE.to_pylist()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_pandas_and_polars_are_written_too(tmp_path, make, suffix):
    frame = make({"a": [1, 2], "s": ["x", "y"]})
    write_table(frame, tmp_path / f"t{suffix}")
    if suffix != ".json":
        assert read_table(tmp_path / f"t{suffix}").to_pydict() == {"a": [1, 2], "s": ["x", "y"]}


def test_categories_are_written_as_their_text(tmp_path):
    write_table(pd.DataFrame({"c": pd.Categorical(["u", "v"])}), tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").to_pydict() == {"c": ["u", "v"]}


def test_gzip_and_folders_are_read(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n"))
    assert read_table(tmp_path / "t.csv.gz").to_pydict() == {"a": [1], "b": ["x"]}
    (tmp_path / "parts").mkdir()
    for i in range(2):
        pq.write_table(pa.table({"a": [i]}), tmp_path / "parts" / f"{i}.parquet")
    assert sorted(read_table(tmp_path / "parts")["a"].to_pylist()) == [0, 1]


def test_a_late_fraction_makes_the_whole_column_floats(tmp_path):
    (tmp_path / "t.csv").write_text("a\n" + "1\n" * 600_000 + "1.5\n")
    assert str(read_table(tmp_path / "t.csv").schema.field("a").type) == "double"


def test_empty_cells_are_missing_and_quoted_ones_are_text(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n,x\n1,\n2,"NA"\n3,None\n')
    assert read_table(tmp_path / "t.csv").to_pydict() == {
        "a": [None, 1, 2, 3],
        "b": ["x", None, "NA", "None"],
    }


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is an empty file"),
        ("t.csv", b"a,b\n", "header but no rows"),
        ("t.csv", b"a,a\n1,2\n", "column 'a' twice"),
        ("t.csv", b"a,b\n1,2\n3\n", "cannot be read: .*Expected 2 columns, got 1"),
        ("t.csv.gz", b"a,b\n1,2\n", "cannot be read: .*gzip"),
        ("t.parquet", b"no parquet", "cannot be read"),
        ("t.xlsx", b"x", "must be .csv, .csv.gz, .parquet"),
    ],
)
def test_a_broken_file_is_named_with_the_reason(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value)


def test_missing_files_and_folders_are_told(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match=r"holds no \.parquet file"):
        read_table(tmp_path)
    with pytest.raises(InputError, match=r"must end in \.csv, \.parquet or \.json"):
        write_table(TABLE, tmp_path / "t.xlsx")
    with pytest.raises(InputError, match=r"folder .* does not exist"):
        write_table(TABLE, tmp_path / "none" / "t.csv")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")
    with pytest.raises(pa.ArrowInvalid):
        write_table(pa.table({"a": [[1, 2]]}), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_whose_files_have_different_columns_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "2.parquet")
    with pytest.raises(InputError, match=r"2\.parquet' lacks the column 'b'"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a;b\n1;2\n", "has one column, 'a;b'; separate its columns by commas"),
        ("a,b\nä,2\n".encode("latin-1") * 3, "a CSV must be UTF-8 text with commas"),
        (b"a,b\n1,2,3\n", "every line as long as its header"),
    ],
)
def test_a_csv_that_is_none_is_told_how_to_be_one(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "t.csv")


def test_endless_numbers_and_broken_text_do_not_escape():
    assert to_arrow(pd.DataFrame({"a": [2**70, 30]}))["a"].to_pylist() == [str(2**70), "30"]
    with pytest.raises(InputError, match=r"column 'a' holds broken text in row 1"):
        to_arrow(pd.DataFrame({"a": pd.Series(["x", "\ud800"], dtype=object)}))


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i8", "u2", "u8", "?", "Int64", "string", "category"])
def test_columns_of_pandas_are_what_arrow_makes_of_the_series(kind):
    series = pd.Series([1, 0, 1], dtype="f8").astype(kind)
    if series.dtype.kind == "f":
        series[1] = float("nan")  # missing, and no number
    frame = pd.DataFrame({"a": [0.5, 0.25, 0.125], "it": series, "z": ["x", None, "y"]})[::-1]
    columns = to_arrow(frame)
    assert list(columns) == ["a", "it", "z"]
    expected = pa.Array.from_pandas(frame["it"])
    assert columns["it"].type == expected.type
    assert columns["it"].equals(expected)
    assert columns["it"].null_count == (series.dtype.kind == "f")


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("kind", ["int64", "int8", "float32", "float64", "bool"])
def test_many_columns_of_a_kind_are_what_each_is_alone(kind, others):
    """Fetched together, with and without columns of other kinds beside them."""
    frame = pd.DataFrame({f"n{i}": (np.arange(5) * i % 3).astype(kind) for i in range(14)})
    frame = frame.assign(**{f"t{i}": list("abcde") for i in range(others)}, **{f"f{i}": 1.5 for i in range(others)})
    columns = to_arrow(frame)
    assert set(columns) == set(frame.columns)
    for name in frame.columns:
        assert columns[name].equals(to_arrow(frame[[name]])[name])


def test_numbers_of_another_byte_order_are_read_too():
    assert to_arrow(pd.DataFrame({"a": pd.Series([1.5, 2.0]).astype(">f8")}))["a"].to_pylist() == ["1.5", "2.0"]


def test_single_precision_is_written_to_json_as_the_decimal_it_shows(tmp_path):
    write_table(pa.table({"a": pa.array([0.1, None], pa.float32())}), tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == [{"a": 0.1}, {"a": None}]
