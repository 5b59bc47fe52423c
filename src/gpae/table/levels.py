"""Levels of a category, and how to recognise one that another reader wrote in another type."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr

__all__ = ["Level", "closest", "find_level", "listed", "plain"]

Level: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr
"""One value of a category or a label, as JSON can hold it."""


def plain(value: Any) -> Any:
    """Return a whole float as an int, so that a column read as 1.0 and one read as 1 have the same levels."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def find_level(levels: Sequence[Level], value: Any) -> int | None:
    """Return the position of a value among the levels, or None.

    The same value in another type counts (``"1"`` for ``1``, ``1`` or ``"True"`` for ``True``, ``1`` for ``"01"``):
    a level may come from a command line or from a CSV file that was read differently.

    Examples
    --------
    >>> find_level((0, 1), "1"), find_level((False, True), "True"), find_level(("a", "b"), "c")
    (1, 1, None)
    """
    for position, level in enumerate(levels):
        if level == value and isinstance(level, str) == isinstance(value, str):
            return position
    alike = [i for i, level in enumerate(levels) if _same_in_another_type(level, value)]
    return alike[0] if len(alike) == 1 else None


def _same_in_another_type(level: Level, value: Any) -> bool:
    if isinstance(level, str) == isinstance(value, str):
        return False
    text, other = (level, value) if isinstance(level, str) else (value, level)
    if isinstance(other, bool):
        return bool(text.strip().lower() == str(other).lower())
    try:
        return bool(float(text) == float(other))
    except (TypeError, ValueError):
        return False


def listed(values: Iterable[Any], most: int = 12) -> str:
    """Return values as a short list for a message."""
    shown = [repr(value) for value in values]
    more = f", ... ({len(shown)} in all)" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def closest(name: str, known: Sequence[str]) -> str:
    """Return a hint such as ``did you mean 'gender'? `` for a name that is not known, or an empty text."""
    lower = {other.lower(): other for other in known}
    near = [lower[match] for match in get_close_matches(str(name).lower(), lower, n=3)]
    return f"did you mean {listed(near)}? " if near else ""
