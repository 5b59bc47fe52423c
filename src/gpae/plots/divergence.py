"""The choice of beta: KL over beta, and where the counterfactuals lie at several betas."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpae.models.density_weight import DensityWeight
from gpae.plots.density import mark_boundary
from gpae.plots.latent_plane import LatentPlane, Points
from gpae.plots.numbers import number
from gpae.plots.style import FAVOURABLE, GREY, INK, REFUSED, RULE, SMALL, TEXT, TITLE, headline, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PAPER_BETA", "divergence_curve", "finding", "latents_by_beta"]

PAPER_BETA = 0.4
"""The minimum that the paper reports on LCD."""

_MOST_POINTS = 1500


def divergence_curve(choice: DensityWeight) -> "Figure":
    """Draw KL over beta with one standard error either side, the chosen beta and the paper's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.6, 4.0), layout="constrained")
    axes = figure.subplots()
    axes.axvline(PAPER_BETA, color=RULE, linewidth=1.2, linestyle=(0, (2, 2)), zorder=0)
    _name_line(
        axes,
        PAPER_BETA,
        f"paper, on LCD: {PAPER_BETA}",
        GREY,
        height=0.985,
        leftwards=choice.beta > PAPER_BETA,
    )
    axes.errorbar(
        choice.grid, choice.divergence, choice.standard_error,
        color=GREY, linewidth=1.4, marker="o", markersize=4, elinewidth=1, capsize=2.5,
    )  # fmt: skip
    _mark_chosen(axes, choice)
    _scale(axes, choice.grid)
    axes.margins(y=0.16)
    tidy(axes, "β, weight of the log density", "KL on the decision boundary (nats)")
    headline(axes, finding(choice))
    return figure


def finding(choice: DensityWeight) -> str:
    """Say in one line where the minimum of the curve lies, and whether the curve or the grid put it there."""
    known = np.isfinite(choice.divergence)
    if not known.any():
        return "KL could not be measured at any β"
    lowest = float(choice.grid[known][np.argmin(choice.divergence[known])])
    if not np.isclose(lowest, choice.beta):
        return f"β = {number(choice.beta)} was used; KL is lowest at β = {number(lowest)}"
    if choice.interior:
        return f"KL is lowest at β = {number(lowest)}, inside the grid"
    edge = "smallest" if lowest <= float(np.min(choice.grid)) else "largest"
    return f"KL is lowest at the {edge} β tried ({number(lowest)}): no interior minimum"


