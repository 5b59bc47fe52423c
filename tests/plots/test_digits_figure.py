from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from gpae.benchmark.studies.digits import STEPS, Digits
from gpae.plots.digits import NO_ANSWER, digits_figure
from gpae.plots.style import FAVOURABLE, INK, REFUSED, to_png

NAMES = ("LogReg", "Wachter", "REVISE", "FACE", "SAE", "CounterNet", "GPAE")
SIDE = 6


def images(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(0.2, 0.8, (*shape, SIDE, SIDE))


@pytest.fixture
def digits() -> Digits:
    rng = np.random.default_rng(0)
    favourable = np.arange(40) % 2 == 1
    latents = rng.normal(size=(40, 2)) * 0.3 + np.where(favourable, 1.0, -1.0)[:, None] * [0.6, 0.8]
    x, y = np.meshgrid(np.arange(-1.5, 2.0), np.arange(-1.0, 2.0))
    tiles = x[..., None] * [0.6, 0.8] + y[..., None] * [-0.8, 0.6]
    path = (np.array(STEPS) - 1)[:, None] * [0.6, 0.8]
    found = np.ones((len(NAMES), 3), dtype=bool)
    found[2, 0] = False
    answers = images(len(NAMES), 3)
    answers[2, 0] = np.nan
    probability = np.linspace(0.3, 0.9, len(NAMES))[:, None].repeat(3, 1)
    probability[2, 0] = np.nan
    return Digits(
        names=NAMES,
        pair=np.array([4, 9]),
        latents=latents,
        favourable=favourable,
        theta=np.array([1.2, 1.6]),
        bias=np.array(0.0),
        tiles=tiles,
        tile_images=images(3, 4),
        steps=np.array(STEPS),
        path=path,
        path_images=images(len(STEPS)),
        queries=images(3),
        query_probability=np.array([0.02, 0.1, 0.3]),
        answers=answers,
        found=found,
        probability=probability,
        own_classifier=np.array([True, False, False, False, True, True, False]),
        factuals=images(4),
        factual_favourable=np.array([False, False, True, True]),
        on_boundary=images(4),
        beyond=images(4),
        turned=np.array([True, True, False, True]),
    )


def titled(figure: Figure, title: str) -> Axes:
    (axes,) = [axes for axes in figure.findobj(Axes) if axes.get_title() == title]
    return axes


def frame(axes: Axes) -> str:
    return to_hex(axes.spines["left"].get_edgecolor())


def test_every_method_has_a_panel_and_those_with_their_own_classifier_are_marked(digits: Digits) -> None:
    figure = digits_figure(digits)
    for name, own in zip(NAMES, digits.own_classifier, strict=True):
        titled(figure, name + "*" * int(own))
    drawn = titled(figure, "GPAE").images[0]
    np.testing.assert_array_equal(drawn.get_array(), digits.answers[6, 0])


def test_a_failure_is_an_empty_frame_that_says_so(digits: Digits) -> None:
    figure = digits_figure(digits)
    blank = titled(figure, "REVISE")
    assert not blank.images
    assert [text.get_text() for text in blank.texts] == [NO_ANSWER]
    assert NO_ANSWER not in [text.get_text() for text in titled(figure, "FACE").texts]


def test_the_headline_counts_answers_and_those_that_convince(digits: Digits, words: Callable[[Figure], str]) -> None:
    assert "6 of 7 methods answer; 4 answers convince" in words(digits_figure(digits))
    sure = replace(digits, found=np.ones_like(digits.found), probability=np.full(digits.found.shape, 0.9))
    assert "All 7 methods answer; 7 answers convince" in words(digits_figure(sure))


def test_frames_tell_the_side(digits: Digits) -> None:
    figure = digits_figure(digits)
    assert frame(titled(figure, "LogReg*")) == REFUSED
    assert frame(titled(figure, "GPAE")) == FAVOURABLE
    steps = {axes.get_xlabel(): frame(axes) for axes in figure.findobj(Axes) if "step" in axes.get_xlabel()}
    assert steps["1: step 0"] == REFUSED
    assert steps["3: step 1"] == INK
    assert steps["5: step 2"] == FAVOURABLE


def test_all_images_share_one_grey_scale(digits: Digits) -> None:
    drawn = [image for axes in digits_figure(digits).findobj(Axes) for image in axes.images]
    # tiles, the query twice, the way across, the answers found, and three rows of other images
    assert len(drawn) == 12 + 2 + len(STEPS) + 6 + 12
    assert {image.get_clim() for image in drawn} == {(0.0, 1.0)}
    assert {image.get_cmap().name for image in drawn} == {"gray_r"}


def test_images_on_the_wrong_side_are_counted(digits: Digits, words: Callable[[Figure], str]) -> None:
    wrong = digits.favourable.copy()
    wrong[:10] ^= True
    assert "75 % of 40 test images on their own side" in words(digits_figure(replace(digits, favourable=wrong)))


def test_the_mirrored_images_that_turned_are_counted(digits: Digits, words: Callable[[Figure], str]) -> None:
    assert "3 of 4 other images read as the other digit" in words(digits_figure(digits))


def test_the_figure_is_written_without_a_warning(digits: Digits) -> None:
    assert to_png(digits_figure(digits), 30).startswith(b"\x89PNG")
