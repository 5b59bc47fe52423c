"""A time by which an answer is wanted."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from gpae.errors import InputError

__all__ = ["NEVER", "Deadline"]


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

    def portions(self, n: int, first: int, most: int) -> Iterator[slice]:
        """Go through n things, some at a time, as long as there is time.

        Without a deadline ``most`` at a time; with one ``first`` of them, and from then on no more than should take a
        quarter of the time that is left.
        """
        done, size = 0, most if self.at is None else first
        while done < n and (left := self.left()) > 0:
            part = slice(done, min(done + max(size, 1), n))
            yield part
            done = part.stop
            if self.at is not None:
                took = max(left - self.left(), 1e-6) / (part.stop - part.start)
                size = int(min(max(self.left() / 4 / took, 1), most))

    def earlier(self, seconds: float) -> "Deadline":
        """A deadline so many seconds before this one, to leave time for what comes after."""
        return Deadline(None if self.at is None else self.at - seconds, self.begun)


NEVER = Deadline(None)
"""Time is never over."""
