"""Two digits: the latent plane with what it decodes to, a way across its boundary, and the answers of all methods."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpae.plots.density import mark_boundary
from gpae.plots.numbers import percent
from gpae.plots.style import FAVOURABLE, GREY, INK, PAPER, REFUSED, RULE, SMALL, TITLE, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from gpae.benchmark.studies.digits import Digits

__all__ = ["NO_ANSWER", "digits_figure"]

Array = NDArray[np.float64]

NO_ANSWER = "no answer"
_COLUMNS = 6
_OWN = "*"


def digits_figure(digits: "Digits") -> "Figure":
    """Draw the paper's illustration: (a) plane and way across, (b) methods on one query, (c) other images."""
    from matplotlib.figure import Figure

    lines = -(-(len(digits.names) + 1) // _COLUMNS)
    figure = Figure(figsize=(12.8, 7.4), layout="constrained")
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.0, 1.2), wspace=0.03)[0]
    plane, way = left.subfigures(2, 1, squeeze=False, height_ratios=(4.5, 1.2))[:, 0]
    methods, others = right.subfigures(2, 1, squeeze=False, height_ratios=(0.8 + 1.6 * lines, 3.2))[:, 0]
    _draw_plane(plane, digits)
    _draw_way(way, digits)
    _draw_methods(methods, digits, lines)
    _draw_others(others, digits)
    return figure


def _say(part: "SubFigure", text: str) -> None:
    """Write what a part of the figure shows above it, flush left."""
    part.suptitle(text, x=0.012, ha="left", fontsize=TITLE, color=INK, fontweight="bold")


def _image(axes: "Axes", image: Array, colour: str) -> None:
    """Draw an image, 0 white and 1 black wherever it stands, in a frame of the given colour."""
    axes.imshow(image, "gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
    _frame(axes, colour)


def _frame(axes: "Axes", colour: str, width: float = 1.6) -> None:
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(color=colour, linewidth=width)


def _side(favourable: bool) -> str:
    return FAVOURABLE if favourable else REFUSED


# the latent plane


def _draw_plane(part: "SubFigure", digits: "Digits") -> None:
    axes = part.subplots()
    _draw_tiles(axes, digits)
    points = digits.in_plane(digits.latents)
    for favourable, digit in zip((False, True), digits.pair, strict=True):
        own = points[digits.favourable == favourable]
        axes.scatter(
            own[:, 0],
            own[:, 1],
            s=15,
            c=_side(favourable),
            edgecolors=PAPER,
            linewidths=0.4,
            label=f"image of a {digit}",
        )
    mark_boundary(axes, None)
    axes.lines[-1].set_label("decision boundary")
    _draw_path(axes, digits.in_plane(digits.path), digits.logit(digits.path))
    tidy(axes, "distance from the decision boundary (latent units)", "along the boundary (latent units)")
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=SMALL, frameon=False, labelcolor=INK,
        markerscale=1.4, handletextpad=0.2,
    )  # fmt: skip
    _say(part, f"(a) {_separation(digits)} of the latent plane")


def _draw_tiles(axes: "Axes", digits: "Digits") -> None:
    places = digits.in_plane(digits.tiles)
    half = _tile_size(places) / 2
    images = digits.tile_images.reshape(-1, *digits.tile_images.shape[2:])
    for (x, y), image in zip(places.reshape(-1, 2), images, strict=True):
        axes.imshow(image, "gray_r", vmin=0.0, vmax=1.0, extent=(x - half, x + half, y - half, y + half), zorder=0)
    # a little more than the tiles: the outermost dots are not cut in half
    low, high = places.min((0, 1)) - 1.2 * half, places.max((0, 1)) + 1.2 * half
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")


def _tile_size(places: Array) -> float:
    along_rows, along_columns = places[:, 1:] - places[:, :-1], places[1:] - places[:-1]
    return float(max(along_rows.max(initial=0.0), along_columns.max(initial=0.0))) or 1.0


def _draw_path(axes: "Axes", points: Array, logits: Array) -> None:
    axes.plot(points[:, 0], points[:, 1], color=INK, linewidth=1.4, zorder=3)
    for number, ((x, y), logit) in enumerate(zip(points, logits, strict=True)):
        axes.scatter(x, y, s=125, c=PAPER, edgecolors=_colour_at(logit), linewidths=1.6, zorder=4, clip_on=False)
        axes.text(x, y, str(number + 1), ha="center", va="center_baseline", fontsize=SMALL - 1, color=INK, zorder=5)


