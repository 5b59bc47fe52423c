"""Settings of the baselines and their searches: what is refused before any work starts, and what a preset decides."""

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from gpae.errors import InputError

__all__ = ["check_settings", "decided"]


def check_settings(
    parameters: Mapping[str, Any],
    *,
    counts: Iterable[str] = (),
    optional: Iterable[str] = (),
    least: Mapping[str, float] | None = None,
) -> None:
    """Refuse counts that are no whole numbers above 0 (``optional`` ones may be None) and numbers below their least."""
    for name in (*counts, *(name for name in optional if parameters[name] is not None)):
        value = parameters[name]
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise InputError(f"{name}={value!r} must be a whole number of at least 1")
    for name, bound in (least or {}).items():
        value = parameters[name]
        if isinstance(value, bool) or not (isinstance(value, Real) and bound <= float(value) < np.inf):
            raise InputError(f"{name}={value!r} must be a number of at least {bound:g}")


def decided(parameters: Mapping[str, Any], carla: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, where the preset does not decide."""
    return dict(parameters) | (dict(carla) if parameters["preset"] == "carla" else {})
