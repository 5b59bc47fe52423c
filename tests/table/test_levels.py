"""A level that another reader wrote in another type."""

import pytest

from gpae.table.levels import find_level


@pytest.mark.parametrize(
    ("levels", "value", "position"),
    [
        (("False", "True"), True, 1),
        ((False, True), "TRUE", 1),
        (("01", "02"), 1, 0),
        (("1.50", "2"), 1.5, 0),
        ((1, 2), "2.0", 1),
        (("1", "01"), 1, None),
        (("a", "b"), 1, None),
        ((0, 1), "one", None),
        (("1", 1), 1, 1),
    ],
)
def test_the_same_value_in_another_type_is_found_if_it_can_only_be_one(levels, value, position):
    assert find_level(levels, value) == position
