"""How the metrics change with the size of the model: a line over the settings and its confidence band."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpae.metrics import METRICS
from gpae.plots.numbers import number
from gpae.plots.style import FAVOURABLE, GREY, INK, SMALL, TITLE, headline, tidy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PAPER_SIZE", "Parameter", "ablation_figure", "confidence_band"]

Parameter: TypeAlias = Literal["latent_dim", "n_features"]
Array: TypeAlias = NDArray[np.float64]

PAPER_SIZE: dict[Parameter, int] = {"latent_dim": 4, "n_features": 1000}
"""The paper's values; while one of the two changes, the other stays there."""

_NAMES: dict[Parameter, str] = {"latent_dim": "latent dimension d", "n_features": "Fourier features S"}
_PANELS = {
    "L2": "L2",
    "Diversity": "Diversity",
    "Instability": "Instability",
    "DiscriminativePower": "Discriminative power",
    "IM1": "IM1",
    "IM2": "IM2",
}
_CONFIDENCE = 0.95


def ablation_figure(frame: "pd.DataFrame", parameter: Parameter) -> "Figure":
    """Draw six metrics over the settings of one parameter: the mean over seeds and its 95 % confidence band.

    Parameters
    ----------
    frame
        The columns ``parameter``, ``setting``, ``seed``, ``metric`` and ``value``, one line a figure.
    """
    from matplotlib.figure import Figure

    mine = frame[frame["parameter"] == parameter]
    figure = Figure(figsize=(9.6, 5.4), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True)
    for axes, metric in zip(panels.flat, _PANELS, strict=True):
        _panel(axes, mine[mine["metric"] == metric], parameter)
        headline(axes, _PANELS[metric])
        good = "↑ better" if METRICS[metric].better == "higher" else "↓ better"
        axes.set_title(good, fontsize=SMALL, color=GREY, loc="right", pad=9)
    for axes in panels[-1]:
        axes.set_xlabel(_NAMES[parameter], fontsize=SMALL, color=INK)
    _scale(panels[0, 0], sorted(set(mine["setting"])), parameter)
    title = _title(mine, parameter)
    figure.suptitle(title, fontsize=TITLE, fontweight="bold", color=INK, x=0.01, ha="left")
    _legend(figure, mine["seed"].nunique(), PAPER_SIZE[parameter])
    return figure


def confidence_band(values: Array) -> tuple[float, float, float]:
    """Return the mean of the values that are not NaN and, by Student's t, the ends of its 95 % confidence interval.

    Of a single value there is no interval: its ends are NaN.

    Examples
    --------
    >>> [round(end, 3) for end in confidence_band(np.array([1.0, 2.0, 3.0]))]
    [2.0, -0.484, 4.484]
    """
    from scipy.stats import t

    known = values[~np.isnan(values)]
    if len(known) == 0:
        return np.nan, np.nan, np.nan
    mean = float(known.mean())
    if len(known) == 1:
        return mean, np.nan, np.nan
    half = float(t.ppf(0.5 + _CONFIDENCE / 2, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)))
    return mean, mean - half, mean + half


def _panel(axes: "Axes", lines: "pd.DataFrame", parameter: Parameter) -> None:
    settings = sorted(set(lines["setting"]))
    values = [lines.loc[lines["setting"] == setting, "value"].to_numpy(np.float64) for setting in settings]
    bands = np.array([confidence_band(each) for each in values]).reshape(-1, 3)
    axes.axvline(PAPER_SIZE[parameter], color=GREY, linewidth=1.0, linestyle=(0, (2, 2)), zorder=0)
    axes.fill_between(settings, bands[:, 1], bands[:, 2], color=FAVOURABLE, alpha=0.18, linewidth=0)
    axes.scatter(lines["setting"], lines["value"], s=7, color=GREY, alpha=0.55, linewidths=0, zorder=2)
    axes.plot(settings, bands[:, 0], color=FAVOURABLE, linewidth=1.6, marker="o", markersize=4, zorder=3)
    axes.margins(y=0.1)
    tidy(axes, "", "")


def _scale(axes: "Axes", settings: list[float], parameter: Parameter) -> None:
    """Put a tick at every setting; panels share the axis. The features double, so their axis is logarithmic."""
    from matplotlib.ticker import NullLocator

    if parameter == "n_features":
        axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(settings, [number(setting) for setting in settings])


def _title(mine: "pd.DataFrame", parameter: Parameter) -> str:
    other: Parameter = "n_features" if parameter == "latent_dim" else "latent_dim"
    fixed = f"{_NAMES[other].rsplit(' ', 1)[1]} = {PAPER_SIZE[other]}"
    settings = mine["setting"]
    span = f", {number(settings.min())} to {number(settings.max())}" if len(settings) else ""
    return f"Quality of counterfactuals over the {_NAMES[parameter]}{span} ({fixed})"


def _legend(figure: "Figure", n_seeds: int, paper_size: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: "list[Artist]" = [
        Line2D([], [], color=FAVOURABLE, linewidth=1.6, marker="o", markersize=4, label=f"mean of {n_seeds} seeds")
    ]
    if n_seeds > 1:
        band = f"{100 * _CONFIDENCE:.0f} % confidence interval of the mean over seeds (Student's t)"
        handles.append(Patch(color=FAVOURABLE, alpha=0.18, linewidth=0, label=band))
    handles += [
        Line2D([], [], linestyle="", marker="o", markersize=3, color=GREY, alpha=0.55, label="one seed"),
        Line2D([], [], color=GREY, linewidth=1.0, linestyle=(0, (2, 2)), label=f"the paper's {number(paper_size)}"),
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), fontsize=SMALL, frameon=False, labelcolor=INK
    )
