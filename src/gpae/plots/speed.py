"""Speed against quality: answers a second over how near and how plausible the answers are, method by method."""

from typing import TYPE_CHECKING

from gpae.plots.direct_labels import name_points
from gpae.plots.numbers import number
from gpae.plots.style import FAVOURABLE, GREY, INK, PAPER, RULE, SMALL, TITLE, headline, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SOUND", "speed_figure"]

SOUND = 0.99
"""Below this share of valid answers a method's mark is hollow."""
_QUALITIES = {"l2": "L2 (↓ nearer)", "neighbours": "5-NN (↓ more plausible)"}
_OURS = "gpae"
_LINEAR = 0.1
"""Below this the scale of quality is linear, down to zero."""


def speed_figure(figures: "pd.DataFrame") -> "Figure":
    """Draw a panel for each case and each of two measures of quality.

    Parameters
    ----------
    figures
        The columns ``case``, ``method``, ``answers_per_second``, ``slowest``, ``fastest``, ``valid``, ``l2`` and
        ``neighbours``, one line a case and method. A method without any valid answer has no quality, and no mark.
    """
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(figures["case"]))
    figure = Figure(figsize=(4.6 * len(cases), 7.2), layout="constrained")
    panels = figure.subplots(len(_QUALITIES), len(cases), squeeze=False, sharex=True)
    for line, (measure, words) in zip(panels, _QUALITIES.items(), strict=True):
        for axes, case in zip(line, cases, strict=True):
            _panel(axes, figures[figures["case"] == case], measure)
            tidy(axes, "", words if axes is line[0] else "")
    for axes, case in zip(panels[0], cases, strict=True):
        headline(axes, case)
    for axes in panels[-1]:
        axes.set_xlabel("answers per second (→ faster)", fontsize=SMALL, color=INK)
    figure.suptitle("Speed against quality", fontsize=TITLE, fontweight="bold", color=INK, x=0.01, ha="left")
    _legend(figure)
    figure.draw_without_rendering()  # lays the panels out
    for line, measure in zip(panels, _QUALITIES, strict=True):
        for axes, case in zip(line, cases, strict=True):
            _name(axes, figures[figures["case"] == case], measure)
    return figure


def _panel(axes: "Axes", lines: "pd.DataFrame", measure: str) -> None:
    known = lines.dropna(subset=[measure])
    _scale(axes)
    for one in known.to_dict("records"):
        colour, y = _colour(one["method"]), one[measure]
        axes.plot([one["slowest"], one["fastest"]], [y, y], color=colour, linewidth=1.0, alpha=0.5, zorder=2)
        face = colour if one["valid"] >= SOUND else PAPER
        axes.plot(
            [one["answers_per_second"]], [y],
            linestyle="", marker="o", markersize=6.5, color=colour, markerfacecolor=face, zorder=3, clip_on=False,
        )  # fmt: skip
    axes.set_ylim(bottom=max(axes.get_ylim()[0], 0.0))
    axes.grid(True, color=RULE, linewidth=0.5, alpha=0.5)


def _scale(axes: "Axes") -> None:
    """Logarithmic, but quality has a zero: who only changes a level is at no distance."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, SymmetricalLogLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=100.0))  # every other decade: more would run into each other
    axes.set_yscale("symlog", linthresh=_LINEAR)
    axes.margins(x=0.18, y=0.22)
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10.0, linthresh=_LINEAR, subs=[1.0, 2.0, 5.0]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def _name(axes: "Axes", lines: "pd.DataFrame", measure: str) -> None:
    known = lines.dropna(subset=[measure])
    points = list(zip(known["answers_per_second"].tolist(), known[measure].tolist(), strict=True))
    names = [str(name) for name in known["method"]]
    name_points(axes, points, names, [_colour(name) for name in names])


def _colour(method: str) -> str:
    return FAVOURABLE if method.startswith(_OURS) else GREY


def _legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    marks = {
        f"at least {SOUND:g} of the answers valid once rounded": GREY,
        "fewer valid": PAPER,
    }
    handles: "list[Artist]" = [
        Line2D([], [], linestyle="", marker="o", markersize=6.5, color=GREY, markerfacecolor=face, label=words)
        for words, face in marks.items()
    ]
    handles.append(Line2D([], [], color=GREY, linewidth=1.0, alpha=0.5, label="slowest to fastest round"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), fontsize=SMALL, frameon=False, labelcolor=INK
    )
