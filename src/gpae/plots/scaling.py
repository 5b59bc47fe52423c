"""How cost grows: seconds against the size of the table and of the problem, with the exponent that fits."""

from typing import TYPE_CHECKING

from gpae.plots.numbers import number
from gpae.plots.style import FAVOURABLE, INK, REFUSED, RULE, SMALL, TITLE, headline, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["scaling_figure"]

_WORDS = {"S": "Fourier features S", "d": "latents d", "D": "columns D", "k": "plans a person k"}
_COLOURS = (FAVOURABLE, REFUSED)
_APART = 1.3
"""How many times the last label's size the next one has at least."""


def scaling_figure(rows: "pd.DataFrame", sizes: "pd.DataFrame") -> "Figure":
    """Draw seconds and memory against rows, and time against each size of the problem, a line a data set.

    Parameters
    ----------
    rows
        The columns ``dataset``, ``rows``, ``seconds``, ``peak_mib`` and ``exponent``.
    sizes
        The columns ``dataset``, ``varied``, ``size``, ``us_per_row`` and ``exponent``.
    """
    from matplotlib.figure import Figure

    varied = [name for name in _WORDS if name in set(sizes["varied"])]
    figure = Figure(figsize=(4.0 * (2 + len(varied)) / 2, 6.6), layout="constrained")
    panels = figure.subplots(2, (3 + len(varied)) // 2, squeeze=False).ravel().tolist()
    _lines(panels[0], rows, "rows", "seconds", "people", "seconds")
    headline(panels[0], "Time")
    _lines(panels[1], rows, "rows", "peak_mib", "people", "MiB", fitted=False)
    panels[1].set_ylim(0, 1.3 * rows["peak_mib"].max())
    headline(panels[1], "Peak memory, streamed")
    for axes, name in zip(panels[2:], varied, strict=False):
        _lines(axes, sizes[sizes["varied"] == name], "size", "us_per_row", _WORDS[name], "microseconds a person")
        headline(axes, f"By {_WORDS[name]}")
    for axes in panels[2 + len(varied) :]:
        axes.set_visible(False)
    figure.suptitle("How cost grows", fontsize=TITLE, fontweight="bold", color=INK, x=0.01, ha="left")
    return figure


def _lines(axes: "Axes", table: "pd.DataFrame", x: str, y: str, xlabel: str, ylabel: str, fitted: bool = True) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    if fitted:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.set_xticks(_apart(sorted(set(table[x]))))
    for colour, (name, lines) in zip(_COLOURS, table.groupby("dataset", sort=False), strict=False):
        power = f", exponent {lines['exponent'].iloc[0]:.2f}" if fitted else ""
        axes.plot(lines[x], lines[y], color=colour, marker="o", markersize=4.5, linewidth=1.4, label=f"{name}{power}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.grid(True, color=RULE, linewidth=0.5, alpha=0.5)
    axes.legend(fontsize=SMALL, frameon=False, labelcolor=INK)
    tidy(axes, xlabel, ylabel)


def _apart(sizes: list[float]) -> list[float]:
    """The sizes that have room for a label."""
    labelled = sizes[:1]
    for size in sizes[1:]:
        if size >= _APART * labelled[-1]:
            labelled.append(size)
    return labelled
