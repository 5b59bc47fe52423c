"""CCHVAE: the nearest point of the first latent shell that holds one, and how much is looked at to find it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.explainers.linear_boundary import plane_classifier, square

from gpae.errors import InputError
from gpae.explainers.cchvae import CCHVAE
from gpae.models.vae import VAE
from gpae.table.layout import Layout

Rows = NDArray[np.float64]


@pytest.fixture(scope="module")
def rows() -> tuple[Rows, Layout]:
    return square(400)


@pytest.fixture(scope="module")
def vae(rows: tuple[Rows, Layout]) -> VAE:
    """Two latents for two numbers: next to the identity."""
    made = VAE(latent_dim=2, hidden=(32,), kl_weight=1e-3, max_epochs=80).fit(rows[0])
    assert made.reconstruction_error_ < 0.02
    return made


@pytest.fixture(scope="module")
def make(rows: tuple[Rows, Layout], vae: VAE) -> Callable[..., CCHVAE]:
    def fitted(offset: float = 0.9, **options: object) -> CCHVAE:
        model = plane_classifier([2.0, 1.0], 2 * offset)
        method = CCHVAE(classifier=model, autoencoder=vae, **options)  # type: ignore[arg-type]
        method.fit(rows[0], np.arange(400) % 2, layout=rows[1])
        return method

    return fitted


PERSONS = np.array([[0.2, 0.3], [0.5, 0.6], [0.7, 0.2], [0.1, 0.9]])


def shells_by_brute_force(method: CCHVAE, x: Rows, width: float, norm: int) -> tuple[Rows, Rows]:
    """On a fine polar grid of latents: in which shell each valid one lies, and how far its row is from the person."""
    angle, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 360), np.arange(0.005, 6 * width, 0.01))
    away = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    away *= (radius / np.linalg.norm(away, norm, axis=-1))[..., None]
    z = method.autoencoder_.latents(x[None]) + away.reshape(-1, 2) * method.unit_[norm - 1]
    person = torch.as_tensor(x, dtype=torch.float32).expand(len(z), 2)
    row = method.autoencoder_.decode(torch.as_tensor(z, dtype=torch.float32), person).numpy().astype(np.float64)
    valid = method.classifier_.decision_function(row) > 0
    return (radius.ravel() // width)[valid], np.linalg.norm(row[valid] - x, norm, axis=1)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_answer_is_the_nearest_point_of_the_first_shell_that_holds_one(
    make: Callable[..., CCHVAE], norm: int
) -> None:
    width = 0.4
    method = make(norm=norm, shell_width=width, n_samples=1500)
    answer = method.explain(PERSONS)
    assert answer.found.all()
    for x, u in zip(PERSONS, answer.counterfactual, strict=True):
        shell, distance = shells_by_brute_force(method, x, width, norm)
        nearest = distance[shell == shell.min()].min()
        assert np.linalg.norm(u - x, norm) == pytest.approx(nearest, abs=0.015)


def test_the_answers_are_near_the_least_change_where_the_decoder_is_near_the_identity(
    make: Callable[..., CCHVAE],
) -> None:
    """Towards the plane 2a + b = 1.8 the least change in the 1-norm is along a."""
    near = PERSONS[1:]
    answer = make(n_samples=1000, shell_width=0.2).explain(near)
    least = (1.8 - near @ [2.0, 1.0]) / 2
    change = np.abs(answer.counterfactual - near).sum(axis=1)
    assert (change >= least - 1e-6).all()
    assert (change <= 1.2 * least + 0.03).all()


def decoded_points(method: CCHVAE, monkeypatch: pytest.MonkeyPatch, X: Rows) -> list[torch.Tensor]:
    """The latents that a search decodes, batch by batch."""
    seen: list[torch.Tensor] = []
    decode = VAE.decode

    def counted(self: VAE, z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        seen.append(z)
        return decode(self, z, x)

    monkeypatch.setattr(VAE, "decode", counted)
    method.explain(X)
    return seen


def test_rows_that_are_answered_cost_nothing_more(make: Callable[..., CCHVAE], monkeypatch: pytest.MonkeyPatch) -> None:
    """Persons at the boundary need one shell; the one in the corner needs many, alone."""
    method = make(n_samples=300, shell_width=0.1)
    close = np.column_stack([np.full(60, 0.59), np.linspace(0.55, 0.6, 60)])
    alone = sum(len(z) for z in decoded_points(method, monkeypatch, np.array([[0.0, 0.0]])))
    both = sum(len(z) for z in decoded_points(method, monkeypatch, np.concatenate([close, [[0.0, 0.0]]])))
    assert both - alone <= 3 * 61 * 300 < 0.2 * 61 * alone


@pytest.mark.parametrize("n_samples", [7, 300, 2000])
def test_few_candidates_are_alive_at_a_time(
    make: Callable[..., CCHVAE], monkeypatch: pytest.MonkeyPatch, n_samples: int
) -> None:
    X = np.random.default_rng(1).random((40, 2)) * 0.5
    batches = {len(z) for z in decoded_points(make(n_samples=n_samples), monkeypatch, X)}
    assert len(batches) == 1  # one shape, so that the bits of a row do not depend on the others
    assert max(batches) <= max(1024, n_samples)


def test_a_shell_is_measured_in_the_spread_of_the_latents(
    make: Callable[..., CCHVAE], monkeypatch: pytest.MonkeyPatch, rows: tuple[Rows, Layout], vae: VAE
) -> None:
    z = vae.latents(rows[0])
    spread = z.std(axis=0)
    typical = (np.abs(z - z.mean(axis=0)) / spread).sum(axis=1).mean()
    method = make(shell_width=0.2, n_samples=512)
    x = np.array([[0.1, 0.1]])
    first, second = decoded_points(method, monkeypatch, x)[:2]
    for r, points in enumerate((first, second)):
        radius = (np.abs(points[:512].numpy() - vae.latents(x)) / spread).sum(axis=1) / typical
        assert 0.2 * r <= radius.min() < 0.2 * r + 0.01
        assert 0.2 * (r + 1) - 0.01 < radius.max() <= 0.2 * (r + 1) + 1e-5


def test_the_search_ends_at_three_times_the_largest_latent_distance(
    make: Callable[..., CCHVAE], monkeypatch: pytest.MonkeyPatch, rows: tuple[Rows, Layout], vae: VAE
) -> None:
    method = make(offset=1.7, shell_width=0.2, n_samples=1024, max_shells=1000)  # beyond the corner (1, 1)
    z = torch.as_tensor(vae.latents(rows[0]) / method.unit_[0])
    largest = float(torch.pdist(z, 1).max())
    n_shells = len(decoded_points(method, monkeypatch, np.array([[0.4, 0.4]])))
    assert 3 * largest / 0.2 <= n_shells <= 2 * 3 * largest / 0.2
    assert not method.explain(PERSONS).found.any()


def test_directions_belong_to_the_row_unless_they_are_shared(
    make: Callable[..., CCHVAE], monkeypatch: pytest.MonkeyPatch, vae: VAE
) -> None:
    def first_steps(shared: bool) -> list[Rows]:
        method = make(shared_directions=shared, n_samples=512)
        (points, *_) = decoded_points(method, monkeypatch, PERSONS[:2])
        return [points[:512].numpy() - vae.latents(PERSONS[:1]), points[512:].numpy() - vae.latents(PERSONS[1:2])]

    np.testing.assert_allclose(*first_steps(shared=True), atol=1e-5)
    assert np.abs(np.subtract(*first_steps(shared=False))).mean() > 0.01


def test_another_seed_tries_other_points(make: Callable[..., CCHVAE]) -> None:
    method = make(n_samples=20)
    one, again, other = (method.explain(PERSONS, seed=seed).counterfactual for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_a_feature_fixed_at_the_call_is_overwritten_before_a_point_is_judged(make: Callable[..., CCHVAE]) -> None:
    answer = make(n_samples=300).explain(PERSONS, fixed=np.array([False, True]))
    reachable = PERSONS @ [0.0, 1.0] + 2 > 1.8
    assert answer.found[reachable].all()
    np.testing.assert_array_equal(answer.counterfactual[answer.found][:, 1], PERSONS[answer.found][:, 1])
    assert (answer.counterfactual[answer.found] @ [2.0, 1.0] > 1.8).all()


def test_the_preset_measures_shells_in_plain_latent_units(rows: tuple[Rows, Layout], vae: VAE) -> None:
    model = plane_classifier([2.0, 1.0], 1.8)
    options = {"classifier": model, "shell_width": 0.7, "norm": 2}
    method = CCHVAE(**options, autoencoder=vae, preset="carla")  # type: ignore[arg-type]
    method.fit(rows[0], np.arange(400) % 2, layout=rows[1])
    np.testing.assert_array_equal(method.unit_, 1.0)
    assert {method._settings()[name] for name in ("norm", "shell_width", "max_shells")} == {1, 0.1, 1000}
    assert method.explain(PERSONS).found.all()


@pytest.mark.filterwarnings("ignore::gpae.models.autoencoder_training.CollapsedLatentWarning")
@pytest.mark.parametrize(("objective", "trained"), [("balanced", "carla"), ("carla_legacy", "carla_legacy")])
def test_the_preset_brings_the_reference_auto_encoder(rows: tuple[Rows, Layout], objective: str, trained: str) -> None:
    method = CCHVAE(classifier=plane_classifier([2.0, 1.0], 1.8), objective=objective, preset="carla")  # type: ignore[arg-type]
    method.fit(rows[0][:100], np.arange(100) % 2, layout=rows[1])
    made = method.autoencoder_
    assert (made.objective, made.hidden, made.batch_size, len(made.losses_)) == (trained, (512, 256), 32, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "clara"}, "preset='clara' is not known"),
        ({"objective": "old"}, "objective='old' is not known"),
        ({"norm": 3}, "norm=3 is not known"),
        ({"n_samples": 0}, "n_samples=0 must be a whole number from 1 to 65536"),
        ({"n_samples": 70_000}, "n_samples=70000 must be"),
        ({"max_shells": 1.5}, "max_shells=1.5 must be"),
        ({"shell_width": 0.0}, "shell_width=0.0 must be a number above 0"),
    ],
)
def test_what_cannot_be_searched_with_is_refused(
    make: Callable[..., CCHVAE], options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)
