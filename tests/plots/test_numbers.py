import pytest

from gpae.plots.numbers import number, pair, percent


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"), (-0.0, "0"), (40.0, "40"), (12345.678, "12,346"), (0.123456, "0.1235"), (-2.5, "−2.5"),
        (1000000, "1,000,000"), (1e-7, "1e−07"), (float("nan"), "missing"), (100.0, "100"),
    ],
)  # fmt: skip
def test_numbers_read_well(value, said):
    assert number(value) == said


def test_decimals_are_kept_where_the_schema_gives_them():
    assert number(2.5, decimals=2) == "2.50"


def test_two_close_numbers_are_told_apart():
    assert pair(1.00000001, 1.00000002) == ("1.00000001", "1.00000002")
    assert pair(0.1001, 0.1002, decimals=2) == ("0.1001", "0.1002")
    assert pair(40.0, 46.0, decimals=0) == ("40", "46")


@pytest.mark.parametrize(
    ("share", "said"), [(0, "0 %"), (0.004, "<1 %"), (0.5, "50 %"), (0.9996, ">99 %"), (1, "100 %")]
)
def test_a_share_never_rounds_to_certainty(share, said):
    assert percent(share) == said
