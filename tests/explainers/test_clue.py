"""CLUE: the descent of uncertainty against brute force, a closed form and a plain loop."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from tests.explainers.linear_boundary import plane_classifier, square

from gpae.errors import InputError
from gpae.explainers.clue import CLUE
from gpae.kernels.slopes import Slope
from gpae.models.residual_vae import ResidualVAE
from gpae.search.rounding import Rounding
from gpae.search.single_plan import People
from gpae.table.layout import Layout

Rows = NDArray[np.float64]
SLOPE, OFFSET = np.array([16.0, 8.0]), 12.0
PERSONS = np.array([[0.2, 0.3], [0.5, 0.35], [0.4, 0.4], [0.1, 0.5]])
MIX = np.array([[0.3, 0.1], [-0.1, 0.2]])
CENTRE = np.array([0.5, 0.5])


def by_hand() -> ResidualVAE:
    """decode(z) = centre + z M, and encode is its inverse: pairs of leaky ReLUs make the hidden layers linear."""
    vae = ResidualVAE(latent_dim=2, width=4, depth=1)
    vae.n_columns_, vae.losses_, vae.latent_variance_, vae.noise_ = 2, [0.0], 1.0, 0.1
    network = vae._network = vae._new_network(torch.Generator())
    network.eval().requires_grad_(False)
    gain = 1.01 / np.sqrt(1 + 1e-5)  # leaky(v) - leaky(-v) = 1.01 v; batch normalisation that has seen nothing
    inverse = np.linalg.inv(MIX)
    for part, matrix, before, after in (
        (network.encoder, inverse, -CENTRE, np.zeros(2)),
        (network.decoder, MIX, np.zeros(2), CENTRE),
    ):
        pairs = np.hstack([np.eye(2), -np.eye(2)])
        part[0].weight.copy_(torch.as_tensor(pairs.T))
        part[0].bias.copy_(torch.as_tensor(before @ pairs))
        part[2].weight.zero_()
        part[2].weight[:2] = torch.as_tensor(np.vstack([matrix, -matrix]).T / gain)
        part[2].bias.zero_()
        part[2].bias[:2] = torch.as_tensor(after)
    return vae


def logit(u: Rows) -> Rows:
    return np.sin(0.1 * (u @ SLOPE - OFFSET)) / 0.1


def objective(u: Rows, x: Rows, weight: float) -> Rows:
    p = 1 / (1 + np.exp(-logit(u)))
    return -(p * np.log(p) + (1 - p) * np.log(1 - p)) + weight / 2 * np.abs(u - x).sum(axis=1)


@pytest.fixture(scope="module")
def rows() -> tuple[Rows, Layout]:
    return square(300)


@pytest.fixture(scope="module")
def make(rows: tuple[Rows, Layout]) -> Callable[..., CLUE]:
    def fitted(**options: object) -> CLUE:
        given = {"classifier": plane_classifier(list(SLOPE), OFFSET), "autoencoder": by_hand()} | options
        method = CLUE(**given)  # type: ignore[arg-type]
        method.fit(rows[0], np.arange(300) % 2, layout=rows[1])
        return method

    return fitted


def people_of(method: CLUE, x: Rows, fixed: NDArray[np.bool_] | None = None) -> People:
    parts = (x, *method.layout_.box(x, fixed))
    return People(*(torch.as_tensor(p, dtype=torch.float32) for p in parts), torch.ones(len(x)), 1e-5)


def test_the_handmade_auto_encoder_is_what_it_says() -> None:
    vae = by_hand()
    x = torch.as_tensor(PERSONS, dtype=torch.float32)
    np.testing.assert_allclose(vae.encode(x).numpy() @ MIX + CENTRE, PERSONS, atol=1e-5)
    np.testing.assert_allclose(vae.decode(vae.encode(x)).numpy(), PERSONS, atol=1e-5)


@pytest.mark.parametrize("weight", [0.5, 1.5])
def test_the_descent_ends_at_the_least_objective_of_all_z_on_the_targets_side(
    make: Callable[..., CLUE], weight: float
) -> None:
    method = make(distance_weight=weight, step_size=0.01, n_iterations=1500, tolerance=0.0)
    people = people_of(method, PERSONS)
    slope, rounding = Slope.of(method.classifier_.model_), Rounding.of(method.layout_)
    with torch.no_grad():
        _, second = method._starts(slope, rounding, people)
        ended = method.autoencoder_.decode(method._descent(second, slope, rounding, people).state).numpy()
    z = np.stack(np.meshgrid(*2 * [np.linspace(-4, 4, 500)]), axis=-1).reshape(-1, 2)
    grid = CENTRE + z @ MIX
    grid = grid[(logit(grid) > 1.6) & (grid > 0).all(axis=1) & (grid < 1).all(axis=1)]
    for x, end in zip(PERSONS, ended.astype(np.float64), strict=True):
        assert objective(end[None], x, weight)[0] <= objective(grid, x, weight).min() + 5e-3


def test_with_one_free_column_the_descents_end_has_a_closed_form(make: Callable[..., CLUE]) -> None:
    """On the target's side, doubt falls as fast as distance grows where g p (1 - p) dg/da = lambda / 2."""
    weight, fixed = 2.0, np.array([False, True])
    method = make(distance_weight=weight, step_size=0.01, n_iterations=1200, tolerance=0.0)
    people = people_of(method, PERSONS[1:3], fixed)
    slope, rounding = Slope.of(method.classifier_.model_), Rounding.of(method.layout_)
    with torch.no_grad():
        start = method.autoencoder_.encode(torch.tensor([[0.7, 0.6], [0.9, 0.3]]))
        ended = method.autoencoder_.decode(method._descent(start, slope, rounding, people).state).numpy()

    def balance(g: float) -> float:
        p = 1 / (1 + np.exp(-g))
        return float(g * p * (1 - p) * SLOPE[0] * np.sqrt(1 - (0.1 * g) ** 2) - weight / 2)

    g = brentq(balance, 1.6, 9.0)
    exact = (OFFSET + np.arcsin(0.1 * g) / 0.1 - SLOPE[1] * PERSONS[1:3, 1]) / SLOPE[0]
    np.testing.assert_allclose(ended[:, 0], exact, atol=0.01)


