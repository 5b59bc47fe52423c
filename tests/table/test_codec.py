"""Tables to encoded rows and back: exactness, the three kinds of frame, and what is told of bad rows."""

import json
import re
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpae.errors import InputError
from gpae.table.codec import Codec
from gpae.table.frames import read_table
from gpae.table.schema import Binary, Categorical, Continuous, Integer, Ordinal, Schema

AS_KIND = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.fixture(scope="module")
def codec(adult_like):
    return Codec.fit(adult_like, Schema.infer(adult_like, label="income", favourable=">50K"))


def arrow(frame):
    return frame if isinstance(frame, pa.Table) else pa.table(frame)


@pytest.mark.parametrize("kind", AS_KIND)
def test_every_kind_of_frame_comes_back_as_it_went_in(adult_like, kind):
    frame = AS_KIND[kind](adult_like)
    codec = Codec.fit(frame, Schema.infer(frame, label="income", favourable=">50K"))
    encoded = codec.encode(frame)
    assert not encoded.bad.any()
    for back in (codec.decode(encoded.rows), codec.decode(encoded.rows, origin=frame, X=encoded.rows)):
        assert type(back) is type(frame)
        assert arrow(back).to_pylist() == arrow(frame).drop_columns("income").to_pylist()


def test_pandas_types_come_back_nullable(adult_like, codec):
    back = codec.decode(codec.encode(adult_like).rows)
    assert [str(t) for t in back.dtypes] == [
        "Int64", "str", "str", "float64", "boolean", "category", "float64", "str",
    ]  # fmt: skip
    assert back["size"].dtype == adult_like["size"].dtype


@pytest.mark.parametrize("kind", AS_KIND)
def test_the_kind_of_the_answer_can_be_chosen(adult_like, codec, kind):
    back = codec.decode(codec.encode(adult_like).rows, kind=kind)
    assert type(back) is type(AS_KIND[kind](adult_like))


def test_polars_enums_come_back_as_enums():
    sizes = pl.Enum(["S", "M", "L"])
    frame = pl.DataFrame({"s": pl.Series(["S", "L", "M"], dtype=sizes), "y": [0, 1, 0]})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    assert codec.schema["s"].kind == "ordinal"
    assert codec.decode(codec.encode(frame).rows).schema == {"s": sizes}


def test_unchanged_cells_are_copied_and_changed_ones_are_new(heloc_like):
    codec = Codec.fit(heloc_like, Schema.infer(heloc_like, label="risk", favourable="Good"))
    X = codec.encode(heloc_like).rows
    U = X.copy()
    U[:, 0] = codec.layout.snap(np.zeros_like(X), X, *codec.layout.box(X))[:, 0]
    back = codec.decode(U, origin=heloc_like, X=X)
    assert (back["months"] == -9).all()
    assert back["free"].to_numpy().tobytes() == heloc_like["free"].to_numpy().tobytes()


def test_a_fraction_in_an_integer_column_is_kept(adult_like, codec):
    people = adult_like.head(2).assign(age=[30.5, 40.0])
    encoded = codec.encode(people)
    assert not encoded.bad.any()
    back = codec.decode(encoded.rows, origin=people, X=encoded.rows)
    assert back["age"].tolist() == [30.5, 40.0]


def test_huge_integers_are_copied_to_the_last_digit():
    frame = pd.DataFrame({"n": [2**60 + 1, 2**60 + 3, 7], "y": [0, 1, 0]})
    schema = Schema(features=(Integer(name="n", minimum=0, maximum=2**61),), label="y", favourable=1)
    codec = Codec.fit(frame, schema)
    X = codec.encode(frame).rows
    assert codec.decode(X, origin=frame, X=X)["n"].tolist() == frame["n"].tolist()


@pytest.mark.parametrize("kind", AS_KIND)
def test_null_rows_are_empty_in_every_column(adult_like, codec, kind):
    rows = codec.encode(adult_like).rows[:2]
    back = arrow(codec.decode(rows, kind=kind, null=np.array([True, False])))
    assert set(back.to_pylist()[0].values()) == {None}
    assert back.to_pylist()[1]["age"] == adult_like["age"][1]


