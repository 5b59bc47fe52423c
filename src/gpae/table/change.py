"""Which way a feature may change."""

from enum import StrEnum

__all__ = ["Change", "forbidden"]


class Change(StrEnum):
    """Which way a feature may change, seen from the person."""

    any = "any"
    up = "up"
    down = "down"
    fixed = "fixed"


_FORBIDS = {Change.fixed: "{} must not change", Change.up: "{} may only go up", Change.down: "{} may only go down"}


def forbidden(name: str, change: Change) -> str:
    """What a feature's own way to change forbids, in words; empty if nothing."""
    return _FORBIDS.get(change, "").format(name)
