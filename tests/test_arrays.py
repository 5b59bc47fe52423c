"""Rows fetched, joined and put in their places, with and without copies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpae.arrays import in_a_row, is_everyone, joined, picked, placed

TABLE = np.arange(24.0).reshape(8, 3)


@given(st.lists(st.integers(0, 7), max_size=12))
def test_rows_are_the_same_however_they_are_fetched(places: list[int]) -> None:
    index = np.array(places, dtype=np.intp)
    (rows,) = picked(index, TABLE)
    assert np.array_equal(rows, TABLE[index])


@pytest.mark.parametrize(("places", "copied"), [([2, 3, 4], False), ([0], False), ([2, 4, 4], True), ([4, 3], True)])
def test_only_rows_that_do_not_follow_each_other_are_copied(places: list[int], copied: bool) -> None:
    index = np.array(places, dtype=np.intp)
    assert isinstance(in_a_row(index), slice) is not copied
    assert np.shares_memory(picked(index, TABLE)[0], TABLE) is not copied


def test_everyone_is_all_rows_in_their_order() -> None:
    assert is_everyone(np.arange(8), 8)
    assert not is_everyone(np.arange(7), 8)
    assert not is_everyone(np.arange(8)[::-1], 8)


def test_a_table_is_put_together_again_from_its_parts() -> None:
    at = np.array([1, 5])
    whole = placed(8, at, TABLE[at])
    assert np.array_equal(whole[at], TABLE[at])
    assert np.isnan(np.delete(whole, at, axis=0)).all()
    assert np.array_equal(joined(TABLE[:3], TABLE[3:]), TABLE)
    assert joined(TABLE[:0], TABLE) is TABLE