def test_column_order_is_free_and_extra_columns_are_ignored(adult_like, codec):
    shuffled = adult_like[adult_like.columns[::-1]].assign(note="x").drop(columns="income")
    assert np.array_equal(codec.encode(shuffled).rows, codec.encode(adult_like).rows)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("workclass", "Pirate", "column 'workclass' holds 'Pirate', a level unknown in training .*'Private'"),
        ("workclass", None, "column 'workclass' has no value, and training had one in every row"),
        ("hours", np.inf, "column 'hours' holds inf, which is no finite number"),
        ("hours", None, "column 'hours' has no value"),
        ("age", "old", "column 'age' holds 'old', which is no finite number"),
    ],
)
def test_a_bad_cell_marks_its_row_only(adult_like, codec, column, value, reason):
    people = adult_like.head(4).astype({column: object})
    people.loc[2, column] = value
    encoded = codec.encode(people)
    assert encoded.bad.tolist() == [False, False, True, False]
    assert re.search(reason, encoded.reasons[2])
    assert encoded.reasons[0] == ""
    assert np.isnan(encoded.rows[2]).all()
    assert np.array_equal(encoded.rows[:2], codec.encode(adult_like.head(2)).rows)
    back = codec.decode(encoded.rows, origin=people, X=encoded.rows)
    assert back.iloc[2].isna().all()
    assert back["age"][1] == adult_like["age"][1]


def test_two_bad_cells_give_both_reasons(adult_like, codec):
    people = adult_like.head(1).assign(gender="?", workclass="?")
    assert codec.encode(people).reasons[0].count("a level unknown") == 2


def test_numbers_and_levels_written_as_text_are_read(adult_like, codec):
    text = adult_like.head(5).copy()
    text["age"] = text["age"].astype(str)
    text["member"] = text["member"].astype(str)
    assert np.array_equal(codec.encode(text).rows, codec.encode(adult_like.head(5)).rows)


def test_a_wrong_table_is_refused(adult_like, codec):
    with pytest.raises(InputError, match=r"the table has no column 'age'; its columns are 'workclass'"):
        codec.encode(adult_like.drop(columns="age"))
    with pytest.raises(InputError, match="the table is empty"):
        codec.encode(adult_like.head(0))
    with pytest.raises(InputError, match="column 'age' holds values of type timestamp"):
        codec.encode(adult_like.assign(age=pd.Timestamp("2020-01-01")))
    with pytest.raises(InputError, match="got dict"):
        codec.encode({"age": [1]})


def test_fit_refuses_a_row_that_the_schema_does_not_know(adult_like):
    schema = Schema(features=(Categorical(name="workclass", levels=("Private",)),), label="income", favourable=">50K")
    with pytest.raises(InputError, match="training table, row 1: column 'workclass' holds 'State-gov'"):
        Codec.fit(adult_like, schema)


def test_fit_completes_the_labels_of_a_schema(adult_like):
    schema = Schema(features=(Integer(name="age", minimum=0, maximum=99),), label="income", favourable=">50K")
    assert Codec.fit(adult_like, schema).schema.labels == ("<=50K", ">50K")


def test_labels_are_one_where_favourable(adult_like, codec):
    labels = codec.labels(adult_like)
    assert labels.dtype == np.int64
    assert labels.tolist() == (adult_like["income"] == ">50K").astype(int).tolist()


@pytest.mark.parametrize(("value", "shown"), [("rich", "'rich'"), (None, "None")])
def test_an_unknown_label_is_told_with_row_and_value(adult_like, codec, value, shown):
    frame = adult_like.copy()
    frame.loc[3, "income"] = value
    with pytest.raises(InputError, match=f"label column 'income', row 3: {shown} is no known label; expected"):
        codec.labels(frame)


