"""The arguments of a call, checked in the words of the call."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpae.errors import InputError

__all__ = ["a_count", "a_margin", "a_seed", "a_share", "a_text", "names", "plain"]


def plain(value: Any) -> Any:
    """A numpy scalar or array as the Python value that can be written to a file."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def a_text(value: Any, what: str) -> str:
    """A text, or an error."""
    if not isinstance(value, str):
        raise InputError(f"{what}={value!r} must be text")
    return value


def a_seed(seed: Any) -> int:
    """A seed, or an error."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise InputError(f"seed={seed!r} must be a whole number from 0 to 4294967295")
    return int(seed)


def a_count(k: Any, name: str = "k", thing: str = "plan") -> int:
    """A number of things, or an error."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"{name} is {k!r}: ask for a whole number of {thing}s")
    if k < 1:
        raise InputError(f"{name} is {k}: ask for at least one {thing}")
    return int(k)


def a_margin(margin: Any) -> float:
    """Logit units, none where nothing is given, or an error."""
    if margin is None:
        return 0.0
    if isinstance(margin, bool) or not isinstance(margin, int | float | np.number) or not 0 <= margin < np.inf:
        raise InputError(f"margin={margin!r} must be a number of logit units, at least 0")
    return float(margin)


def a_share(share: Any, what: str) -> float | None:
    """A share from 0 to 1, or nothing, or an error."""
    if share is None:
        return None
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 <= share <= 1:
        raise InputError(f"{what}={share!r} must be a share from 0 to 1")
    return float(share)


def names(given: Sequence[str] | None, what: str) -> tuple[str, ...]:
    """Names of columns, or an error."""
    if given is None:
        return ()
    if isinstance(given, str):
        raise InputError(f"{what}={given!r} is a text; give a list of column names: {what}=({given!r},)")
    return tuple(given)