def plainly(method: CLUE, x: Rows, start: Rows) -> Rows | None:
    """One person, one start, autograd and lists: the nearest row on the other side before the objective settles."""
    z = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    walker = torch.optim.Adam([z], lr=method.step_size)
    person = torch.as_tensor(x, dtype=torch.float32)
    slope = torch.as_tensor(SLOPE, dtype=torch.float32)
    history, passed = [], []
    for step in range(method.n_iterations + 1):
        row = torch.as_tensor(CENTRE, dtype=torch.float32) + z @ torch.as_tensor(MIX, dtype=torch.float32)
        g = torch.sin(0.1 * (row @ slope - OFFSET)) / 0.1
        p = torch.sigmoid(g)
        distance = (row - person).abs().sum()
        value = -(p * p.log() + (1 - p) * (1 - p).log()) + method.distance_weight / 2 * distance
        history.append(float(value.detach()))
        if g > 0:
            passed.append((float(distance.detach()), row.detach().numpy().astype(np.float64)))
        small = method.tolerance * max(history[0], 0.1)
        if step >= 4 and abs(history[-1] - history[-4]) < small:
            break
        walker.zero_grad()
        value.backward()
        walker.step()
    return min(passed, key=lambda pair: pair[0])[1] if passed else None


def test_the_answer_is_the_nearest_of_the_rows_that_a_plain_loop_passes(make: Callable[..., CLUE]) -> None:
    method = make(distance_weight=2.0, step_size=0.02, n_iterations=200)
    people = people_of(method, PERSONS)
    slope, rounding = Slope.of(method.classifier_.model_), Rounding.of(method.layout_)
    with torch.no_grad():
        starts = [start.numpy() for start in method._starts(slope, rounding, people)]
    answer = method.explain(PERSONS)
    for i, x in enumerate(PERSONS):
        passed = [row for start in starts if (row := plainly(method, x, start[i])) is not None]
        nearest = min(passed, key=lambda row, x=x: np.abs(row - x).sum())  # type: ignore[misc]
        np.testing.assert_allclose(answer.counterfactual[i], nearest, atol=2e-4)