@pytest.mark.parametrize("scaling", ["minmax", "robust", "quantile"])
def test_json_keeps_a_codec_whole(adult_like, scaling):
    schema = Schema.infer(adult_like, label="income", favourable=">50K")
    codec = Codec.fit(adult_like, schema, scaling=scaling)
    again = Codec.from_dict(json.loads(json.dumps(codec.to_dict())))
    assert again == codec
    assert np.array_equal(again.encode(adult_like).rows, codec.encode(adult_like).rows)


def test_float32_columns_come_back_bit_for_bit():
    values = np.arange(20, dtype=np.float32) / np.float32(10)
    frame = pd.DataFrame({"x": values, "y": np.arange(20) % 2})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    back = codec.decode(codec.encode(frame).rows)
    assert back["x"].dtype == np.float32
    assert back["x"].tolist() == values.tolist()


def test_levels_are_written_in_the_type_of_the_training_table():
    frame = pd.DataFrame({"b": [0, 1, 0, 1], "n": [1, 2, 3, 1], "t": ["1", "2", "1", "2"], "y": [0, 1, 1, 0]})
    schema = Schema(
        features=(
            Binary(name="b", levels=(False, True)),
            Categorical(name="n", levels=("1", "2", "3")),
            Ordinal(name="t", levels=(1, 2)),
        ),
        label="y",
        favourable="1",
    )
    codec = Codec.fit(frame, schema)
    assert codec.decode(codec.encode(frame).rows, kind="pyarrow").to_pydict() == frame.drop(columns="y").to_dict("list")


def test_decimal_columns_have_the_steps_they_show():
    frame = pa.table({"d": pa.array([Decimal(i) / 10 for i in range(1, 21)], pa.decimal128(6, 2)), "y": [0, 1] * 10})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    assert codec.schema["d"].step == 0.1
    assert codec.decode(codec.encode(frame).rows)["d"].to_pylist() == [i / 10 for i in range(1, 21)]


@settings(max_examples=60, deadline=None)
@given(
    places=st.integers(0, 6),
    whole=st.lists(st.integers(-(10**7), 10**7), min_size=3, max_size=30, unique=True),
    levels=st.lists(st.text(min_size=1, max_size=4), min_size=3, max_size=3, unique=True),
    scaling=st.sampled_from(["minmax", "robust"]),
)
def test_decimals_and_any_text_make_the_round_trip(places, whole, levels, scaling):
    n = len(whole)
    columns = {"d": [w / 10**places for w in whole], "t": [levels[i % 3] for i in range(n)]}
    frame = pa.table({**columns, "y": [i % 2 for i in range(n)]})
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1), scaling=scaling)
    assert codec.decode(codec.encode(frame).rows).to_pydict() == columns


def test_a_range_edited_by_the_user_bounds_the_plans(heloc_like):
    schema = Schema(
        features=(Continuous(name="rate", minimum=6.0, maximum=8.0, step=0.25),),
        label="risk",
        favourable="Good",
    )
    codec = Codec.fit(heloc_like, schema)
    X = codec.encode(heloc_like).rows[[4, 59]]
    lower, upper = codec.layout.box(X)
    assert codec.layout.to_user(lower)[:, 0].tolist() == [6.0, 6.0]
    assert codec.layout.to_user(upper)[:, 0].tolist() == [8.0, 19.75]


def test_a_schema_needs_no_torch():
    code = "import sys, gpae.table.codec; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("path", "label", "favourable", "drop"),
    [
        ("adult/adult.csv.gz", "income", ">50K", []),
        ("fico/heloc.csv.gz", "RiskPerformance", "Good", []),
        ("gmc/gmc.csv.gz", "good", 1, ["row", "split"]),
        ("lcd/lcd.csv.gz", "fully_paid", 1, ["split"]),
        ("law/law_school_clean.csv.gz", "pass_bar", 1, []),
    ],
)
def test_real_tables_make_the_round_trip_exactly(data_home, path, label, favourable, drop):
    table = read_table(data_home / path)
    codec = Codec.fit(table, Schema.infer(table, label=label, favourable=favourable, drop=drop))
    back = codec.decode(codec.encode(table).rows)
    assert back.equals(table.select(codec.schema.names))
