"""Names beside points, where there is room for them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gpae.plots.style import RULE, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

__all__ = ["name_points"]

Point: TypeAlias = tuple[float, float]

_MARK = 5.0
"""Half the width of a mark with its margin, in points."""
_RINGS = (7.0, 12.0, 18.0, 26.0, 36.0, 48.0, 62.0, 78.0)
"""How far from its point a name may begin, in points; the nearer the better."""
_FAR = 12.0
"""From beyond this a line leads to the name."""
_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))


def name_points(axes: "Axes", points: Sequence[Point], names: Sequence[str], colours: Sequence[str]) -> None:
    """Write a name beside each point: as near as it covers no mark, no other name and no edge.

    Call it last, on a figure that has been laid out: places are reckoned in its pixels.
    """
    at = axes.transData.transform(np.array(points, dtype=float).reshape(-1, 2))
    pixels = axes.figure.dpi / 72.0
    taken = [_box(x, y, -_MARK * pixels, -_MARK * pixels, 2 * _MARK * pixels, 2 * _MARK * pixels) for x, y in at]
    crowded = [float((1.0 / (1.0 + np.linalg.norm(at - one, axis=1))).sum()) for one in at]
    for i in np.argsort(crowded, kind="stable")[::-1].tolist():  # where it is crowded, there is least choice
        offset, box = _free_place(at[i], _size(axes, names[i]), pixels, taken, axes.get_window_extent())
        _write(axes, points[i], names[i], colours[i], offset)
        taken.append(box)


def _size(axes: "Axes", name: str) -> tuple[float, float]:
    """Width and height of a name in pixels."""
    text = axes.text(0.0, 0.0, name, fontsize=SMALL)
    box = text.get_window_extent()
    text.remove()
    return float(box.width), float(box.height)


def _free_place(
    at: Sequence[float], size: tuple[float, float], pixels: float, taken: "Sequence[Bbox]", inside: "Bbox"
) -> "tuple[Point, Bbox]":
    """The first place that is free; where none is, the one that covers least."""
    best, least = None, np.inf
    for offset in _places():
        box = _named(at, size, offset, pixels)
        covered = sum(_overlap(box, other) for other in taken) + size[0] * size[1] - _overlap(box, inside)
        if covered < least - 1e-6:
            best, least = (offset, box), covered
        if least <= 1e-6:
            break
    assert best is not None
    return best


def _places() -> Iterator[Point]:
    for ring in _RINGS:
        for x, y in _SIDES:
            yield ring * x, ring * y


def _named(at: Sequence[float], size: tuple[float, float], offset: Point, pixels: float) -> "Bbox":
    """The box of a name: it begins at its offset, and lies away from the point."""
    (width, height), (x, y) = size, offset
    left = 0.0 if x > 0 else -width if x < 0 else -width / 2
    low = 0.0 if y > 0 else -height if y < 0 else -height / 2
    return _box(at[0] + x * pixels, at[1] + y * pixels, left, low, width, height)


def _write(axes: "Axes", point: Point, name: str, colour: str, offset: Point) -> None:
    x, y = offset
    line = {"arrowstyle": "-", "color": RULE, "linewidth": 0.8, "shrinkA": 0.0, "shrinkB": 3.0}
    label = axes.annotate(
        name,
        point,
        offset,
        textcoords="offset points",
        fontsize=SMALL,
        color=colour,
        ha="left" if x > 0 else "right" if x < 0 else "center",
        va="bottom" if y > 0 else "top" if y < 0 else "center",
        arrowprops=line if max(abs(x), abs(y)) > _FAR else None,
    )
    label.set_in_layout(False)  # names must not move the panels in which they were placed


def _box(x: float, y: float, left: float, low: float, width: float, height: float) -> "Bbox":
    from matplotlib.transforms import Bbox

    return Bbox.from_bounds(x + left, y + low, width, height)


def _overlap(one: "Bbox", other: "Bbox") -> float:
    """The area that two boxes share."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return float(max(width, 0.0) * max(height, 0.0))
