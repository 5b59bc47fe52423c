import numpy as np
import pytest

from gpae.errors import InputError
from gpae.plots.latent_plane import latent_plane


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_boundary_is_the_line_x_equals_zero(world, d):
    w = world(d)
    plane = latent_plane(w.latents, w.model)
    on_boundary = plane.lift(np.array([[0.0, -3.0], [0.0, 0.0], [0.0, 5.0]]))
    np.testing.assert_allclose(on_boundary @ w.model.theta.numpy() + float(w.model.theta0), 0, atol=1e-12)


@pytest.mark.parametrize("d", [2, 4])
def test_x_is_the_signed_distance_from_the_boundary(world, d):
    w = world(d)
    theta = w.model.theta.numpy()
    distance = (w.latents @ theta + float(w.model.theta0)) / np.linalg.norm(theta)
    np.testing.assert_allclose(latent_plane(w.latents, w.model).project(w.latents)[:, 0], distance, atol=1e-12)


def test_axes_are_orthonormal_and_projecting_undoes_lifting(world):
    w = world(4)
    plane = latent_plane(w.latents, w.model)
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-12)
    points = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(plane.project(plane.lift(points)), points, atol=1e-12)


def test_the_plane_passes_through_the_mean_of_the_latents(world):
    w = world(4)
    plane = latent_plane(w.latents, w.model)
    mean = w.latents.mean(0, keepdims=True)
    np.testing.assert_allclose(plane.lift(plane.project(mean)), mean, atol=1e-12)


def test_in_two_dimensions_nothing_is_lost(world):
    w = world(2)
    plane = latent_plane(w.latents, w.model)
    np.testing.assert_allclose(plane.lift(plane.project(w.latents)), w.latents, atol=1e-12)


def test_the_second_axis_has_the_largest_variance_across_theta(world):
    w = world(4)
    plane = latent_plane(w.latents, w.model)
    across = plane.axes[0]
    rest = w.latents - np.outer(w.latents @ across, across)
    others = np.random.default_rng(1).normal(size=(200, 4))
    others -= np.outer(others @ across, across)
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert (rest @ plane.axes[1]).var() >= (rest @ others.T).var(0).max()


def test_spread_counts_every_direction_but_thetas(world):
    w = world(3)
    plane = latent_plane(w.latents, w.model)
    base = w.latents[:1]
    third = np.cross(*plane.axes)
    assert plane.spread_along_boundary(np.concatenate([base, base + 2 * plane.axes[0]])) == pytest.approx(0)
    assert plane.spread_along_boundary(np.concatenate([base, base + 2 * third])) == pytest.approx(1)


def test_one_latent_dimension_has_no_plane(world):
    w = world(1)
    with pytest.raises(InputError, match="at least 2"):
        latent_plane(w.latents, w.model)
