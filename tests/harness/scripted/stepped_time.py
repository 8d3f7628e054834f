"""A stand-in for the module `time`."""

from __future__ import annotations


class SteppedTime:
    """Time that passes only in `sleep`."""

    def __init__(self) -> None:
        self._now_s = 1000.0

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds
