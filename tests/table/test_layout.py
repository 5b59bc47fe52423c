"""Encoded rows: bounds, snapping and alternatives, as examples and as properties of random layouts."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpae.errors import InputError
from gpae.table.layout import Layout
from gpae.table.schema import Binary, Categorical, Change, Continuous, Integer, Ordinal, Schema

SCHEMA = Schema(
    features=(
        Integer(name="months", minimum=0, maximum=20, codes=(-9, -8)),
        Continuous(name="rate", minimum=1.0, maximum=2.0, step=0.1, missing=True),
        Ordinal(name="size", levels=("S", "M", "L")),
        Binary(name="member", levels=(False, True)),
        Categorical(name="job", levels=("a", "b"), missing=True),
    ),
    label="y",
    favourable=1,
)
nan = np.nan
TRAIN = np.array([[-9, 1.0, 0, 0, 0], [20, 2.0, 2, 1, 1], [10, nan, 1, 1, nan], [4, 1.5, 0, 0, 0]])


def layout_of(**changes):
    features = tuple(f.model_copy(update={"change": Change(changes.get(f.name, "any"))}) for f in SCHEMA.features)
    return Layout.fit(SCHEMA.model_copy(update={"features": features}), list(TRAIN.T))


LAYOUT = layout_of()


def test_columns_are_named_and_marked():
    assert LAYOUT.width == 8
    assert LAYOUT.column_names == (
        "months", "rate", "rate=(missing)", "size", "member", "job=a", "job=b", "job=(missing)",
    )  # fmt: skip
    assert LAYOUT.continuous.tolist() == [True, True] + [False] * 6
    assert LAYOUT.discrete.tolist() == [False, False, True, False, True, True, True, True]
    assert [group.tolist() for group in LAYOUT.groups] == [[5, 6, 7]]
    assert [(f.name, f.kind, f.columns) for f in LAYOUT.features][1] == ("rate", "continuous", slice(1, 3))


def test_rows_are_encoded_as_documented():
    rows = LAYOUT.encode(TRAIN)
    assert rows[1].tolist() == [1, 1, 0, 1, 1, 0, 1, 0]
    assert rows[2].tolist() == [19 / 29, 0.5, 1, 0.5, 1, 0, 0, 1]
    assert np.array_equal(LAYOUT.to_user(rows), TRAIN, equal_nan=True)


def test_json_keeps_a_layout_whole():
    assert Layout.from_dict(json.loads(json.dumps(LAYOUT.to_dict()))) == LAYOUT


def test_named_gives_a_mask_and_refuses_unknown_names():
    assert LAYOUT.named(["size"]).tolist() == [False, False, True, False, False]
    with pytest.raises(InputError, match=r"'sise' is no feature; did you mean 'size'\?"):
        LAYOUT.named(["sise"])


def test_a_value_is_never_made_missing_and_a_missing_one_may_be_filled():
    X = LAYOUT.encode(TRAIN)
    _, upper = LAYOUT.box(X)
    assert upper[:, 2].tolist() == [0, 0, 1, 0]
    assert upper[:, 7].tolist() == [0, 0, 1, 0]


def test_the_box_reaches_to_a_person_outside_the_range():
    X = LAYOUT.encode(np.array([[25, 0.5, 0, 0, 0.0]]))
    lower, upper = LAYOUT.box(X)
    assert upper[0, 0] == X[0, 0] > 1
    assert lower[0, 1] == X[0, 1] < 0


def test_directions_are_seen_from_the_person():
    layout = layout_of(months="down", rate="up", size="up", member="down", job="fixed")
    X = layout.encode(np.array([[10, 1.5, 1, 0, 0.0]]))
    lower, upper = layout.box(X)
    assert layout.to_user(lower)[0, :4].tolist() == [0, 1.5, 1, 0]
    assert layout.to_user(upper)[0, :4].tolist() == [10, 2.0, 2, 0]
    assert np.array_equal(lower[0, 5:], X[0, 5:])
    assert np.array_equal(upper[0, 5:], X[0, 5:])


def test_down_does_not_lead_from_a_number_to_a_code():
    layout = layout_of(months="down")
    X = layout.encode(np.array([[3, 1.5, 1, 0, 0.0], [-8, 1.5, 1, 0, 0.0]]))
    lower, upper = layout.box(X)
    snapped = layout.snap(np.zeros_like(X), X, lower, upper)
    assert layout.to_user(snapped)[:, 0].tolist() == [0, -9]


def test_a_binary_that_may_be_missing_keeps_its_direction():
    schema = Schema(features=(Binary(name="b", levels=("n", "y"), missing=True, change="up"),), label="l", favourable=1)
    layout = Layout.fit(schema, [np.array([0.0, 1.0, nan])])
    _, upper = layout.box(layout.encode(np.array([[0.0], [1.0], [nan]])))
    assert upper.tolist() == [[1, 1, 0], [0, 1, 0], [1, 1, 1]]


def test_snap_gives_exact_decimals_codes_and_levels():
    X = LAYOUT.encode(TRAIN[[3]])
    lower, upper = LAYOUT.box(X)
    U = np.array([[0.02, 0.33, 0.4, 0.6, 0.5, 0.2, 0.3, 0.9]])
    snapped = LAYOUT.snap(U, X, lower, upper)
    assert LAYOUT.to_user(snapped).tolist() == [[-8.0, 1.3, 1.0, 1.0, 1.0]]
    assert snapped[0, 5:].tolist() == [0, 1, 0]


def test_snap_rounds_inward_at_the_bounds():
    schema = Schema(features=(Integer(name="n", minimum=0, maximum=100, step=25),), label="l", favourable=1)
    layout = Layout.fit(schema, [np.array([0.0, 100.0])])
    X = np.array([[0.5]])
    snapped = [layout.snap(np.array([[u]]), X, np.array([[0.3]]), np.array([[0.7]]))[0, 0] for u in (0.31, 0.69)]
    assert snapped == [0.5, 0.5]
    nothing = layout.snap(np.array([[0.33]]), X, np.array([[0.3]]), np.array([[0.4]]))
    assert not layout.is_allowed(nothing, X, np.array([[0.3]]), np.array([[0.4]]))


def test_a_person_off_the_grid_stays_there_bit_for_bit():
    X = LAYOUT.encode(np.array([[7.3, 1.234, 1, 0, 0.0]]))
    lower, upper = LAYOUT.box(X)
    U = X.copy()
    U[0, 0] += 1e-14
    assert np.array_equal(LAYOUT.snap(U, X, lower, upper), X)
    assert LAYOUT.is_allowed(X, X, lower, upper).all()
    assert LAYOUT.n_changes(U, X).tolist() == [0]


@pytest.mark.parametrize(
    ("column", "value"),
    [(0, 0.3 / 29), (0, 1.1), (1, 0.55), (2, 1.0), (3, 0.3), (4, 0.4), (5, 0.0), (6, 1.0)],
)
def test_what_is_not_allowed_is_told(column, value):
    X = LAYOUT.encode(TRAIN[[3]])
    lower, upper = LAYOUT.box(X)
    U = X.copy()
    U[0, column] = value
    assert not LAYOUT.is_allowed(U, X, lower, upper).any()


def test_alternatives_hold_codes_steps_levels_and_the_way_back():
    X = LAYOUT.encode(TRAIN[[3]])
    lower, upper = LAYOUT.box(X)
    U = X.copy()
    U[0, 0] = LAYOUT.encode(np.array([[5, 1, 0, 0, 0.0]]))[0, 0]
    found = {}
    for options in LAYOUT.alternatives(U, X, lower, upper):
        rows = np.repeat(U, options.values.shape[1], axis=0)
        rows[:, options.columns] = options.values[0]
        users = LAYOUT.to_user(rows[options.allowed[0]])
        found[LAYOUT.names[options.feature]] = set(users[:, options.feature].tolist())
    assert found["months"] == {-9, -8, 0, 1, 3, 4, 6, 7, 9, 13, 20}
    assert found["rate"] == {1.0, 1.1, 1.3, 1.4, 1.6, 1.7, 1.9, 2.0}
    assert found["size"] == {1, 2}
    assert found["member"] == {1}
    assert found["job"] == {1}


def test_a_missing_number_may_become_the_median_and_go_back():
    X = LAYOUT.encode(TRAIN[[2]])
    lower, upper = LAYOUT.box(X)
    rate = LAYOUT.alternatives(X, X, lower, upper)[1]
    assert [u for u in [1 + v for v in rate.values[0, rate.allowed[0], 0]] if u == 1.5] == [1.5]
    assert (rate.values[0, rate.allowed[0], 1] == 0).all()
    filled = X.copy()
    filled[0, 1:3] = [0.2, 0.0]
    back = LAYOUT.alternatives(filled, X, lower, upper)[1]
    assert back.allowed[0, 0]
    assert np.array_equal(back.values[0, 0], X[0, 1:3])


def test_features_that_nobody_may_change_have_no_allowed_alternative():
    X = LAYOUT.encode(TRAIN)
    found = LAYOUT.alternatives(X, X, *LAYOUT.box(X, np.ones(5, dtype=bool)))
    assert len(found) == 5
    assert not any(alternatives.allowed.any() for alternatives in found)


def test_bounds_that_hold_no_step_leave_the_person_as_they_are():
    schema = Schema(
        features=(Continuous(name="n", minimum=0, maximum=0.1, step=0.25, change="up"),),
        label="l",
        favourable=1,
    )
    layout = Layout.fit(schema, [np.array([0.0, 0.1])])
    X = layout.encode(np.array([[0.03]]))
    assert np.array_equal(layout.snap(X + 0.2, X, *layout.box(X)), X)


# --- properties ---

SCALINGS = ["minmax", "robust", "quantile"]


@st.composite
def features(draw, name):
    kind = draw(st.sampled_from(["continuous", "integer", "ordinal", "categorical", "binary"]))
    changes = ["any", "fixed"] if kind == "categorical" else list(Change)
    common = {"name": name, "missing": draw(st.booleans()), "change": draw(st.sampled_from(changes))}
    low = draw(st.integers(-50, 50))
    scaling = draw(st.sampled_from(SCALINGS))
    if kind == "integer":
        codes = tuple(sorted(draw(st.sets(st.sampled_from([-99, -98, 999])))))
        step = draw(st.integers(1, 7))
        high = low + step * draw(st.integers(1, 40))
        return Integer(minimum=low, maximum=high, step=step, codes=codes, scaling=scaling, **common)
    if kind == "continuous":
        step = draw(st.sampled_from([None, 0.1, 0.25, 0.001, 1 / 3]))
        high = low + draw(st.integers(1, 1000)) / 10
        return Continuous(minimum=low, maximum=high, step=step, scaling=scaling, **common)
    if kind == "binary":
        return Binary(levels=("n", "y"), **common)
    kinds = {"ordinal": Ordinal, "categorical": Categorical}
    return kinds[kind](levels=tuple("abcdefg"[: draw(st.integers(2, 7))]), **common)


def column(feature, rng, rows, beyond):
    if feature.kind in ("integer", "continuous"):
        width = float(feature.maximum - feature.minimum)
        values = rng.uniform(feature.minimum - beyond * width, feature.maximum + beyond * width, rows)
        if feature.kind == "integer" and not beyond:
            values = feature.minimum + feature.step * np.rint((values - feature.minimum) / feature.step)
        if feature.codes:
            values = np.where(rng.random(rows) < 0.3, rng.choice(feature.codes, rows), values)
    else:
        values = rng.integers(0, len(feature.levels), rows).astype(float)
    return np.where(rng.random(rows) < 0.2, nan, values) if feature.missing else values


@st.composite
def cases(draw):
    """A random layout, people (some off the grid or out of range), their box, and wild rows."""
    schema = Schema(
        features=tuple(draw(features(f"f{i}")) for i in range(draw(st.integers(1, 5)))),
        label="y",
        favourable=1,
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    layout = Layout.fit(schema, [column(f, rng, 40, 0.0) for f in schema.features])
    beyond = draw(st.sampled_from([0.0, 0.3]))
    X = layout.encode(np.stack([column(f, rng, 6, beyond) for f in schema.features], axis=1))
    fixed = rng.random((6, len(schema.features))) < 0.2
    U = np.where(rng.random(X.shape) < 0.2, X, rng.uniform(-0.2, 1.2, X.shape))
    return layout, X, fixed, *layout.box(X, fixed), U


@settings(max_examples=150, deadline=None)
@given(cases())
def test_the_box_contains_the_person(case):
    layout, X, fixed, lower, upper, _ = case
    assert (lower <= X).all()
    assert (upper >= X).all()
    for i, feature in enumerate(layout.features):
        kept = fixed[:, i] | (feature.change is Change.fixed)
        assert np.array_equal(lower[kept, feature.columns], X[kept, feature.columns])
        assert np.array_equal(upper[kept, feature.columns], X[kept, feature.columns])


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_snapped_row_is_allowed_and_snapping_again_changes_nothing(case):
    layout, X, _, lower, upper, U = case
    snapped = layout.snap(U, X, lower, upper)
    assert (snapped >= lower).all()
    assert (snapped <= upper).all()
    assert layout.is_allowed(snapped, X, lower, upper).all()
    assert np.array_equal(layout.snap(snapped, X, lower, upper), snapped)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_snap_never_moves_a_fixed_column(case):
    layout, X, fixed, lower, upper, U = case
    snapped = layout.snap(U, X, lower, upper)
    changed = layout.changed(snapped, X)
    assert not (changed & fixed).any()
    for i, feature in enumerate(layout.features):
        assert np.array_equal(snapped[fixed[:, i], feature.columns], X[fixed[:, i], feature.columns])


@settings(max_examples=100, deadline=None)
@given(cases())
def test_the_person_is_allowed_and_stays_when_snapped(case):
    layout, X, _, lower, upper, _ = case
    assert layout.is_allowed(X, X, lower, upper).all()
    assert np.array_equal(layout.snap(X, X, lower, upper), X)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_an_alternative_flagged_allowed_is_allowed_and_changes_that_feature_only(case):
    layout, X, _, lower, upper, U = case
    U = layout.snap(U, X, lower, upper)
    for options in layout.alternatives(U, X, lower, upper):
        for m in range(options.values.shape[1]):
            moved = U.copy()
            moved[:, options.columns] = options.values[:, m]
            open_ = options.allowed[:, m]
            assert layout.is_allowed(moved, X, lower, upper)[open_].all()
            others = np.delete(layout.changed(moved, U), options.feature, axis=1)
            assert not others.any()
            assert layout.changed(moved, U)[open_, options.feature].all()


@settings(max_examples=100, deadline=None)
@given(cases())
def test_a_snapped_row_survives_the_users_units(case):
    layout, X, _, lower, upper, U = case
    snapped = layout.snap(U, X, lower, upper)
    assert np.allclose(layout.encode(layout.to_user(snapped)), snapped, rtol=0, atol=1e-10)


@settings(max_examples=50, deadline=None)
@given(cases())
def test_a_row_is_treated_alike_alone_and_in_a_batch(case):
    layout, X, _, lower, upper, U = case
    alone = [layout.snap(U[i : i + 1], X[i : i + 1], lower[i : i + 1], upper[i : i + 1]) for i in range(len(U))]
    assert np.array_equal(np.concatenate(alone), layout.snap(U, X, lower, upper))
