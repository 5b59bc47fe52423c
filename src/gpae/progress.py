"""Long work says how far it is; whoever wants to show it listens.

Library code calls :func:`report`; the command line wraps its work in :func:`listening`. Without a listener a report
costs nothing. An exception raised in the listener (an interrupt) stops the work between two steps.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

__all__ = ["Listener", "instead", "listening", "report"]

Listener: TypeAlias = Callable[[str, float], None]
"""(what is being done, the share of it that is done, 0..1)."""

_listener: ContextVar[Listener | None] = ContextVar("gpae_progress", default=None)


def report(stage: str, share: float) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, min(max(share, 0.0), 1.0))


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send the reports made inside the block to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def instead(tell: Callable[[], None]) -> Iterator[None]:
    """Whatever work inside the block reports, ``tell`` is called in its place, to report on the whole."""
    outside = _listener.get()

    def answer(stage: str, share: float) -> None:
        token = _listener.set(outside)
        try:
            tell()
        finally:
            _listener.reset(token)

    with listening(answer):
        yield
