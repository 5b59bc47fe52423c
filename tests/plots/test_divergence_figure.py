import dataclasses

import numpy as np
import pytest

from gpae.plots.divergence import divergence_curve, finding, latents_by_beta
from gpae.plots.latent_plane import latent_plane
from gpae.plots.style import to_png

VALLEY, FALLING, RISING = [3.0, 2.0, 1.0, 2.0, 3.0], [5.0, 4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        (VALLEY, "KL is lowest at β = 0.55, inside the grid"),
        (FALLING, "KL is lowest at the largest β tried (1): no interior minimum"),
        (RISING, "KL is lowest at the smallest β tried (0.1): no interior minimum"),
        ([np.nan] * 4 + [2.0], "KL is lowest at the largest β tried (1): no interior minimum"),
    ],
)
def test_the_title_is_honest_about_where_the_minimum_lies(world, choose, words, curve, said):
    choice = choose(world(2), curve)
    assert finding(choice) == said
    assert said in words(divergence_curve(choice))


def test_a_beta_given_by_the_user_is_not_sold_as_the_minimum(world, choose):
    choice = dataclasses.replace(choose(world(2), VALLEY), beta=0.3)
    assert finding(choice) == "β = 0.3 was used; KL is lowest at β = 0.55"


def test_the_paper_and_the_chosen_beta_are_marked_with_units(world, choose, words):
    said = words(divergence_curve(choose(world(2), VALLEY)))
    for expected in ("paper, on LCD: 0.4", "chosen: 0.55", "(nats)", "β, weight of the log density"):
        assert expected in said


@pytest.mark.parametrize(
    ("factor", "scale"), [((1, 1, 1, 1, 1), "linear"), ((0.01, 1, 1, 1, 1), "log"), ((0, 0.01, 1, 1, 1), "symlog")]
)
def test_betas_over_decades_get_a_logarithmic_axis(world, choose, factor, scale):
    choice = choose(world(2), VALLEY)
    figure = divergence_curve(dataclasses.replace(choice, grid=choice.grid * np.array(factor)))
    assert figure.axes[0].get_xscale() == scale


@pytest.mark.parametrize("d", [2, 4])
def test_small_multiples_show_the_chosen_beta_and_what_happens_to_the_spread(world, choose, words, d):
    w = world(d)
    choice = choose(w, [5, 4, 3, 2, 1, 2, 3, 4, 5, 6])
    figure = latents_by_beta(choice, w.latents, w.favourable, latent_plane(w.latents, w.model))
    said = words(figure)
    assert len(figure.axes) == 4
    for expected in ("β = 0.5 (chosen)", "β = 0.1", "β = 1", "shrinks from", "latent units"):
        assert expected in said
    assert to_png(figure, 40)


def test_a_growing_spread_is_called_growing(world, choose, words):
    w = world(2)
    choice = choose(w, VALLEY)
    reversed_ = dataclasses.replace(choice, latents=choice.latents[::-1].copy())
    assert "grows from" in words(latents_by_beta(reversed_, w.latents, w.favourable, latent_plane(w.latents, w.model)))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_short_grids_and_betas_without_answers_are_drawn(world, choose, size):
    w = world(2)
    choice = choose(w, VALLEY[:size])
    choice.latents[-1] = np.nan
    plane = latent_plane(w.latents, w.model)
    assert len(latents_by_beta(choice, w.latents, w.favourable, plane).axes) == size
    nobody = np.zeros_like(w.favourable)
    assert to_png(latents_by_beta(choice, w.latents, nobody, plane), 40)
