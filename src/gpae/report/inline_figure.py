"""A matplotlib figure as part of a page: inline SVG that takes the page's colours, light or dark."""

import re
from typing import TYPE_CHECKING

from gpae.plots import style
from gpae.report.html import Html, element, join, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline_figure"]

_VARIABLES = {
    style.REFUSED: "--refused",
    style.FAVOURABLE: "--favourable",
    style.INK: "--ink",
    style.GREY: "--grey",
    style.RULE: "--rule",
    style.FAINT: "--faint",
    style.PAPER: "--card",
}


def inline_figure(drawing: "Figure", name: str, description: str, caption: str = "", class_: str = "") -> Html:
    """Return a figure element; ``name`` keeps its ids apart from those of the page's other figures."""
    svg = _drawing_only(style.to_svg(drawing).decode("utf-8"))
    svg = _own_ids(_page_colours(svg), name)
    opening = f'<svg role="img" aria-label="{text(description)}" '
    svg = opening + svg.removeprefix("<svg ")
    words = element("figcaption", text(caption)) if caption else Html("")
    return element("figure", join([element("div", svg, class_="scroll"), words]), class_=class_)


def _drawing_only(svg: str) -> str:
    """Drop what a file needs and a page does not: prologue, metadata, name spaces, style sheet, size."""
    svg = svg[svg.index("<svg ") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>", "", svg, flags=re.DOTALL)
    opening, rest = svg.split(">", 1)
    opening = re.sub(r' (?:xmlns(?::\w+)?|version|width|height)="[^"]*"', "", opening)
    return f"{opening}>{rest}"


def _page_colours(svg: str) -> str:
    def variable(match: re.Match[str]) -> str:
        colour = match.group(2)
        name = _VARIABLES.get(colour)
        return f"{match.group(1)}: var({name}, {colour})" if name else match.group(0)

    return re.sub(r"\b(fill|stroke): (#[0-9a-f]{6})\b", variable, svg)


def _own_ids(svg: str, name: str) -> str:
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
