from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection

from gpae.benchmark.studies.ablation import PAPER
from gpae.plots.ablation import PAPER_SIZE, ablation_figure, confidence_band
from gpae.plots.style import to_png

METRICS = ("L2", "Diversity", "Instability", "DiscriminativePower", "IM1", "IM2")
GRID = {"latent_dim": (2, 4, 8), "n_features": (50, 1000, 2000)}


def frame(seeds=3):
    lines = [
        (parameter, setting, seed, metric, 10 * column + place + seed)
        for parameter, settings in GRID.items()
        for place, setting in enumerate(settings)
        for column, metric in enumerate((*METRICS, "Validity"))
        for seed in range(seeds)
    ]
    return pd.DataFrame(lines, columns=["parameter", "setting", "seed", "metric", "value"]).astype({"value": float})


def line_of(axes):
    return max(axes.lines, key=lambda line: len(line.get_xdata()))


def band_of(axes):
    return next(c for c in axes.collections if isinstance(c, PolyCollection)).get_paths()[0].vertices


def test_the_interval_is_that_of_students_t():
    # of 1, 2, 3: t(0.975; 2) = 4.302653, standard deviation 1
    assert confidence_band(np.array([1.0, 2.0, 3.0])) == pytest.approx(
        (2, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5)
    )
    assert confidence_band(np.array([1.0, np.nan, 2.0, 3.0])) == confidence_band(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(confidence_band(np.array([5.0])), (5, np.nan, np.nan))
    assert np.isnan(confidence_band(np.array([]))).all()


@pytest.mark.parametrize("parameter", ["latent_dim", "n_features"])
def test_each_panel_shows_the_mean_and_the_band_of_its_metric(parameter):
    figure = ablation_figure(frame(), parameter)
    assert len(figure.axes) == 6
    for column, axes in enumerate(figure.axes):
        line = line_of(axes)
        assert list(line.get_xdata()) == list(GRID[parameter])
        np.testing.assert_allclose(line.get_ydata(), 10 * column + 1 + np.arange(3))
        half = 4.302653 / 3**0.5
        band = band_of(axes)[:, 1]
        assert (band.min(), band.max()) == pytest.approx((10 * column + 1 - half, 10 * column + 3 + half))


def test_the_papers_value_is_marked_and_features_have_a_logarithmic_axis(words):
    for parameter, scale, marked in (("latent_dim", "linear", "4"), ("n_features", "log", "1,000")):
        figure = ablation_figure(frame(), parameter)
        assert {axes.get_xscale() for axes in figure.axes} == {scale}
        assert f"the paper's {marked}" in words(figure)
        for axes in figure.axes:
            assert [PAPER_SIZE[parameter]] * 2 in [list(line.get_xdata()) for line in axes.lines]
    assert {"latent_dim": PAPER.latent_dim, "n_features": PAPER.n_features} == PAPER_SIZE


def test_the_caption_says_what_the_band_is_and_which_way_is_good(words):
    said = words(ablation_figure(frame(), "latent_dim"))
    assert "mean of 3 seeds" in said
    assert "95 % confidence interval of the mean over seeds (Student's t)" in said
    assert said.count("↑ better") == 2
    assert said.count("↓ better") == 4


def test_one_seed_has_no_band(words):
    figure = ablation_figure(frame(seeds=1), "n_features")
    said = words(figure)
    assert "confidence" not in said
    assert "one seed" in said
    assert to_png(figure, 40)


def test_no_text_overlaps_another():
    figure = ablation_figure(frame(), "n_features")
    figure.draw_without_rendering()
    for axes in figure.axes:
        assert axes._left_title.get_window_extent().x1 < axes._right_title.get_window_extent().x0
        ticks = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_visible()]
        assert all(left.x1 < right.x0 for left, right in pairwise(ticks))
