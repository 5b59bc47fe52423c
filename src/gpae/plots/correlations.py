"""How far counterfactuals are from the target class: differences of correlations, and shares of levels."""

import textwrap
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpae.plots.numbers import number
from gpae.plots.style import FAINT, FAVOURABLE, GREY, INK, PAPER, REFUSED, RULE, SMALL, TITLE, headline, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from gpae.benchmark.studies.correlations import Correlations

__all__ = ["correlation_figure", "mean_difference"]

Array: TypeAlias = NDArray[np.float64]

_COLUMNS = 5
_TINY = 7.0
_BAR = 0.36
_LETTERS_AN_INCH = 12.5
"""Of small text, so that lines end before the figure does."""


def correlation_figure(c: "Correlations") -> "Figure":
    """Draw, for each method, the differences of correlations from the target class and the shares of the levels.

    A headline's number is the mean absolute difference over all pairs of features. Names stand once a line of panels,
    at the left, with the numbers by which the diagonals refer to them.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(_COLUMNS, len(c.methods))
    bands = -(-len(c.methods) // columns)
    figure = Figure(figsize=(2.9 + 1.75 * columns, 1.3 + 3.6 * bands), layout=ConstrainedLayoutEngine(h_pad=0.08))
    grid = figure.subplots(2 * bands, columns, squeeze=False, height_ratios=[1.6, 1.0] * bands)
    top, heat_maps = _top(c.difference), []
    for cell in range(bands * columns):
        band, column = divmod(cell, columns)
        upper, lower = grid[2 * band, column], grid[2 * band + 1, column]
        if cell >= len(c.methods):
            upper.remove()
            lower.remove()
            continue
        image = _heat(upper, c, cell, top, named=column == 0)
        heat_maps.append(upper)
        _bars(lower, c, cell, named=column == 0)
    _colour_bar(figure, image, heat_maps)
    letters = int(_LETTERS_AN_INCH * figure.get_figwidth())
    title = textwrap.fill(_finding(c), int(0.8 * letters))
    figure.suptitle(title, fontsize=TITLE, fontweight="bold", color=INK, x=0.01, ha="left")
    _legend(figure, textwrap.fill(_caption(c), letters))
    return figure


def mean_difference(difference: Array) -> float:
    """Return the mean over all pairs of features whose correlations are known; NaN of none.

    Examples
    --------
    >>> mean_difference(np.array([[0.0, 0.25, 0.5], [0.25, 0.0, np.nan], [0.5, np.nan, 0.0]]))
    0.375
    """
    pairs = difference[np.tril_indices(len(difference), -1)]
    known = pairs[~np.isnan(pairs)]
    return float(known.mean()) if len(known) else float("nan")


def _top(difference: Array) -> float:
    """Return the upper end of the common scale, a multiple of 0.1."""
    known = difference[~np.isnan(difference)]
    return max(0.1, float(np.ceil(10 * known.max() - 1e-9) / 10)) if len(known) else 0.1


def _heat(axes: "Axes", c: "Correlations", method: int, top: float, *, named: bool) -> "AxesImage":
    """Draw one triangle, as the matrix is symmetric; on its diagonal stand the numbers of the features."""
    size = len(c.features)
    shown = np.where(np.tri(size, size, -1, dtype=bool), c.difference[method], np.nan)
    image = axes.imshow(shown, _faint_to_ink(), vmin=0.0, vmax=top, aspect="equal")
    for i in range(size):
        axes.text(i, i, str(i + 1), ha="center", va="center", fontsize=SMALL, color=GREY)
        for j in range(i):
            colour = PAPER if shown[i, j] > 0.5 * top else INK
            axes.text(j, i, _short(shown[i, j]), ha="center", va="center", fontsize=_TINY, color=colour)
    names = [f"{name}  {i + 1}" for i, name in enumerate(c.features)]
    axes.set_yticks(range(size), names if named else [""] * size)
    axes.set_xticks([])
    axes.tick_params(labelsize=SMALL, labelcolor=INK, length=0)
    axes.spines[:].set_visible(False)
    headline(axes, f"{c.methods[method]}  {number(mean_difference(c.difference[method]), decimals=2)}")
    return image


def _short(value: float) -> str:
    """Return two digits, without the zero before the point; an unknown difference is a question mark."""
    return "?" if np.isnan(value) else f"{value:.2f}".removeprefix("0")


def _faint_to_ink() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ink", [FAINT, INK]).with_extremes(bad=PAPER)


def _bars(axes: "Axes", c: "Correlations", method: int, *, named: bool) -> None:
    """Draw the shares among the refused people and among their counterfactuals; a line where the target's is."""
    places = np.arange(len(c.levels))
    axes.bar(places - _BAR / 2, 100 * c.refused_shares, _BAR, color=RULE)
    axes.bar(places + _BAR / 2, 100 * c.shares[method], _BAR, color=REFUSED)
    axes.hlines(100 * c.target_shares, places - 1.25 * _BAR, places + 1.25 * _BAR, color=FAVOURABLE, linewidth=2.0)
    axes.set_xticks(places, c.levels)
    axes.set_ylim(0, 100)
    tidy(axes, "", f"{c.category} (%)" if named else "")
    axes.yaxis.label.set_fontsize(SMALL)
    if not named:
        axes.set_yticklabels([])


def _colour_bar(figure: "Figure", image: "AxesImage", heat_maps: "list[Axes]") -> None:
    bar = figure.colorbar(image, ax=heat_maps, fraction=0.03, shrink=0.8, pad=0.02)
    bar.set_label("absolute difference of correlations", fontsize=SMALL, color=INK)
    bar.ax.tick_params(labelsize=SMALL, colors=GREY, length=3)
    bar.outline.set_visible(False)


def _finding(c: "Correlations") -> str:
    """Say who comes closest, and whether that is closer than the people were to begin with."""
    # a method whose counterfactuals are all alike in a feature has no correlation there, and is not the closest
    means = np.array([np.nan if np.isnan(one).any() else mean_difference(one) for one in c.difference])
    if np.isnan(means).all():
        return "No method's counterfactuals have all correlations"
    best, before = int(np.nanargmin(means)), mean_difference(c.refused_difference)
    closest = f"{c.methods[best]} ({number(means[best], decimals=2)})"
    own = f"the refused people's own ({number(before, decimals=2)})"
    if means[best] < before:
        return f"{closest} has the correlations closest to the target class's, closer than {own}"
    return f"No method has correlations closer to the target class's than {own}; next is {closest}"


def _caption(c: "Correlations") -> str:
    """Say what the numbers are, what they can be compared with, and who was not answered."""
    chance = number(mean_difference(c.held_out_difference), decimals=2)
    text = (
        "Beside each name: the mean over all pairs of features. "
        f"By chance alone, test rows of the target class differ from its training rows by {chance}."
    )
    fewer = [f"{name} {n}" for name, n in zip(c.methods, c.answered, strict=True) if n < c.asked]
    return f"{text} Answered, of {c.asked} refused people: {', '.join(fewer)}; by the others, all." if fewer else text


def _legend(figure: "Figure", caption: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(color=RULE, label="refused people"),
        Patch(color=REFUSED, label="their counterfactuals"),
        Line2D([], [], color=FAVOURABLE, linewidth=2.0, label="target class"),
    ]
    legend = figure.legend(
        handles=handles, title=caption, loc="outside lower center", ncols=3, fontsize=SMALL, title_fontsize=SMALL,
        frameon=False, labelcolor=INK,
    )  # fmt: skip
    legend.get_title().set(color=GREY, ha="center")
