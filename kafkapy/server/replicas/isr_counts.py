"""Counts of ISR changes of this broker's partitions."""

from __future__ import annotations


class IsrCounts:
    """Counts ISR changes that the controller confirmed, of partitions that this broker leads."""

    __slots__ = ("expands", "failed_updates", "shrinks")

    def __init__(self) -> None:
        self.shrinks = 0
        self.expands = 0
        self.failed_updates = 0

    def record_change(self, before: int, after: int) -> None:
        """Count a change of an ISR from `before` to `after` members."""
        self.shrinks += after < before
        self.expands += after > before
