"""The Clock and Random ports: what pure packages may know of time and chance.

Production adapters live in `common/system.py`; the simulator has its own.
"""

from __future__ import annotations

from typing import Protocol


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