def test_less_doubt_alone_leads_deeper_into_the_own_class(make: Callable[..., CLUE]) -> None:
    alone = make(second_start=False).explain(PERSONS)
    assert not alone.found.any()
    assert make().explain(PERSONS).found.all()


def test_the_second_start_is_the_nearest_that_has_the_target_class_with_the_persons_own_values_put_back(
    make: Callable[..., CLUE],
) -> None:
    method = make()
    fixed = np.array([False, True])
    people = people_of(method, PERSONS, fixed)
    with torch.no_grad():
        slope, rounding = Slope.of(method.classifier_.model_), Rounding.of(method.layout_)
        _, second = method._starts(slope, rounding, people)
        decoded = method.autoencoder_.decode(method.anchors_).numpy().astype(np.float64)
    own = (PERSONS - CENTRE) @ np.linalg.inv(MIX)
    for i, x in enumerate(PERSONS):
        becomes = np.column_stack([np.clip(decoded[:, 0], 0, 1), np.full(len(decoded), x[1])])
        good = np.flatnonzero((becomes @ SLOPE > OFFSET) & (decoded @ SLOPE > OFFSET))
        far = np.linalg.norm(method.anchors_.numpy()[good] - own[i], axis=1)
        np.testing.assert_array_equal(second[i].numpy(), method.anchors_[good[far.argmin()]].numpy())


def test_class_zero_can_be_the_target(make: Callable[..., CLUE]) -> None:
    answer = make().explain(1 - PERSONS, 0)
    assert answer.found.all()
    assert (answer.counterfactual @ SLOPE < OFFSET).all()


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_the_presets_starts_are_one_and_the_same(rows: tuple[Rows, Layout]) -> None:
    X, layout = rows
    method = CLUE(classifier=plane_classifier(list(SLOPE), OFFSET), preset="carla", step_size=7.0)
    method.fit(X, np.arange(300) % 2, layout=layout)
    settings = method._settings()
    assert (settings["step_size"], settings["distance_weight"], method.step_size) == (0.5, 4.0, 7.0)
    slope, rounding = Slope.of(method.classifier_.model_), Rounding.of(layout)
    with torch.no_grad():
        (start,) = method._starts(slope, rounding, people_of(method, PERSONS))
    assert torch.equal(start, torch.zeros(4, 12))
    assert method.autoencoder_.get_params() == ResidualVAE.carla().get_params() | {"random_state": 0}


def test_the_auto_encoder_that_is_trained_by_default_serves_the_search(rows: tuple[Rows, Layout]) -> None:
    X, layout = rows
    method = CLUE(classifier=plane_classifier(list(SLOPE), OFFSET)).fit(X, np.arange(300) % 2, layout=layout)
    refused = X[X @ SLOPE < OFFSET][:60]
    answer = method.explain(refused)
    assert answer.found.mean() > 0.95
    assert answer.counterfactual[answer.found].std(axis=0).min() > 0.05  # not one answer for all


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "paper"}, "preset='paper' is not known"),
        ({"z_init": "prior"}, "z_init='prior' is not known"),
        ({"n_iterations": 0}, "n_iterations=0 must be a whole number"),
        ({"tolerance": -1.0}, "tolerance=-1.0 must be a number of at least 0"),
    ],
)
def test_a_parameter_that_cannot_be_searched_with_is_refused(
    make: Callable[..., CLUE], options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
def test_an_auto_encoder_of_other_columns_is_refused(rows: tuple[Rows, Layout]) -> None:
    wide = ResidualVAE(max_epochs=1).fit(np.random.default_rng(0).random((60, 3)))
    method = CLUE(classifier=plane_classifier(list(SLOPE), OFFSET), autoencoder=wide)
    with pytest.raises(InputError, match="fitted to 3 columns, these rows have 2"):
        method.fit(rows[0], np.arange(300) % 2, layout=rows[1])