def _colour_at(logit: float) -> str:
    """Of a side, or of the boundary itself."""
    return INK if abs(logit) < 1e-6 else _side(logit > 0)


def _separation(digits: "Digits") -> str:
    agree = (digits.logit(digits.latents) > 0) == digits.favourable
    return f"{percent(float(agree.mean()))} of {len(agree)} test images on their own side"


def _draw_way(part: "SubFigure", digits: "Digits") -> None:
    panels = part.subplots(1, len(digits.steps) + 1)
    _image(panels[0], digits.queries[0], REFUSED)
    panels[0].set_xlabel("the image", fontsize=SMALL, color=INK)
    logits = digits.logit(digits.path)
    for number, (axes, step) in enumerate(zip(panels[1:], digits.steps, strict=True)):
        _image(axes, digits.path_images[number], _colour_at(logits[number]))
        axes.set_xlabel(f"{number + 1}: step {step:g}", fontsize=SMALL, color=INK)
    first, last = digits.pair
    _say(part, f"The way across, decoded: from a {first} towards a {last}")


# the methods


def _draw_methods(part: "SubFigure", digits: "Digits", lines: int) -> None:
    panels = part.subplots(lines, _COLUMNS, squeeze=False).ravel()
    _image(panels[0], digits.queries[0], REFUSED)
    _name(panels[0], "the image", _says(digits, float(digits.query_probability[0])))
    for number, axes in enumerate(panels[1 : len(digits.names) + 1]):
        _draw_answer(axes, digits, number)
    for axes in panels[len(digits.names) + 1 :]:
        axes.set_axis_off()
    _say(part, f"(b) {_finding(digits)}")
    if digits.own_classifier.any():
        own = f"{_OWN} explains a classifier of its own, which accepts the answer."
        part.supxlabel(f"Frame and P: the shared classifier's view. {own}", fontsize=SMALL, color=GREY)


def _draw_answer(axes: "Axes", digits: "Digits", number: int) -> None:
    name = digits.names[number] + _OWN * bool(digits.own_classifier[number])
    if not digits.found[number, 0]:
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", facecolor=PAPER)
        _frame(axes, RULE, 1.0)
        axes.text(0.5, 0.5, NO_ANSWER, ha="center", va="center", fontsize=SMALL, color=GREY)
        _name(axes, name, "")
        return
    probability = float(digits.probability[number, 0])
    _image(axes, digits.answers[number, 0], _side(probability > 0.5))
    _name(axes, name, _says(digits, probability))


def _says(digits: "Digits", probability: float) -> str:
    return f"P({digits.pair[1]}) = {probability:.2f}"


def _name(axes: "Axes", name: str, said: str) -> None:
    axes.set_title(name, fontsize=SMALL, color=INK, pad=3)
    axes.set_xlabel(said or " ", fontsize=SMALL - 0.5, color=GREY, labelpad=2)


def _finding(digits: "Digits") -> str:
    found = digits.found[:, 0]
    convinced = int((digits.probability[found, 0] > 0.5).sum())
    answered = "All" if found.all() else f"{found.sum()} of"
    return f"{answered} {len(found)} methods answer; {convinced} answers convince the shared classifier"


# other images


def _draw_others(part: "SubFigure", digits: "Digits") -> None:
    rows = (digits.factuals, digits.on_boundary, digits.beyond)
    panels = part.subplots(3, len(digits.factuals))
    for column, favourable in enumerate(digits.factual_favourable):
        for line, colour in enumerate((_side(favourable), INK, _side(not favourable))):
            _image(panels[line, column], rows[line][column], colour)
    for axes, name in zip(panels[:, 0], ("image", "on the\nboundary\n(step 1)", "mirrored\n(step 2)"), strict=True):
        axes.set_ylabel(name, fontsize=SMALL, color=INK, rotation=0, ha="right", va="center")
    turned = f"{int(digits.turned.sum())} of {len(digits.turned)}"
    _say(part, f"(c) Mirrored in the boundary, {turned} other images read as the other digit")
