"""Counts of ISR changes of this broker's partitions."""

from __future__ import annotations


class IsrCounts:
    """Changes of the ISRs of partitions led here, as the controller answered them."""

    __slots__ = ("expands", "failed_updates", "shrinks")

    def __init__(self) -> None:
        self.shrinks = 0
        self.expands = 0
        self.failed_updates = 0

    def committed(self, before: int, after: int) -> None:
        """An ISR of `before` members has `after` now."""
        self.shrinks += after < before
        self.expands += after > before
