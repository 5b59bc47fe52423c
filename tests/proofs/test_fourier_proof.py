"""Branch and bound against brute force: a proof exactly where no allowed row is favourable, and bounds that hold."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.proofs.small_table import EVERY, RULES, allowed, asked

from gpae.numerics.autoencoder import AutoEncoder, encode, logit
from gpae.numerics.fourier import FourierMap
from gpae.proofs import fourier
from gpae.proofs.domain import Domain
from gpae.proofs.fourier import by_branch_and_bound, cover
from gpae.proofs.taylor import Cosines, Expansion
from gpae.table.constraints import read_constraints
from gpae.table.freedom import Freedom
from gpae.table.layout import Layout
from gpae.table.schema import Categorical, Continuous, Feature, Integer, Ordinal, Schema
from gpae.table.value_block import SAME

SEEDS = st.integers(0, 10_000)


def model_of(frequencies: np.ndarray, phases: np.ndarray, weights: np.ndarray, theta: np.ndarray) -> AutoEncoder:
    """A model without a bias whose decoder does nothing."""
    Z, c, W, theta, zero = (
        torch.tensor(part, dtype=torch.float64) for part in (frequencies, phases, weights, theta, 0)
    )
    decoder = FourierMap(torch.zeros_like(W), torch.zeros_like(c))
    return AutoEncoder(FourierMap(Z, c), W, decoder, torch.zeros_like(Z), theta, zero)


def random_model(seed: int, width: int, n_features: int = 100, length_scale: float = 0.7) -> AutoEncoder:
    """Waves of logits a few units high."""
    rng = np.random.default_rng(seed)
    frequencies, phases = rng.normal(size=(n_features, width)) / length_scale, rng.uniform(0.0, 6.28, n_features)
    return model_of(frequencies, phases, rng.normal(size=(n_features, 3)), rng.normal(size=3))


def logits(model: AutoEncoder, U: np.ndarray) -> np.ndarray:
    return np.asarray(logit(model, encode(model, torch.as_tensor(U))))


def person_of(
    features: list[Feature], own: list[float], rules: list[Any] | None = None, scaling: Any = "minmax"
) -> Freedom:
    """One person of a table with these features, which has values all over their ranges."""
    schema = Schema(features=tuple(features), label="y", favourable=1)
    rng = np.random.default_rng(0)
    values = []
    for feature in features:
        top = len(feature.levels) - 1 if feature.levels else None
        low, high = (0.0, float(top)) if top is not None else (float(feature.minimum), float(feature.maximum))
        drawn = np.append(rng.beta(1.0, 3.0, 200) * (high - low) + low, [low, high])
        values.append(np.rint(drawn) if top is not None else drawn)
    layout = Layout.fit(schema, values, scaling)
    return Freedom.of(layout, schema, read_constraints(rules or []), layout.encode(np.array([own])))


def box_of(name: str, **more: Any) -> Continuous:
    return Continuous(name=name, minimum=0.0, maximum=1.0, **more)


def dense_rows(person: Freedom, n: int) -> np.ndarray:
    """Rows on a dense grid of the free columns; one-hot groups take each of their levels."""
    axes, at = [], []
    for block in person.layout.features:
        low, high = (end[0, block.columns] for end in (person.lower, person.upper))
        at.append(block.columns)
        axes.append(np.eye(block.width) if block.encoding == "level" else np.linspace(low, high, n))
    index = np.indices([len(axis) for axis in axes]).reshape(len(axes), -1)
    U = np.concatenate([axis[i] for axis, i in zip(axes, index, strict=True)], axis=1)
    many = person.rows(np.zeros(len(U), dtype=np.intp))
    U = many.layout.snap(U, many.x, many.lower, many.upper)
    return U[many.permits(U)]


def random_rows(person: Freedom, n: int, seed: int) -> np.ndarray:
    """Allowed rows near random ones."""
    many = person.rows(np.zeros(n, dtype=np.intp))
    U = np.random.default_rng(seed).uniform(many.lower, many.upper)
    U = many.layout.snap(U, many.x, many.lower, many.upper)
    return U[many.permits(U)]


# everything discrete: all rows can be listed


@settings(max_examples=60, deadline=None)
@given(
    rules=st.lists(st.sampled_from(RULES), unique_by=str, max_size=4),
    who=st.integers(0, len(EVERY) - 1),
    seed=SEEDS,
    share=st.sampled_from([0.5, 0.9, 0.99, 1.0]),
)
def test_it_proves_or_finds_wherever_every_row_can_be_asked(
    rules: list[Any], who: int, seed: int, share: float
) -> None:
    person, layout = asked(rules, EVERY[who])
    model = random_model(seed, layout.width)
    margin = float(np.quantile(logits(model, layout.encode(EVERY)), share))
    rows = layout.encode(allowed(person, layout))
    best = logits(model, rows).max() if len(rows) else -np.inf
    assume(abs(best - margin) > 1e-6)
    certificate, row = by_branch_and_bound(person, model, 20.0, margin)
    if best > margin:
        assert certificate is None
        assert row is not None
        assert person.permits(row)[0]
        assert logits(model, row)[0] > margin
    else:
        assert row is None
        assert certificate is not None
        assert best <= certificate.best <= margin
        assert certificate.ground == "bounds"
    if len(rows):
        assert by_branch_and_bound(person, model, 20.0, best - 1e-12)[0] is None


# numbers that are not discrete: dense grids

NUMBERS: dict[str, list[Feature]] = {
    "one": [box_of("a")],
    "two": [box_of("a"), box_of("b")],
    "three": [box_of("a"), box_of("b"), box_of("c")],
    "levels": [box_of("a"), Categorical(name="job", levels=("x", "y", "z")), Ordinal(name="degree", levels=(1, 2, 3))],
    "steps": [
        box_of("a"),
        Integer(name="n", minimum=0, maximum=40, step=5),
        Continuous(name="b", minimum=0, maximum=9),
    ],
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize(("n_features", "length_scale"), [(50, 1.5), (200, 0.7), (100, 0.25)])
def test_there_is_a_proof_just_above_the_largest_logit_and_a_row_just_below(
    kind: str, n_features: int, length_scale: float
) -> None:
    person = person_of(NUMBERS[kind], [0.0] * len(NUMBERS[kind]))
    model = random_model(n_features, person.layout.width, n_features, length_scale)
    grid = dense_rows(person, {"one": 20_000, "two": 250}.get(kind, 50))
    said = logits(model, grid)
    for gap in (0.2, 0.02):  # of the logits' spread: beyond what the grid can miss
        shifted = replace(model, theta0=model.theta0 - said.max() - gap * said.std())
        certificate, row = by_branch_and_bound(person, shifted, 20.0)
        assert row is None
        assert certificate is not None
        assert -gap * said.std() <= certificate.best <= 0.0
    shifted = replace(model, theta0=model.theta0 - said.max() + 1e-3 * said.std())
    certificate, row = by_branch_and_bound(person, shifted, 20.0)
    assert certificate is None
    assert row is not None
    assert person.permits(row)[0]
    assert logits(shifted, row)[0] > 0.0


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, kind=st.sampled_from(sorted(NUMBERS)), share=st.floats(0.9, 1.2))
def test_closed_boxes_hold_every_allowed_row_and_their_bounds_hold(seed: int, kind: str, share: float) -> None:
    person = person_of(NUMBERS[kind], [0.0] * len(NUMBERS[kind]))
    model = random_model(seed, person.layout.width, 50, 0.5)
    rows = np.concatenate([dense_rows(person, 12), random_rows(person, 500, seed)])
    said = logits(model, rows)
    covered = cover(person, model, 20.0, float(said.min() + share * np.ptp(said)))
    assert covered is not None
    bounds = covered.bounds(rows)
    if covered.certificate is not None:
        assert np.isfinite(bounds).all()
        assert bounds.max() <= covered.certificate.best
        if kind in ("one", "two", "three"):  # side by side they fill the cube
            assert float(covered.closed.width.prod(dim=1).sum()) == pytest.approx(1.0)
    assert (said <= bounds).all()


# the bound of a box


@settings(max_examples=150, deadline=None)
@given(
    seed=SEEDS,
    m=st.integers(0, 7),
    waves=st.sampled_from([1, 2, 60]),
    length_scale=st.floats(0.05, 5.0),
    size=st.floats(-4.0, 0.5),
)
def test_no_logit_on_a_box_is_above_its_bound(seed: int, m: int, waves: int, length_scale: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(seed, m + 1, waves, length_scale)
    lower, upper = np.full((1, m + 1), -5.0), np.full((1, m + 1), 5.0)
    upper[0, m] = -5.0
    person = person_of([box_of("a")], [0.0])
    domain = replace(Domain.of(person), lower=lower, upper=upper)
    expansion = Expansion.of(Cosines.of(model, domain), torch.as_tensor(domain.wide))
    assert expansion is not None
    low = torch.tensor(rng.uniform(-5.0, 5.0, size=(8, m)))
    high = torch.minimum(low + torch.tensor(rng.exponential(10.0**size, size=(8, m))), torch.tensor(5.0))
    bounds = expansion.over(low, high)
    shares = torch.tensor(np.concatenate([rng.random((200, 8, m)), rng.integers(0, 2, (200, 8, m))]))
    points = low + shares * (high - low)

    def at(points: torch.Tensor) -> np.ndarray:
        return logits(model, domain.rows(points.flatten(0, 1))).reshape(points.shape[:2])

    said = at(points)
    assert (said <= bounds.bound.numpy()).all()
    # narrow boxes are known well
    narrow = np.asarray((high - low).sum(dim=1)) < 0.02 * length_scale
    assert (bounds.bound.numpy() - said.max(axis=0))[narrow].max(initial=0.0) < 0.1
    for j in range(m):
        ends = [torch.where(torch.arange(m) == j, end, points) for end in (low, high)]
        rises = at(ends[1]) - at(ends[0])
        assert (bounds.way[:, j].numpy() * rises >= -1e-9).all()


def test_what_the_polynomial_does_not_see_is_in_the_remainder() -> None:
    person = person_of(NUMBERS["one"], [0.0])
    # g(1/2 + d) = sum_s a_s sin(s d), with a such that all derivatives below the ninth are 0 at d = 0
    s = np.arange(1.0, 6.0)
    a = np.linalg.svd(s ** np.array([[1.0], [3.0], [5.0], [7.0]]))[2][-1]
    model = model_of(4.0 * s[:, None], -np.pi / 2 - 2.0 * s, a[:, None], np.array([1.0]))
    domain = Domain.of(person)
    assert domain is not None
    expansion = Expansion.of(Cosines.of(model, domain), torch.tensor([0]))
    assert expansion is not None
    assert expansion.order == 8
    bounds = expansion.over(torch.tensor([[0.25]]).double(), torch.tensor([[0.75]]).double())
    assert 1e-3 < logits(model, np.linspace(0.25, 0.75, 101)[:, None]).max() <= float(bounds.bound)


def test_a_point_is_bounded_by_its_own_logit() -> None:
    person = person_of(NUMBERS["three"], [0.2, 0.4, 0.6], ["a = 0.2", {"kind": "fixed", "features": ["a", "b", "c"]}])
    model = random_model(0, 3)
    own = logits(model, person.x)[0]
    proof, _ = by_branch_and_bound(person, model, 1.0, own + 1e-6)
    assert proof is not None
    assert proof.best == pytest.approx(own, abs=1e-7)
    assert by_branch_and_bound(person, model, 1.0, own + 1e-15) == (None, None)  # too close to be decided
    np.testing.assert_array_equal(by_branch_and_bound(person, model, 1.0, own - 1e-6)[1], person.x)


# what a person may become

STATES: list[Feature] = [
    Continuous(name="debt", minimum=0.0, maximum=50.0, codes=(-9.0, -8.0), missing=True),
    Integer(name="years", minimum=0, maximum=30, step=3, codes=(-1.0,)),
    Continuous(name="rate", minimum=1.0, maximum=5.0, missing=True, change="up"),
    Integer(name="n", minimum=0, maximum=10, missing=True, change="down"),
    Ordinal(name="degree", levels=("a", "b", "c", "d"), missing=True),
    Categorical(name="job", levels=("x", "y"), missing=True),
]
LIMITS: list[Any] = [
    {"kind": "range", "feature": "debt", "minimum": 2.5, "maximum": 40},
    {"kind": "within", "feature": "years", "up": 10},
    {"kind": "within", "feature": "rate", "up": 0.5, "relative": True},
    {"kind": "direction", "feature": "debt", "change": "down"},
    {"kind": "transitions", "feature": "degree", "allowed": {"a": ["c"], "b": ["d"]}, "otherwise": "none"},
    {"kind": "fixed", "features": ["n", "rate"]},
    "debt >= years",
    {"kind": "at_most", "changes": 3},
]
OWN = st.tuples(
    st.sampled_from([-9.0, -8.0, np.nan, 0.0, 12.25, 50.0, 61.5]),
    st.sampled_from([-1.0, 0.0, 9.0, 10.0, 30.0, 33.0]),
    st.sampled_from([np.nan, 1.0, 3.3, 5.0, 0.5, 6.0]),
    st.sampled_from([np.nan, 0.0, 4.0, 10.0, 12.0]),
    st.sampled_from([np.nan, 0.0, 1.0, 3.0]),
    st.sampled_from([np.nan, 0.0, 1.0]),
)


@settings(max_examples=80, deadline=None)
@given(
    own=OWN,
    limits=st.lists(st.sampled_from(LIMITS), unique_by=str, max_size=3),
    scaling=st.sampled_from(["minmax", "robust", "quantile"]),
    seed=SEEDS,
)
def test_the_domain_holds_every_allowed_row(own: tuple[float, ...], limits: list[Any], scaling: str, seed: int) -> None:
    person = person_of(STATES, list(own), limits, scaling)
    domain = Domain.of(person)
    assert domain is not None
    assert not domain.free[(person.lower == person.upper)[0]].any()
    rng = np.random.default_rng(seed)
    values = np.column_stack(
        [
            rng.choice([-9.0, -8.0, np.nan, own[0], *rng.uniform(0.0, 60.0, 8)], 400),
            rng.choice([-1.0, own[1], *range(0, 36, 3)], 400),
            rng.choice([np.nan, own[2], *rng.uniform(0.5, 6.0, 8)], 400),
            rng.choice([np.nan, own[3], *range(12)], 400),
            rng.choice([np.nan, 0.0, 1.0, 2.0, 3.0], 400),
            rng.choice([np.nan, 0.0, 1.0], 400),
        ]
    )
    many = person.rows(np.zeros(400, dtype=np.intp))
    U = many.layout.encode(values)
    U = np.where(rng.random((400, 1)) < 0.5, many.layout.snap(U, many.x, many.lower, many.upper), U)
    U = np.concatenate([U[many.permits(U)], person.x[person.permits(person.x)]])
    held = (domain.lower - SAME <= U[:, None]) & (U[:, None] <= domain.upper + SAME)
    assert held.all(axis=2).any(axis=1).all()
    # nor does shrinking lose one
    free = torch.as_tensor(U[:, domain.free])
    boxes = domain.shrunk(fourier.Boxes(free - 1e-9, free + 1e-9, torch.zeros(len(U), dtype=torch.float64)))
    assert len(boxes) == len(U)


PLANE = model_of(
    np.array([[1e-3, -1e-3]]), np.array([-np.pi / 2]), np.array([[1000.0 / np.sqrt(2.0)]]), np.array([1.0])
)
"""1000 sin((a - b) / 1000): nearly a - b."""


@pytest.mark.parametrize(
    ("rule", "largest"),
    [
        ("a <= b", 0.0),
        ("a - 2 * b <= -0.5", 0.25),
        ("b = 1 - a", 1.0),
        ({"kind": "at_most", "changes": 1}, 0.4),
        ({"kind": "at_most", "changes": 0}, -0.3),
    ],
)
def test_what_rules_leave_is_proved_though_they_forbid_the_best_corner(rule: Any, largest: float) -> None:
    numbers: list[Feature] = [box_of("a"), box_of("b")]
    free, tied = (person_of(numbers, [0.3, 0.6], rules) for rules in ([], [rule]))
    certificate, row = by_branch_and_bound(free, PLANE, 5.0, 0.95)
    assert certificate is None
    assert row is not None
    certificate, row = by_branch_and_bound(tied, PLANE, 5.0, largest + 0.05)
    assert row is None
    assert certificate is not None
    assert largest - 1e-3 <= certificate.best <= largest + 0.05
    assert by_branch_and_bound(tied, PLANE, 1.0, largest - 0.05)[0] is None


# giving up


def test_too_many_levels_are_left_alone() -> None:
    levels = tuple(f"l{i}" for i in range(40))
    person = person_of([Categorical(name=name, levels=levels) for name in "abc"], [0.0, 0.0, 0.0])
    assert by_branch_and_bound(person, random_model(0, 120), 5.0) == (None, None)


def test_the_time_is_kept() -> None:
    person = person_of([box_of(name) for name in "abcdef"], [0.5] * 6)
    model = random_model(0, 6, 200, 0.05)
    margin = float(logits(model, np.random.default_rng(0).random((20_000, 6))).max()) + 3.0
    assert by_branch_and_bound(person, model, 0.0, margin) == (None, None)
    start = time.monotonic()
    certificate, row = by_branch_and_bound(person, model, 0.5, margin)
    assert time.monotonic() - start < 2.0
    assert certificate is None
    assert row is None or logits(model, row)[0] > margin
