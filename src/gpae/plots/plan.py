"""One person's plan: a line for each change, from here to there, among the favourable training rows."""

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpae.plots.numbers import number, percent
from gpae.plots.plan_view import Change, LevelChange, NumberChange, PlanView, clipped, plausibility_text, survival_text
from gpae.plots.style import FAINT, FAVOURABLE, GREY, INK, PAPER, REFUSED, RULE, SMALL, TEXT, TITLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plan"]

_WIDTH = 7.6
_LEFT, _RIGHT = 2.05, 0.75
"""Inches: the figure, the column of names, the margin for values that stand at the right end."""
_NUMBER_HEIGHT = 0.68
_BAR_HEIGHT, _BARS_PADDING = 0.22, 0.3
_OTHER_LEVELS = 2
_WIDEST = 0.24
"""Of the width, the longest bar: what it says stands to its right."""
_LINE = 0.19
_TICK = 7.5
_MARGIN = 0.2


def plan(view: PlanView, *, titled: bool = True) -> "Figure":
    """Draw the plan: what changes, from what to what, and where the favourable training rows lie.

    ``titled=False`` leaves out what the plan achieves, for a page that says it beside the figure.
    """
    from matplotlib.figure import Figure

    header, footer = _header_lines(view, titled), _unchanged(view)
    heights = [_height(change) for change in view.changes]
    total = _MARGIN * 2 + _LINE * len(footer) + sum(heights) + sum(height for _, height, _ in header)
    figure = Figure(figsize=(_WIDTH, total))
    top = total - 0.5 * _MARGIN
    for words, height, style in header:
        _write(figure, top - height / 2, words, **style)
        top -= height
    for change, height in zip(view.changes, heights, strict=True):
        top -= height
        _draw(_strip(figure, top, height), change)
        _write(figure, top + height / 2, clipped(change.name, 22), fontweight="bold")
    for words in footer:
        _write(figure, top - 0.5 * _MARGIN - _LINE / 2, words, fontsize=SMALL, color=GREY)
        top -= _LINE
    return figure


def _write(figure: "Figure", height: float, words: str, **style: Any) -> None:
    """Write a line in the left margin; names are the user's, so a dollar sign starts no formula."""
    y = height / figure.get_figheight()
    figure.text(
        0.1 / _WIDTH,
        y,
        words,
        **{"fontsize": TEXT, "color": INK, "va": "center", "parse_math": False, **style},
    )


def _header_lines(view: PlanView, titled: bool) -> list[tuple[str, float, dict[str, Any]]]:
    """Return each line above the strips with its height in inches and its style."""
    quiet = {"fontsize": SMALL, "color": GREY}
    lines: list[tuple[str, float, dict[str, Any]]] = []
    if titled:
        lines.append((clipped(view.headline, 88), 0.28, {"fontsize": TITLE, "fontweight": "bold"}))
        trust = "; ".join(filter(None, (plausibility_text(view.plausibility), survival_text(view.survival))))
        lines += [(trust, _LINE, quiet)] if trust else []
    if view.changes:
        lines.append((_key(view), _LINE, quiet))
    return lines


def _key(view: PlanView) -> str:
    key = ["○ now", "● plan"]
    if any(isinstance(change, NumberChange) and change.holds for change in view.changes):
        key.append("line below: where the answer stays yes")
    if any(isinstance(change, NumberChange) for change in view.changes):
        key.append("bars: middle 50 % and 90 % of the favourable training rows")
    return " \u00a0 ".join(key)


def _height(change: Change) -> float:
    if isinstance(change, NumberChange):
        return _NUMBER_HEIGHT
    return _BARS_PADDING + _BAR_HEIGHT * len(_levels_shown(change))


def _strip(figure: "Figure", bottom: float, height: float) -> "Axes":
    total = figure.get_figheight()
    axes = figure.add_axes((_LEFT / _WIDTH, bottom / total, 1 - (_LEFT + _RIGHT) / _WIDTH, height / total))
    axes.set_axis_off()
    return axes


def _draw(axes: "Axes", change: Change) -> None:
    if isinstance(change, NumberChange):
        _draw_number(axes, change)
    else:
        _draw_levels(axes, change)


def _unchanged(view: PlanView) -> list[str]:
    if not view.unchanged:
        return []
    return textwrap.wrap(f"Unchanged: {', '.join(view.unchanged)}", 104)


def _draw_number(axes: "Axes", change: NumberChange) -> None:
    """Draw the band of the favourable rows, and the person's way above it."""
    known = [value for value in (change.before, change.after) if value is not None]
    reference = change.reference[np.isfinite(change.reference)]
    known += change.holds or ()
    low, high = min([*known, *reference]), max([*known, *reference])
    room = (high - low) or 1.0
    axes.set(xlim=(low - 0.01 * room, high + 0.01 * room), ylim=(0, 1))
    if reference.size:
        _draw_band(axes, reference)
    _draw_way(axes, change)


