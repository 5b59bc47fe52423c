"""Which way a feature may change."""

from enum import StrEnum

__all__ = ["Change"]


class Change(StrEnum):
    """Which way a feature may change, seen from the person."""

    any = "any"
    up = "up"
    down = "down"
    fixed = "fixed"
