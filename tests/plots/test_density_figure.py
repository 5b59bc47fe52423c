import numpy as np
import pytest

from gpae.plots.density import PlaneDensity, density_caption, latent_density
from gpae.plots.style import to_png, to_svg


@pytest.mark.parametrize("d", [2, 4])
def test_both_panels_are_drawn_and_labelled(world, words, d):
    w = world(d)
    figure = latent_density(w.latents, w.favourable, w.model, w.tilt)
    said = words(figure)
    for expected in ("(a) All 200 rows", "(b) Density peaks", "boundary", "latent units", "refused", "favourable"):
        assert expected in said
    assert to_png(figure, 40).startswith(b"\x89PNG")


def test_rows_on_the_wrong_side_are_counted(world, words):
    w = world(2)
    flipped = w.favourable.copy()
    flipped[:50] ^= True
    assert "75 % of 200 rows" in words(latent_density(w.latents, flipped, w.model, w.tilt))


def test_the_caption_says_which_density_is_drawn():
    assert "plane through the mean of the latents" in density_caption(4)
    assert "shown whole" in density_caption(2)


def test_the_peak_of_a_gaussian_is_its_mean(world):
    from gpae.plots.density import _on_grid
    from gpae.plots.latent_plane import latent_plane

    w = world(4)
    plane = latent_plane(w.latents, w.model)
    density = _on_grid(plane, plane.project(w.latents), w.tilt)
    mean = plane.project(w.latents.mean(0, keepdims=True))[0]
    cell = np.array([np.diff(density.x)[0], np.diff(density.y)[0]])
    assert (np.abs(np.array(density.peak) - mean) <= cell).all()


def test_level_sets_hold_the_stated_mass():
    side = np.linspace(-6, 6, 241)
    x, y = np.meshgrid(side, side)
    density = PlaneDensity(side, side, np.exp(-0.5 * (x**2 + y**2)))
    # Of a standard Gaussian in the plane, 1 - height/peak lies above a height.
    np.testing.assert_allclose(density.levels, [0.05, 0.25, 0.5, 0.75], atol=0.01)


def test_the_same_figure_gives_the_same_svg(world):
    w = world(2)
    first, second = (to_svg(latent_density(w.latents, w.favourable, w.model, w.tilt)) for _ in range(2))
    assert first == second


def test_identical_latents_do_not_break_the_figure(world):
    w = world(2)
    same = np.repeat(w.latents[:1], 5, axis=0)
    latent_density(same, np.ones(5, dtype=bool), w.model, w.tilt)


def test_no_global_setting_of_matplotlib_is_changed(world):
    import matplotlib

    before = dict(matplotlib.rcParams)
    w = world(2)
    to_svg(latent_density(w.latents, w.favourable, w.model, w.tilt))
    assert dict(matplotlib.rcParams) == before
