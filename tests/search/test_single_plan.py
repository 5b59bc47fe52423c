"""Legs of a search: who has an answer stops, the others go on with what they carry."""

import numpy as np
import torch
from tests.explainers.linear_boundary import square
from torch import Tensor

from gpae.search.single_plan import People, search_one_plan

X = np.linspace(0.05, 0.95, 200).repeat(2).reshape(200, 2)
TARGET = np.ones(200, dtype=np.int64)


def test_only_those_without_an_answer_walk_on_and_carry_their_own() -> None:
    layout = square(50)[1]
    walked: list[list[float]] = []

    def first(people: People, number: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        walked.append(number.tolist())
        return people.x, number % 3 == 0, 10 * number

    def second(people: People, number: Tensor) -> tuple[Tensor, Tensor]:
        walked.append(number.tolist())
        return people.x, number % 20 == 0

    lower, upper = layout.box(X)
    at, u = search_one_plan(layout, X, TARGET, lower, upper, [first, second], (torch.arange(200.0),))
    assert {number for tile in walked[:2] for number in tile} == set(range(200))
    later = walked[2:]
    assert {len(tile) for tile in later} == {32}  # few: tiles of their own
    assert {number for tile in later for number in tile} == {10.0 * n for n in range(200) if n % 3}
    assert sorted(at) == [n for n in range(200) if n % 3 == 0 or n % 2 == 0]
    np.testing.assert_allclose(u, X[at])


def test_people_are_told_exactly_who_they_are_and_searches_see_them_in_single_precision() -> None:
    layout = square(50)[1]
    seen: list[People] = []

    def walk(people: People) -> tuple[Tensor, Tensor]:
        seen.append(people)
        return people.x, torch.ones(len(people.x), dtype=torch.bool)

    lower, upper = layout.box(X)
    _, u = search_one_plan(layout, X, TARGET, lower, upper, [walk])
    assert seen[0].x.dtype == torch.float32
    np.testing.assert_array_equal(seen[0].exact[0].numpy(), X[:128])
    np.testing.assert_array_equal(u, X)  # the own value, not the one of single precision