def latents_by_beta(
    choice: DensityWeight, latents: Points, favourable: NDArray[np.bool_], plane: LatentPlane, panels: int = 4
) -> "Figure":
    """Draw the latent plane at several betas: favourable latents faint, counterfactuals strong."""
    from matplotlib.figure import Figure

    picked = _spaced(choice, panels)
    drawn = [plane.project(at_beta[np.isfinite(at_beta).all(1)]) for at_beta in choice.latents[picked]]
    target = plane.project(latents[favourable])[:: max(1, int(favourable.sum()) // _MOST_POINTS)]
    figure = Figure(figsize=(max(2.45 * len(picked), 5.0), 3.7), layout="constrained")
    row = figure.subplots(1, len(picked), sharex=True, sharey=True, squeeze=False)[0]
    _frame(row[0], [target, *drawn])
    for axes, index, answers in zip(row, picked, drawn, strict=True):
        _panel(axes, target, answers)
        chosen = " (chosen)" if np.isclose(choice.grid[index], choice.beta) else ""
        axes.set_title(f"β = {number(choice.grid[index])}{chosen}", fontsize=TEXT, color=INK, loc="left")
    _pile_up(list(row), [answers[:, 1] for answers in drawn])
    row[0].set_ylabel("along the boundary (latent units)", fontsize=SMALL, color=INK)
    title = _tightening(choice, picked, plane)
    figure.suptitle(title, fontsize=TITLE, fontweight="bold", color=INK, x=0.01, ha="left")
    _legend(figure)
    return figure


def _spaced(choice: DensityWeight, panels: int) -> list[int]:
    """Return indices of betas from end to end of the grid, the chosen one among them."""
    last = len(choice.grid) - 1
    chosen = int(np.argmin(np.abs(choice.grid - choice.beta)))
    spaced = [int(i) for i in np.linspace(0, last, min(panels, last + 1)).round()]
    if chosen not in spaced:
        spaced[int(np.argmin(np.abs(np.array(spaced[1:-1] or spaced) - chosen))) + (len(spaced) > 2)] = chosen
    return sorted(set(spaced))


def _panel(axes: "Axes", target: Points, answers: Points) -> None:
    mark_boundary(axes, None)
    axes.scatter(target[:, 0], target[:, 1], s=5, c=FAVOURABLE, alpha=0.16, linewidths=0, rasterized=True)
    axes.scatter(answers[:, 0], answers[:, 1], s=7, c=REFUSED, alpha=0.6, linewidths=0, rasterized=True, zorder=3)
    tidy(axes, "distance from boundary", "")
    axes.xaxis.label.set_fontsize(SMALL)


def _pile_up(row: list["Axes"], heights: list[Points]) -> None:
    """Draw, on the refused side, how many counterfactuals lie at each height: dots hide each other."""
    edges = np.linspace(*row[0].get_ylim(), 31)
    counts = [np.histogram(at_beta, edges)[0] for at_beta in heights]
    most = max(1, *(int(count.max()) for count in counts))
    unit = 0.9 * abs(row[0].get_xlim()[0]) / most
    for axes, count in zip(row, counts, strict=True):
        axes.barh(edges[:-1], -unit * count, np.diff(edges), align="edge", color=REFUSED, alpha=0.45)


def _frame(axes: "Axes", clouds: list[Points]) -> None:
    """Show the middle 99 % of the target and every counterfactual, with room left of the boundary."""
    target, *answers = clouds
    middle = np.quantile(target, [0.005, 0.995], axis=0) if len(target) else target
    corners = np.concatenate([middle, *answers, np.zeros((1, 2))])
    low, high = corners.min(0), corners.max(0)
    margin = np.where(high > low, 0.06 * (high - low), 0.5)
    left = min(low[0] - margin[0], -0.3 * high[0])
    axes.set(xlim=(left, high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))


def _legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    entries = (
        ("favourable rows", FAVOURABLE, 0.4),
        ("counterfactuals of refused rows, and how many at each height", REFUSED, 1.0),
    )
    dots = [
        Line2D([], [], marker="o", linestyle="", markersize=4, color=colour, alpha=alpha, label=name)
        for name, colour, alpha in entries
    ]
    figure.legend(
        handles=dots, loc="outside lower center", ncols=2, fontsize=SMALL, frameon=False, labelcolor=INK,
        handletextpad=0.2,
    )  # fmt: skip


def _tightening(choice: DensityWeight, picked: list[int], plane: LatentPlane) -> str:
    """Say how far apart the counterfactuals lie along the boundary at the first and the last beta drawn.

    Only rows with an answer at both are compared: the others would change the spread by coming and going.
    """
    ends = choice.latents[[picked[0], picked[-1]]]
    start, end = ends[:, np.isfinite(ends).all((0, 2))]
    if len(start) < 2 or len(picked) < 2:
        return "Counterfactuals in the latent plane"
    first, last = plane.spread_along_boundary(start), plane.spread_along_boundary(end)
    betas = f"β = {number(choice.grid[picked[0]])} to {number(choice.grid[picked[-1]])}"
    if abs(last - first) <= 0.05 * first:
        return f"From {betas} the spread along the boundary stays at {number(first, 2)}"
    verb = "shrinks" if last < first else "grows"
    return f"From {betas} the spread along the boundary {verb} from {number(first, 2)} to {number(last, 2)}"


def _mark_chosen(axes: "Axes", choice: DensityWeight) -> None:
    index = int(np.argmin(np.abs(choice.grid - choice.beta)))
    axes.axvline(choice.beta, color=FAVOURABLE, linewidth=1.0, alpha=0.6, zorder=0)
    axes.plot([choice.beta], [choice.divergence[index]], "o", color=FAVOURABLE, markersize=8, zorder=3)
    late = choice.beta > 0.7 * float(choice.grid.max())
    _name_line(axes, choice.beta, f"chosen: {number(choice.beta)}", FAVOURABLE, height=0.92, leftwards=late)


def _name_line(axes: "Axes", beta: float, text: str, colour: str, height: float, leftwards: bool = False) -> None:
    axes.annotate(
        text, (beta, height), (-4 if leftwards else 4, 0), xycoords=axes.get_xaxis_transform(),
        textcoords="offset points", fontsize=SMALL, color=colour, va="top",
        ha="right" if leftwards else "left",
    )  # fmt: skip


def _scale(axes: "Axes", grid: Points) -> None:
    """Use a logarithmic axis where the betas span decades."""
    positive = grid[grid > 0]
    if positive.size < 2 or positive.max() < 30 * positive.min():
        return
    if positive.size == grid.size:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=float(positive.min()))
