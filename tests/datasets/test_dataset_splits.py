"""Splits have the promised sizes and balance, depend on the seed only, and share no row."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpae import datasets
from gpae.dataset import Dataset, Part, Positions, SplitRule
from gpae.errors import InputError

SIZES = {
    "adult": (46_842, 1_000, 1_000),
    "fico": (7_321, 1_000, 1_000),
    "gmc": (14_000, 1_000, 1_000),
    "law": (2_986, 600, 1_000),
    "lcd": (9_000, 1_000, 1_000),
    "lcd-term": (1_868, 234, 234),
}
NATURAL = {"adult": {"train"}, "fico": {"train", "valid", "test"}}
SEEDS = (0, 1, 7)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_part_has_its_size_and_balance(dataset: Dataset, seed: int) -> None:
    parts = dict(zip(("train", "valid", "test"), dataset.split(seed), strict=True))
    assert tuple(len(part) for part in parts.values()) == SIZES[dataset.name]
    for name, part in parts.items():
        favourable = (part[dataset.label] == dataset.favourable).mean()
        if name in NATURAL.get(dataset.name, set()):
            assert favourable == pytest.approx((dataset.frame()[dataset.label] == dataset.favourable).mean(), abs=0.06)
        else:
            assert favourable == 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_no_row_is_in_two_parts(dataset: Dataset, seed: int) -> None:
    rows = np.concatenate(dataset.split_rows(seed))
    assert len(np.unique(rows)) == len(rows)
    assert rows.min() >= 0
    assert rows.max() < dataset.rows


def test_the_parts_are_the_rows_they_name(dataset: Dataset) -> None:
    frame = dataset.frame()
    for part, rows in zip(dataset.split(3), dataset.split_rows(3), strict=True):
        pd.testing.assert_frame_equal(part, frame.iloc[rows].reset_index(drop=True))


def test_the_same_seed_gives_the_same_split_whatever_the_global_state(dataset: Dataset) -> None:
    first = dataset.split_rows(5)
    np.random.seed(1)  # noqa: NPY002 - the global state is what must not matter
    for before, after in zip(first, dataset.split_rows(5), strict=True):
        np.testing.assert_array_equal(before, after)


def test_another_seed_gives_another_split(dataset: Dataset) -> None:
    for one, other in zip(dataset.split_rows(0), dataset.split_rows(1), strict=True):
        assert not np.array_equal(one, other)


@pytest.mark.parametrize("name", ["gmc", "lcd"])
def test_the_authors_test_rows_are_kept_for_every_seed(name: str) -> None:
    entry = datasets.load(name)
    if entry.files[0].find() is None:
        pytest.skip(f"the file of {name} is not on this machine")
    table = entry.read(entry.path())
    authors = np.flatnonzero(table["split"] == "test")
    for seed in SEEDS:
        np.testing.assert_array_equal(np.sort(entry.split_rows(seed)[2]), authors)


def test_splits_do_not_change_between_versions() -> None:
    train, valid, test = datasets.load("adult").split_rows(seed=0)
    assert train[:3].tolist() == [20_953, 30_631, 2_067]
    assert valid[:3].tolist() == [829, 24_697, 11_796]
    assert test[:3].tolist() == [10_551, 24_002, 11_243]


def test_the_head_of_a_part_is_like_the_whole_part() -> None:
    data = datasets.load("adult")
    for part in data.split(seed=0):
        share = (part[data.label] == data.favourable).mean()
        for end in (part.head(300), part.tail(300)):
            assert (end[data.label] == data.favourable).mean() == pytest.approx(share, abs=0.1)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="zero or more, not -1"):
        datasets.load("adult").split(seed=-1)


def _balance(rows: Positions, y: list[int]) -> int:
    return int(np.sum(2 * np.array(y)[rows] - 1))


@given(
    y=st.lists(st.integers(0, 1), min_size=12, max_size=60).filter(lambda y: 4 <= sum(y) <= len(y) - 4),
    seed=st.integers(0, 2**32),
    balance_train=st.booleans(),
)
def test_any_table_is_split_without_overlap(y: list[int], seed: int, balance_train: bool) -> None:
    balanced: frozenset[Part] = frozenset({"train", "valid", "test"} if balance_train else {"valid", "test"})
    rule = SplitRule(valid=4, test=4, balanced=balanced)
    train, valid, test = rule.draw(pd.DataFrame({"y": y}), "y", seed)
    assert len(set(train) | set(valid) | set(test)) == len(train) + 8
    assert _balance(valid, y) == _balance(test, y) == 0
    if balance_train:
        assert _balance(train, y) == 0
        assert len(train) == 2 * (min(sum(y), len(y) - sum(y)) - 4)
    else:
        assert len(train) == len(y) - 8