def _draw_band(axes: "Axes", reference: NDArray[np.float64]) -> None:
    """Draw the range as a line, the middle 90 % and 50 % as bars on it, and the median as a tick."""
    low, p5, p25, median, p75, p95, high = np.quantile(reference, (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1))
    axes.plot([low, high], [0.36, 0.36], color=RULE, linewidth=0.8)
    for start, end, colour in ((p5, p95, FAINT), (p25, p75, RULE)):
        axes.plot([start, end], [0.36, 0.36], color=colour, linewidth=8, solid_capstyle="butt")
    axes.plot([median, median], [0.27, 0.45], color=GREY, linewidth=1.4)
    axes.text(low, 0.14, number(low, 3), fontsize=_TICK, color=GREY, ha="left", va="center")
    if high > low:
        axes.text(high, 0.14, number(high, 3), fontsize=_TICK, color=GREY, ha="right", va="center")


def _draw_way(axes: "Axes", change: NumberChange) -> None:
    """Draw hollow dot, arrow and filled dot; each value stands on the outer side of its dot."""
    if change.before is None or change.after is None:
        _draw_from_missing(axes, change)
        return
    before, after = change.texts
    if change.holds is not None:
        axes.plot(change.holds, [0.49, 0.49], color=FAVOURABLE, alpha=0.5, linewidth=2.5, solid_capstyle="butt")
    rises = change.after > change.before
    _arrow(axes, (change.before, 0.62), (change.after, 0.62))
    _dot(axes, change.before, 0.62, filled=False)
    _dot(axes, change.after, 0.62, filled=True)
    _value(axes, change.before, before, REFUSED, leftwards=rises)
    _value(axes, change.after, after, FAVOURABLE, leftwards=not rises)


def _draw_from_missing(axes: "Axes", change: NumberChange) -> None:
    before, after = change.texts
    value = change.after if change.before is None else change.before
    if value is not None:
        _dot(axes, value, 0.62, filled=change.before is None)
        _value(axes, value, f"{before} → {after}", INK, leftwards=value > float(np.mean(axes.get_xlim())))


def _arrow(axes: "Axes", start: tuple[float, float], end: tuple[float, float]) -> None:
    style = {
        "arrowstyle": "-|>,head_width=0.18,head_length=0.4",
        "color": GREY,
        "lw": 1.2,
        "shrinkA": 4,
        "shrinkB": 4,
    }
    axes.annotate("", end, start, arrowprops=style)


def _dot(axes: "Axes", x: float, y: float, filled: bool) -> None:
    colour, face = (FAVOURABLE, FAVOURABLE) if filled else (REFUSED, PAPER)
    axes.plot(
        [x],
        [y],
        "o",
        markersize=7,
        color=colour,
        markerfacecolor=face,
        markeredgewidth=1.6,
        clip_on=False,
        zorder=4,
    )


def _value(axes: "Axes", x: float, text: str, colour: str, leftwards: bool) -> None:
    axes.annotate(
        text, (x, 0.62), (-8 if leftwards else 8, 0), textcoords="offset points", fontsize=TEXT, color=colour,
        ha="right" if leftwards else "left", va="center", annotation_clip=False, parse_math=False,
    )  # fmt: skip


def _levels_shown(change: LevelChange) -> list[str]:
    """Return the person's level, the plan's, and the most common others."""
    own = [change.before, change.after]
    others = sorted((level for level in change.shares if level not in own), key=lambda level: -change.shares[level])
    return own + others[:_OTHER_LEVELS]


def _draw_levels(axes: "Axes", change: LevelChange) -> None:
    """Draw each level's share of the favourable rows; dots mark the person's level and the plan's."""
    levels = _levels_shown(change)
    widest = max([*change.shares.values(), 1e-9])
    axes.set(xlim=(0, 1.0), ylim=(len(levels) - 0.5 + 0.6, -0.5 - 0.6))
    colours = {change.before: REFUSED, change.after: FAVOURABLE}
    for y, level in enumerate(levels):
        share = change.shares.get(level, 0.0)
        colour = colours.get(level, GREY)
        name = clipped(level, 28)
        axes.text(0.035, y, name, fontsize=TEXT, color=colour, va="center", parse_math=False)
        axes.barh(y, _WIDEST * share / widest, 0.5, 0.5, color=FAVOURABLE if level == change.after else RULE)
        label = f"{percent(share)} of the favourable rows" if y == 0 else percent(share)
        axes.text(0.5 + _WIDEST * share / widest + 0.012, y, label, fontsize=SMALL, color=GREY, va="center")
    _arrow(axes, (0.008, 0.0), (0.008, 1.0))
    _dot(axes, 0.008, 0, filled=False)
    _dot(axes, 0.008, 1, filled=True)
