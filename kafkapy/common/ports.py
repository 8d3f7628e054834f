"""The Clock and Random ports: what pure packages may know of time and chance; and a pause.

Production adapters live in `common/system.py`; the simulator has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

Pause: TypeAlias = Callable[[], None]
"""Called in the loops of long work, which may be done in a thread beside an event loop."""


def no_pause() -> None:
    """For work that keeps nobody waiting."""


class Clock(Protocol):
    """Time, as two verbs."""

    def time_ms(self) -> int:
        """Wall-clock milliseconds since the epoch: for timestamps that people and files see."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back: for deadlines."""
        ...


class Random(Protocol):
    """Chance, as two verbs."""

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        ...

    def bytes(self, n: int) -> bytes:
        """`n` random bytes."""
        ...
