from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Annotation, Text

from gpae.plots.speed import speed_figure
from gpae.plots.style import FAVOURABLE, GREY, PAPER, to_png, to_svg

METHODS = (
    "DiCE random",
    "DiCE genetic",
    "NICE sparsity",
    "CFNOW greedy",
    "ReLax Wachter",
    "ReLax spheres",
    "ReLax ProtoCF",
    "gpae",
    "gpae on arrays",
)


def frame(seed=0, crowd=1.0):
    rng = np.random.default_rng(seed)
    lines = []
    for case in ("adult, GPAE", "fico, GPAE", "adult, MLP"):
        for method in METHODS:
            rate = float(10 ** (crowd * rng.uniform(-1, 4)))
            l2, near = 10 ** (crowd * rng.uniform(-1, 2)), 10 ** (crowd * rng.uniform(-0.5, 0.5))
            lines.append((case, method, rate, 0.9 * rate, 1.1 * rate, 0.5 if "ReLax" in method else 1.0, l2, near))
    columns = ["case", "method", "answers_per_second", "slowest", "fastest", "valid", "l2", "neighbours"]
    return pd.DataFrame(lines, columns=columns)


def marks(axes):
    return [line for line in axes.lines if line.get_marker() == "o"]


def test_a_panel_for_each_case_and_measure_shows_speed_against_it():
    data = frame()
    figure = speed_figure(data)
    assert len(figure.axes) == 6
    for place, axes in enumerate(figure.axes):
        case = ("adult, GPAE", "fico, GPAE", "adult, MLP")[place % 3]
        mine = data[data["case"] == case]
        assert axes.get_xscale() == "log"
        assert [mark.get_xdata()[0] for mark in marks(axes)] == mine["answers_per_second"].tolist()
        assert [mark.get_ydata()[0] for mark in marks(axes)] == mine["l2" if place < 3 else "neighbours"].tolist()


def test_marks_are_hollow_where_answers_do_not_hold_and_blue_where_they_are_ours():
    for mark, method in zip(marks(speed_figure(frame()).axes[0]), METHODS, strict=True):
        colour = FAVOURABLE if method.startswith("gpae") else GREY
        assert to_hex(mark.get_color()) == colour
        assert to_hex(mark.get_markerfacecolor()) == (PAPER if "ReLax" in method else colour)


def test_a_method_without_any_valid_answer_has_no_mark():
    data = frame()
    data.loc[data["method"] == "CFNOW greedy", ["l2", "neighbours"]] = np.nan
    figure = speed_figure(data)
    assert all(len(marks(axes)) == len(METHODS) - 1 for axes in figure.axes)
    assert b"CFNOW" not in to_svg(figure)


def test_no_distance_at_all_has_a_mark_too():
    data = frame()
    data.loc[data["method"] == "CFNOW greedy", "l2"] = 0.0
    axes = speed_figure(data).axes[0]
    assert 0.0 in [mark.get_ydata()[0] for mark in marks(axes)]
    assert axes.get_ylim()[0] == 0.0
    assert np.isfinite(axes.transData.transform((1.0, 0.0))).all()


@pytest.mark.parametrize("crowd", [1.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_no_name_covers_another_or_a_mark_or_leaves_its_panel(seed, crowd):
    figure = speed_figure(frame(seed, crowd))
    figure.draw_without_rendering()
    for axes in figure.axes:
        names = [text for text in axes.texts if isinstance(text, Annotation)]
        assert sorted(text.get_text() for text in names) == sorted(METHODS)
        boxes = [Text.get_window_extent(text) for text in names]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        points = axes.transData.transform([(mark.get_xdata()[0], mark.get_ydata()[0]) for mark in marks(axes)])
        assert not any(box.contains(x, y) for box in boxes for x, y in points)
        frame_of = axes.get_window_extent()
        assert all(frame_of.x0 <= box.x0 and box.x1 <= frame_of.x1 for box in boxes)


def test_the_figure_says_what_hollow_means(words):
    said = words(speed_figure(frame()))
    assert "at least 0.99 of the answers valid once rounded" in said
    assert "answers per second" in said
    assert to_png(speed_figure(frame()), 40)
