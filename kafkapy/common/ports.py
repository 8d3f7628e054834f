"""The ports Clock, Random and Pause: the only access of pure packages to time and chance.

Production adapters live in `common/system.py`; the simulator has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

Pause: TypeAlias = Callable[[], None]
"""A function that long work calls in its loops. In a worker thread, it makes time for the event
loop."""


def no_pause() -> None:
    """Do nothing: for work that does not delay an event loop."""


class Clock(Protocol):
    """Access to time."""

    def time_ms(self) -> int:
        """Wall-clock milliseconds since the epoch: for timestamps in files and for people."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back: for deadlines."""
        ...


class Random(Protocol):
    """Access to random numbers."""

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        ...

    def bytes(self, n: int) -> bytes:
        """`n` random bytes."""
        ...
