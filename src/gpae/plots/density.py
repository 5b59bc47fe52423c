"""The latent density: the latents with its level sets, and its heat map, on either side of the boundary."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.density import Tilt, log_density
from gpae.plots.latent_plane import LatentPlane, Points, latent_plane
from gpae.plots.numbers import number, percent
from gpae.plots.style import FAVOURABLE, GREY, INK, REFUSED, SMALL, headline, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MASSES", "PlaneDensity", "density_caption", "latent_density", "mark_boundary", "scatter"]

Flags = NDArray[np.bool_]

MASSES = (0.95, 0.75, 0.5, 0.25)
"""Share of the drawn density inside each level set, outermost first."""

_MOST_POINTS = 3000
_GRID = 121


@dataclass(frozen=True, slots=True, eq=False)
class PlaneDensity:
    """The density on a grid of the plane: ``values[i, j]`` at ``(x[j], y[i])``."""

    x: Points
    y: Points
    values: Points

    @property
    def levels(self) -> list[float]:
        """Return the heights of the level sets that hold ``MASSES`` of what is drawn, rising."""
        ranked = np.sort(self.values.ravel())[::-1]
        held = np.cumsum(ranked) / ranked.sum()
        places = np.searchsorted(held, MASSES).clip(max=ranked.size - 1)
        return sorted({float(height) for height in ranked[places]})

    @property
    def peak(self) -> tuple[float, float]:
        """Return where the density is highest on the grid."""
        i, j = np.unravel_index(int(self.values.argmax()), self.values.shape)
        return float(self.x[j]), float(self.y[i])


def latent_density(latents: Points, favourable: Flags, model: AutoEncoder, tilt: Tilt) -> "Figure":
    """Draw the paper's figure of the density: (a) latents and level sets, (b) heat map and level sets."""
    from matplotlib.figure import Figure

    plane = latent_plane(latents, model)
    points = plane.project(latents)
    density = _on_grid(plane, points, tilt)
    figure = Figure(figsize=(9.6, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    scatter(left, points, favourable)
    _heat(right, density)
    for axes, name in ((left, None), (right, "boundary")):
        axes.contour(density.x, density.y, density.values, density.levels, colors=INK, linewidths=0.8, alpha=0.75)
        mark_boundary(axes, name)
        axes.set(xlim=(density.x[0], density.x[-1]), ylim=(density.y[0], density.y[-1]))
    tidy(left, "distance from the decision boundary (latent units)", "along the boundary (latent units)")
    tidy(right, "distance from the decision boundary (latent units)", "")
    headline(left, f"(a) {_separation(points, favourable)}")
    headline(right, f"(b) {_peak(density)}")
    left.legend(loc="best", fontsize=SMALL, frameon=False, labelcolor=INK, markerscale=2.0, handletextpad=0.2)
    figure.supxlabel(density_caption(latents.shape[1]), fontsize=SMALL, color=GREY)
    return figure


def density_caption(latent_dim: int) -> str:
    """Say which density is drawn."""
    held = ", ".join(f"{100 * mass:.0f}" for mass in sorted(MASSES))
    sets = f"Level sets hold {held} % of the drawn density."
    if latent_dim == 2:
        return f"{sets} The latent space has two dimensions and is shown whole."
    return (
        f"Of {latent_dim} latent dimensions: theta's direction and, across it, that of largest variance. "
        "The density is that of\nthe plane through the mean of the latents; "
        f"the points are projected onto it. {sets}"
    )


def scatter(axes: "Axes", points: Points, favourable: Flags, size: float = 5.0) -> None:
    """Draw at most 3000 latents in the colours of their classes, shuffled so that neither hides the other."""
    order = np.random.default_rng(0).permutation(len(points))[:_MOST_POINTS]
    colours = np.where(favourable, FAVOURABLE, REFUSED)[order]
    axes.scatter(points[order, 0], points[order, 1], s=size, c=colours, alpha=0.45, linewidths=0, rasterized=True)
    for name, colour in (("refused", REFUSED), ("favourable", FAVOURABLE)):
        axes.scatter([], [], s=size, c=colour, label=name)


def mark_boundary(axes: "Axes", name: str | None) -> None:
    """Draw the decision boundary, x = 0, and write its name where one is given."""
    axes.axvline(0, color=INK, linewidth=1.2, linestyle=(0, (5, 3)))
    if name is not None:
        at = (0, 0.985)
        axes.annotate(
            name, at, (4, 0), xycoords=axes.get_xaxis_transform(), textcoords="offset points", fontsize=SMALL,
            color=INK, va="top",
        )  # fmt: skip


def _on_grid(plane: LatentPlane, points: Points, tilt: Tilt) -> PlaneDensity:
    """Evaluate the density where the middle 99.5 % of the points lie, with a margin, and at the boundary."""
    low, high = np.quantile(points, 0.0025, axis=0), np.quantile(points, 0.9975, axis=0)
    low[0], high[0] = min(low[0], 0.0), max(high[0], 0.0)
    margin = np.where(high > low, 0.12 * (high - low), 0.5)
    x, y = np.linspace(low - margin, high + margin, _GRID).T
    grid = np.stack(np.meshgrid(x, y), 2).reshape(-1, 2)
    lifted = torch.as_tensor(plane.lift(grid), dtype=tilt.mean.dtype, device=tilt.mean.device)
    with torch.no_grad():
        log_p = log_density(tilt, lifted).cpu().double().numpy()
    return PlaneDensity(x, y, np.exp(log_p - log_p.max()).reshape(_GRID, _GRID))


def _heat(axes: "Axes", density: PlaneDensity) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    clear_to_ink = LinearSegmentedColormap.from_list("ink", [(INK, 0.0), (INK, 0.85)])
    edges = (density.x[0], density.x[-1], density.y[0], density.y[-1])
    axes.imshow(density.values, clear_to_ink, origin="lower", extent=edges, aspect="auto", interpolation="bilinear")


def _separation(points: Points, favourable: Flags) -> str:
    agree = (points[:, 0] > 0) == favourable
    if agree.all():
        return f"All {len(points):,} rows lie on their own side"
    return f"{percent(float(agree.mean()))} of {len(points):,} rows lie on their own side"


def _peak(density: PlaneDensity) -> str:
    distance = density.peak[0]
    side = "favourable" if distance > 0 else "refused"
    return f"Density peaks {number(abs(distance), 2)} inside the {side} side"
