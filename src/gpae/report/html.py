"""HTML by small functions. Text becomes HTML only through ``text``, so nothing of a user's is ever markup."""

import html
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import NewType

__all__ = ["Html", "element", "heading", "join", "listing", "page", "paragraph", "table", "text"]

Html = NewType("Html", str)
"""Markup that is safe to put on a page."""


def text(value: object) -> Html:
    """Return any value as text of the page."""
    return Html(html.escape(str(value), quote=True))


def join(parts: Iterable[Html]) -> Html:
    """Return the parts one after the other."""
    return Html("\n".join(part for part in parts if part))


def element(name: str, content: Html | str, /, **attributes: str) -> Html:
    """Return an element; ``class_`` and ``aria_label`` stand for the attributes class and aria-label."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value
    )
    return Html(f"<{name}{written}>{content}</{name}>")


def heading(level: int, title: str, anchor: str = "") -> Html:
    """Return a heading, with a place to link to where an anchor is given."""
    return element(f"h{level}", text(title), id=anchor)


def paragraph(words: str, class_: str = "") -> Html:
    """Return a paragraph of plain text."""
    return element("p", text(words), class_=class_)


def listing(sentences: Iterable[str]) -> Html:
    """Return the sentences as a list."""
    return element("ul", join(element("li", text(sentence)) for sentence in sentences))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> Html:
    """Return a table of plain text; a row's first cell names it, ``numeric`` columns are flush right."""
    columns = join(_cell("th", name, i in numeric, "col") for i, name in enumerate(head))
    body = join(
        element(
            "tr",
            join(_cell("td" if i else "th", cell, i in numeric, "" if i else "row") for i, cell in enumerate(row)),
        )
        for row in rows
    )
    parts = [
        element("caption", text(caption)),
        element("thead", element("tr", columns)),
        element("tbody", body),
    ]
    return element("div", element("table", join(parts)), class_="scroll")


def _cell(name: str, words: str, numeric: bool, scope: str) -> Html:
    return element(name, text(words), scope=scope, class_="number" if numeric else "")


def page(title: str, body: Html, class_: str = "") -> str:
    """Return a whole document with the style sheet inside."""
    css = files("gpae.report").joinpath("page.css").read_text(encoding="utf-8")
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            element("title", text(title)),
            element("style", css),
        ]
    )
    parts = element("head", head), element("body", body, class_=class_)
    return f'<!DOCTYPE html>\n<html lang="en">\n{join(parts)}\n</html>\n'
