"""What can go wrong, in words for the person who can mend it.

Every error that a user's input can cause derives from :class:`GpaeError`; the command line turns those into exit
code 2. Anything else that escapes is a fault of ours (exit code 1).
"""

from collections.abc import Sequence
from typing import Any

__all__ = ["ArtefactError", "DataMissingError", "GpaeError", "InputError", "either", "one_of"]


class GpaeError(Exception):
    """Base of all errors that the user can mend; the message says what, where and how."""


class InputError(GpaeError, ValueError):
    """A table, a schema, an option or a query is wrong."""


class ArtefactError(GpaeError):
    """A saved model cannot be read: damaged, foreign, or from another version."""


class DataMissingError(GpaeError, FileNotFoundError):
    """A data set is not on this machine; the message says how to get it."""


def either(words: Sequence[str]) -> str:
    """Write down a choice: ``a, b or c``."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def one_of(name: str, value: Any, known: Sequence[Any]) -> None:
    """Refuse a value of an option that is none of the known ones."""
    if value not in known:
        raise InputError(f"{name}={value!r} is not known; use one of {', '.join(map(repr, known))}")
