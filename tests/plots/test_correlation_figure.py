import dataclasses

import numpy as np
import pytest

from gpae.benchmark.studies.correlations import Correlations
from gpae.plots.correlations import correlation_figure, mean_difference
from gpae.plots.style import to_png


def matrix(pairs):
    """Of three features, from the differences of (2, 1), (3, 1) and (3, 2)."""
    out = np.zeros((3, 3))
    out[[1, 2, 2], [0, 0, 1]] = pairs
    return out + out.T


def build(methods=3):
    pairs = [(0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.05, 0.1, 0.15), (0.2, 0.2, 0.2), (0.3, 0.3, 0.3), (0.9, 0.1, 0.2)]
    return Correlations(
        methods=tuple(f"M{i}" for i in range(methods)),
        features=("income", "debt", "score"),
        category="loan term",
        levels=("36 months", "60 months"),
        difference=np.stack([matrix(pairs[i]) for i in range(methods)]),
        refused_difference=matrix((0.3, 0.3, 0.3)),
        held_out_difference=matrix((0.03, 0.04, 0.05)),
        shares=np.stack([[0.1 * i, 1 - 0.1 * i] for i in range(methods)]),
        target_shares=np.array([0.8, 0.2]),
        refused_shares=np.array([0.4, 0.6]),
        answered=np.full(methods, 50),
        asked=50,
    )


def panels(figure, methods):
    """The heat maps and the bars, method by method."""
    heat = [axes for axes in figure.axes if axes.images]
    bars = [axes for axes in figure.axes if axes.containers]
    assert len(heat) == len(bars) == methods
    return heat, bars


def test_each_method_has_its_differences_on_a_common_scale():
    c = build(6)
    heat, _ = panels(correlation_figure(c), 6)
    for axes, difference in zip(heat, c.difference, strict=True):
        drawn = np.ma.filled(axes.images[0].get_array(), np.nan)
        np.testing.assert_array_equal(drawn[[1, 2, 2], [0, 0, 1]], difference[[1, 2, 2], [0, 0, 1]])
        assert np.isnan(drawn[np.triu_indices(3)]).all(), "the other triangle says the same"
    assert {axes.images[0].get_clim() for axes in heat} == {(0.0, 0.9)}


def test_the_headline_has_the_mean_over_pairs_without_the_diagonal(words):
    assert mean_difference(matrix((0.1, 0.2, 0.3))) == pytest.approx(0.2)
    said = words(correlation_figure(build()))
    for expected in ("M0  0.20", "M1  0.50", "M2  0.10"):
        assert expected in said


def test_bars_show_the_refused_and_their_counterfactuals_and_a_line_the_target():
    c = build()
    _, bars = panels(correlation_figure(c), 3)
    for axes, shares in zip(bars, c.shares, strict=True):
        refused, counterfactuals = ([bar.get_height() for bar in group] for group in axes.containers)
        np.testing.assert_allclose(refused, [40, 60])
        np.testing.assert_allclose(counterfactuals, 100 * shares)
        np.testing.assert_allclose([path[0][1] for path in axes.collections[0].get_segments()], [80, 20])


def test_names_stand_once_a_line_of_panels():
    heat, bars = panels(correlation_figure(build(6)), 6)
    for i, (upper, lower) in enumerate(zip(heat, bars, strict=True)):
        named = i in (0, 5)
        names = [label.get_text() for label in upper.get_yticklabels()]
        assert names == (["income  1", "debt  2", "score  3"] if named else [""] * 3)
        assert lower.get_ylabel() == ("loan term (%)" if named else "")
        assert {"1", "2", "3"} < {text.get_text() for text in upper.texts}


def test_the_title_says_who_is_closest_and_whether_the_people_were_closer_before(words):
    c = build()
    assert "M2 (0.10) has the correlations closest" in words(correlation_figure(c))
    before = dataclasses.replace(c, refused_difference=matrix((0.05, 0.05, 0.05)))
    said = words(correlation_figure(before)).replace("\n", " ")
    assert "No method has correlations closer to the target class's than the refused people's own (0.05)" in said


def test_what_happens_by_chance_and_who_was_not_answered_is_told(words):
    c = build()
    assert "training rows by 0.04" in words(correlation_figure(c)).replace("\n", " ")
    assert "Answered" not in words(correlation_figure(c))
    c.answered[1] = 37
    assert "of 50 refused people: M1 37;" in words(correlation_figure(c)).replace("\n", " ")


def test_unknown_correlations_are_marked_and_left_out_of_the_mean(words):
    c = build()
    c.difference[1] = matrix((np.nan, np.nan, 0.6))
    c.difference[0] = np.nan
    figure = correlation_figure(c)
    said = words(figure)
    assert said.split("\n").count("?") == 5
    assert "M1  0.60" in said
    assert "M0  missing" in said
    assert to_png(figure, 40)


def test_no_text_overlaps_another():
    figure = correlation_figure(build(6))
    figure.draw_without_rendering()
    heat, bars = panels(figure, 6)
    legend = figure.legends[0].get_window_extent()
    for upper, lower in zip(heat, bars, strict=True):
        assert lower.get_tightbbox().y1 <= upper.get_tightbbox().y0
        assert legend.y1 <= lower.get_tightbbox().y0
        assert upper._left_title.get_window_extent().y1 < figure._suptitle.get_window_extent().y0
