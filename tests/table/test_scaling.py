"""The maps to [0, 1] are strictly increasing bijections, beyond the training range too."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from gpae.table.scaling import Scaling, fit_scaling

KINDS = ["minmax", "robust", "quantile"]
numbers = st.lists(st.integers(-1000, 100_000).map(lambda n: n / 100), min_size=2, max_size=60, unique=True)


@pytest.mark.parametrize("kind", KINDS)
@given(values=numbers)
def test_training_minimum_goes_to_zero_and_maximum_to_one(kind, values):
    scaling = fit_scaling(kind, np.array(values), 0.0, 1.0)
    assert scaling.to_unit([min(values), max(values)]) == pytest.approx([0.0, 1.0], abs=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@given(values=numbers)
def test_the_map_increases_strictly_inside_and_outside_the_range(kind, values):
    scaling = fit_scaling(kind, np.array(values), 0.0, 1.0)
    width = max(values) - min(values)
    points = np.unique([min(values) - width, *values, max(values) + width])
    assert (np.diff(scaling.to_unit(points)) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
@given(values=numbers)
def test_to_user_undoes_to_unit(kind, values):
    scaling = fit_scaling(kind, np.array(values), 0.0, 1.0)
    width = max(values) - min(values)
    points = np.array([*values, min(values) - width / 2, max(values) + width / 2])
    assert np.allclose(scaling.to_user(scaling.to_unit(points)), points, rtol=1e-9, atol=1e-9 * width)


@pytest.mark.parametrize("kind", KINDS)
def test_json_keeps_every_bit(kind):
    scaling = fit_scaling(kind, np.random.default_rng(0).lognormal(size=500), 0.0, 1.0)
    adapter = TypeAdapter(Scaling)
    again = adapter.validate_python(json.loads(json.dumps(adapter.dump_python(scaling, mode="json"))))
    assert again == scaling


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_column_is_scaled_by_the_range_of_the_schema(kind):
    scaling = fit_scaling(kind, np.array([3.0, 3.0]), 0.0, 10.0)
    assert scaling.to_unit([0.0, 10.0]) == pytest.approx([0.0, 1.0])


def test_a_mostly_zero_column_has_a_robust_scale():
    values = np.array([0.0] * 90 + [1000.0] * 10)
    assert np.isfinite(fit_scaling("robust", values, 0.0, 1.0).to_unit(values)).all()


def test_quantile_spreads_a_heavy_tail():
    values = np.random.default_rng(0).lognormal(sigma=4.0, size=2000)
    unit = fit_scaling("quantile", values, 0.0, 1.0).to_unit(values)
    assert np.quantile(unit, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.02)
