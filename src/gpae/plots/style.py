"""How every figure looks: two colours, grey for context, and figures as bytes. Nothing global is set."""

import io
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FAINT",
    "FAVOURABLE",
    "GREY",
    "INK",
    "PAPER",
    "REFUSED",
    "RULE",
    "headline",
    "tidy",
    "to_png",
    "to_svg",
]

REFUSED = "#bf5000"
FAVOURABLE = "#0072b2"
"""Vermilion and blue of Okabe and Ito, which every kind of colour vision tells apart; dark enough for text."""

INK = "#1f2933"
GREY = "#5f6b7a"
RULE = "#c3cad3"
FAINT = "#e4e8ed"
PAPER = "#ffffff"

TITLE, TEXT, SMALL = 10.5, 9.5, 8.5
"""Font sizes in points."""


def tidy(axes: "Axes", xlabel: str, ylabel: str) -> None:
    """Label the axes and leave only the two spines that carry numbers."""
    axes.set_xlabel(xlabel, fontsize=TEXT, color=INK)
    axes.set_ylabel(ylabel, fontsize=TEXT, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(RULE)
    axes.tick_params(labelsize=SMALL, colors=GREY, length=3, width=0.8)


def headline(axes: "Axes", text: str) -> None:
    """Write what the panel shows above it, flush left."""
    axes.set_title(text, fontsize=TITLE, color=INK, loc="left", pad=9, fontweight="bold")


def to_png(figure: "Figure", dpi: int = 150) -> bytes:
    """Return the figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, facecolor=PAPER)
    return buffer.getvalue()


def to_svg(figure: "Figure") -> bytes:
    """Return the figure as an SVG file: text stays text, the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "gpae"}), warnings.catch_warnings():
        # Whoever shows the SVG has the glyphs, though the font that measures the text may lack them.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font")
        figure.savefig(buffer, format="svg", dpi=200, transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()
