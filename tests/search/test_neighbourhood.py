"""Neighbourhood: distances as by brute force, whoever else asks and in whatever order."""

import numpy as np
import pytest

from gpae.kernels.compiled import why_not
from gpae.search.neighbourhood import _BLOCK, _FEW, Neighbourhood, Surroundings, _blocks

P, N, D, M = 9, 300, 4, 40
SCALE = np.array([1.0, 3.0, 0.5, 1.0])


def people(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((P, D)), rng.random((N, D))


def near_rows(x: np.ndarray, favourable: np.ndarray) -> Neighbourhood:
    return Surroundings.of(favourable, SCALE).near(x, M)


@pytest.fixture(params=["compiled", "plain"])
def near(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Neighbourhood:
    if request.param == "plain":
        monkeypatch.setenv("GPAE_KERNELS", "off")
    near = near_rows(*people())
    if request.param == "compiled" and near.around.compiled is None:
        pytest.skip(f"nothing is compiled here: {why_not('neighbours.c')}")
    return near


def plans(n: int = 150, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Whose, and where; some people have many plans, one has none."""
    rng = np.random.default_rng(seed)
    whose = rng.choice([0, 0, 0, 1, 2, 3, 5, 6, 7, 8], n)
    return whose, rng.random((n, D))


def by_brute_force(x: np.ndarray, favourable: np.ndarray, person: np.ndarray, U: np.ndarray) -> np.ndarray:
    """The mean distance to the few nearest among each person's M nearest, in plain numpy."""
    far = np.linalg.norm((x[:, None] - favourable) * SCALE, axis=2)
    nearest = np.argsort(far, axis=1)[:, :M]
    distance = np.linalg.norm((U[:, None] - favourable[nearest[person]]) * SCALE, axis=2)
    return np.sort(distance, axis=1)[:, :_FEW].mean(axis=1)


def test_the_nearest_rows_are_found_nearest_first(near: Neighbourhood) -> None:
    x, favourable = people()
    far = np.linalg.norm((x[:, None] - favourable) * SCALE, axis=2)
    np.testing.assert_array_equal(near.index, np.argsort(far, axis=1)[:, :M])


def test_starts_are_the_nearest_rows_themselves(near: Neighbourhood) -> None:
    x, favourable = people()
    person, starts = near.starts(3)
    nearest = np.argsort(np.linalg.norm((x[:, None] - favourable) * SCALE, axis=2), axis=1)[:, :3]
    np.testing.assert_array_equal(person, np.repeat(np.arange(P), 3))
    np.testing.assert_array_equal(starts, favourable[nearest.ravel()])


def test_distances_equal_those_by_brute_force(near: Neighbourhood) -> None:
    person, U = plans()
    np.testing.assert_allclose(near.distance(person, U), by_brute_force(*people(), person, U), rtol=1e-5)


def test_a_row_on_a_favourable_one_is_measured_without_an_odd_root(near: Neighbourhood) -> None:
    person, starts = near.starts(1)
    few = np.linalg.norm((starts[:, None] - people()[1]) * SCALE, axis=2)
    np.testing.assert_allclose(near.distance(person, starts), np.sort(few)[:, :_FEW].mean(axis=1), rtol=1e-5)


def test_the_order_does_not_matter(near: Neighbourhood) -> None:
    person, U = plans()
    order = np.random.default_rng(2).permutation(len(U))
    np.testing.assert_array_equal(near.distance(person[order], U[order]), near.distance(person, U)[order])


def test_nor_does_who_else_asks(near: Neighbourhood) -> None:
    person, U = plans()
    together = near.distance(person, U)
    alone = np.concatenate([near.distance(person[[i]], U[[i]]) for i in range(0, len(U), 11)])
    np.testing.assert_array_equal(alone, together[::11])
    few = near_rows(people()[0][[5, 0]], people()[1])
    np.testing.assert_array_equal(few.distance((person[person == 0] == 0).astype(int), U[person == 0]),
                                  together[person == 0])  # fmt: skip


def test_some_of_the_people_keep_what_is_theirs(near: Neighbourhood) -> None:
    person, U = plans()
    some = near.people(np.array([8, 3]))
    mine = np.flatnonzero(np.isin(person, [8, 3]))
    place = np.where(person[mine] == 8, 0, 1)
    np.testing.assert_array_equal(some.distance(place, U[mine]), near.distance(person, U)[mine])


def test_fewer_rows_than_are_asked_for_will_do() -> None:
    x, favourable = people()
    near = near_rows(x, favourable[:3])
    assert near.index.shape == (P, 3)
    expected = np.linalg.norm((x[:1, None] - favourable[:3]) * SCALE, axis=2).mean()
    assert near.distance(np.array([0]), x[:1])[0] == pytest.approx(expected, rel=1e-5)


def test_no_plans_have_no_distances(near: Neighbourhood) -> None:
    assert near.distance(np.zeros(0, dtype=np.intp), np.zeros((0, D))).shape == (0,)


def test_how_common_a_level_is_comes_with_it(near: Neighbourhood) -> None:
    np.testing.assert_allclose(near.around.usual, people()[1].mean(axis=0))


def test_blocks_hold_one_person_each_and_everybody_has_a_place() -> None:
    person = np.repeat([0, 2, 5], [_BLOCK + 3, 1, 2 * _BLOCK])
    whose, block, place = _blocks(person)
    np.testing.assert_array_equal(whose, [0, 0, 2, 5, 5])
    np.testing.assert_array_equal(whose[block], person)
    assert (place < _BLOCK).all()
    assert len(set(zip(block, place, strict=True))) == len(person)


def test_many_rows_far_from_the_origin_keep_their_distances() -> None:
    """Single precision would lose them, were they made of products."""
    x, favourable = people()
    scale = np.full(D, 1000.0)
    near = Surroundings.of(favourable + 5.0, scale).near(x + 5.0, N)
    person, U = np.arange(P), x + 5.0
    far = np.sort(np.linalg.norm((x[:, None] - favourable) * scale, axis=2), axis=1)[:, :_FEW].mean(axis=1)
    np.testing.assert_allclose(near.distance(person, U), far, rtol=1e-3)
