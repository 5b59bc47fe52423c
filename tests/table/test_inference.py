"""What a schema says of a table, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpae.errors import InputError
from gpae.table.frames import read_table
from gpae.table.schema import Binary, Categorical, Change, Continuous, Integer, Ordinal, Schema


def infer(column, **options):
    frame = pd.DataFrame({"x": column, "ok": np.arange(len(column)) % 3, "y": np.arange(len(column)) % 2})
    return Schema.infer(frame, label="y", favourable=1, **options)["x"]


def test_an_adult_like_table(adult_like):
    schema = Schema.infer(adult_like, label="income", favourable=">50K", immutable=["gender"])
    ages = adult_like["age"]
    assert schema["age"] == Integer(name="age", minimum=ages.min(), maximum=ages.max())
    assert schema["workclass"] == Categorical(name="workclass", levels=("Private", "Self-emp", "State-gov"))
    assert schema["gender"] == Binary(name="gender", levels=("Female", "Male"), change=Change.fixed)
    assert schema["hours"].kind == "integer"
    assert schema["member"] == Binary(name="member", levels=(False, True))
    assert schema["size"] == Ordinal(name="size", levels=("S", "M", "L"))
    assert schema["debt"].missing
    assert schema["debt"].step == 0.01
    assert schema["visa"] == Binary(name="visa", levels=("n", "y"), missing=True)
    assert schema.labels == ("<=50K", ">50K")


def test_a_heloc_like_table(heloc_like):
    schema = Schema.infer(heloc_like, label="risk", favourable="Good")
    assert schema["months"].codes == (-9, -8, -7)
    assert schema["months"].minimum == 0
    assert schema["amount"] == Integer(name="amount", minimum=500, maximum=1975, step=25)
    assert schema["rate"] == Continuous(name="rate", minimum=5.0, maximum=19.75, step=0.25)
    assert schema["free"].step is None


def test_the_three_kinds_of_frame_give_the_same_schema(adult_like):
    frames = [adult_like, pl.from_pandas(adult_like), pa.Table.from_pandas(adult_like)]
    kinds = [Schema.infer(f, label="income", favourable=">50K", drop=["size"]) for f in frames]
    assert kinds[0] == kinds[1] == kinds[2]


def test_few_distinct_values_do_not_make_a_step():
    assert infer([0, 10, 20] * 4).step == 1


def test_four_negative_values_are_numbers_not_codes():
    column = infer([-4, -3, -2, -1, 0, 1, 2, 3])
    assert (column.codes, column.minimum) == ((), -4)


def test_two_whole_numbers_are_binary_and_two_fractions_are_not():
    assert infer([1.0, 2.0, 1.0, 2.0]) == Binary(name="x", levels=(1, 2))
    assert infer([0.5, 2.0, 0.5, 2.0]).kind == "continuous"


def test_one_value_or_missing_is_a_category():
    assert infer([5.0, None, 5.0, None]) == Categorical(name="x", levels=(5,), missing=True)


def test_float32_means_the_decimal_it_shows():
    assert infer(np.arange(20, dtype=np.float32) / np.float32(10)).step == 0.1


def test_nan_and_null_are_both_missing():
    frame = pl.DataFrame({"x": [1.0, float("nan"), 3.0, 4.5], "z": [1, None, 3, 4], "y": [0, 1, 0, 1]})
    schema = Schema.infer(frame, label="y", favourable=1)
    assert schema["x"].missing
    assert schema["z"].missing


def test_favourable_may_be_written_as_text():
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [0.0, 1.0, 0.0]})
    assert Schema.infer(frame, label="y", favourable="1").labels == (0, 1)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([7, 7, 7], "column 'x' holds 7 in every row"),
        ([None, None, None], "column 'x' has no values at all"),
        ([1.5, 2.0, np.inf], "column 'x' holds inf in row 2"),
        ([1.5, -1.7e308, 2.0], "column 'x' holds -1.7e\\+308 in row 1, too large"),
        ([f"id{i}" for i in range(150)], "column 'x' has 150 different levels .*'id0'.*drop it, group"),
        (pd.to_datetime(["2020-01-01"] * 3), r"column 'x' holds values of type timestamp.*row 0: .*2020"),
        ([[1], [2], [3]], r"column 'x' holds values of type list.*row 0: \[1\]"),
        ([str(i) for i in range(40)] + ["n.a."], "column 'x' holds numbers, except .* row 40: 'n.a.'"),
        ([*range(40), "n.a."], "column 'x' holds numbers, except .* row 40: 'n.a.'"),
    ],
)
def test_a_useless_or_broken_column_is_refused_by_name_row_and_value(column, message):
    with pytest.raises(InputError, match=message):
        infer(column)


def test_text_that_is_all_numbers_is_a_number_unless_it_is_short_or_a_code():
    assert infer([str(i) for i in range(40)]) == Integer(name="x", minimum=0, maximum=39)
    assert infer([f"{i / 4}" for i in range(40)]).kind == "continuous"
    assert infer([str(i) for i in range(5)]).kind == "categorical"
    assert infer([f"{i:03d}" for i in range(40)]).levels[:2] == ("000", "001")


@pytest.mark.parametrize(
    ("label", "favourable", "message"),
    [
        ("z", 1, "has no column 'z'; .*its columns are 'x', 'y'"),
        ("y", 5, "favourable value 5 does not occur in label column 'y'; its values are 0, 1"),
        ("three", 1, "label column 'three' has 3 values"),
        ("one", 1, "label column 'one' has only one value"),
        ("gap", 1, "label column 'gap' has no value in row 2"),
    ],
)
def test_a_wrong_label_is_refused(label, favourable, message):
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [0, 1, 0], "three": [0, 1, 2], "one": [1, 1, 1], "gap": [0, 1, None]})
    with pytest.raises(InputError, match=message):
        Schema.infer(frame, label=label, favourable=favourable)


def test_unknown_names_and_strange_tables_are_refused():
    frame = pd.DataFrame({"x": [1, 2, 3], "y": [0, 1, 0]})
    with pytest.raises(InputError, match="no column 'X1'"):
        Schema.infer(frame, label="y", favourable=1, drop=["X1"])
    with pytest.raises(InputError, match=r"immutable column 'X'.*did you mean 'x'\?"):
        Schema.infer(frame, label="y", favourable=1, immutable=["X"])
    with pytest.raises(InputError, match="no feature beside the label"):
        Schema.infer(frame, label="y", favourable=1, drop=["x"])
    with pytest.raises(InputError, match=r"training table is empty \(0 rows"):
        Schema.infer(frame.head(0), label="y", favourable=1)
    with pytest.raises(InputError, match="column 'x' occurs twice"):
        Schema.infer(frame.rename(columns={"y": "x"}), label="x", favourable=1)
    with pytest.raises(InputError, match="got LazyFrame; collect"):
        Schema.infer(pl.DataFrame({"x": [1]}).lazy(), label="x", favourable=1)
    with pytest.raises(InputError, match="column names must be text, found 0"):
        Schema.infer(pd.DataFrame([[1, 2]]), label="y", favourable=1)


@pytest.mark.parametrize(
    ("path", "label", "favourable", "drop", "steps"),
    [
        (
            "lcd/lcd.csv.gz",
            "fully_paid",
            1,
            ["split"],
            {"loan_amnt": 25, "last_fico_range_high": 5, "dti": 0.01},
        ),
        ("fico/heloc.csv.gz", "RiskPerformance", "Good", [], {"MSinceMostRecentDelq": 1}),
        ("adult/adult.csv.gz", "income", ">50K", [], {"age": 1}),
    ],
)
def test_real_tables_are_read_as_described(data_home, path, label, favourable, drop, steps):
    schema = Schema.infer(read_table(data_home / path), label=label, favourable=favourable, drop=drop)
    assert {name: schema[name].step for name in steps} == steps
