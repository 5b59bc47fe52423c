"""A time by which an answer is wanted."""

import time
from dataclasses import dataclass

from gpae.errors import InputError

__all__ = ["Deadline"]


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment at which the time of a call is over; None: it never is."""

    at: float | None
    begun: float = 0.0

    @classmethod
    def after(cls, seconds: float | None) -> "Deadline":
        """So many seconds from now."""
        if seconds is None:
            return cls(None)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
            raise InputError(f"deadline={seconds!r} must be a number of seconds above 0")
        now = time.monotonic()
        return cls(now + float(seconds), now)

    def left(self) -> float:
        """Seconds until then; infinite where there is no deadline."""
        return float("inf") if self.at is None else self.at - time.monotonic()

    def since(self) -> float:
        """Seconds since the time began."""
        return time.monotonic() - self.begun

    def earlier(self, seconds: float) -> "Deadline":
        """A deadline so many seconds before this one, to leave time for what comes after."""
        return Deadline(None if self.at is None else self.at - seconds, self.begun)
