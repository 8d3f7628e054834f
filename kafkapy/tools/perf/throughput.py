"""Limits a rate (`org.apache.kafka.tools.ThroughputThrottler`)."""

from __future__ import annotations

from typing import Final

# A shorter wait is not worth its overhead.
_MIN_WAIT_S: Final = 0.002


class Throttle:
    """Computes the waits that keep a rate at or below `target_per_s` a second.

    A negative target is no limit. The caller does the waiting.
    """

    def __init__(self, target_per_s: float, start_s: float) -> None:
        self.target_per_s = target_per_s
        self._start_s = start_s
        self._deficit_s = 0.0

    @property
    def blocks(self) -> bool:
        """Whether the target is 0, so that nothing may be sent."""
        return self.target_per_s == 0

    def wait_s(self, done: int, now_s: float) -> float:
        """The wait that is due after `done` items. Very short waits are added to a later one."""
        elapsed_s = now_s - self._start_s
        if self.target_per_s <= 0 or elapsed_s <= 0 or done / elapsed_s <= self.target_per_s:
            return 0.0
        self._deficit_s += 1 / self.target_per_s
        if self._deficit_s < _MIN_WAIT_S:
            return 0.0
        due_s, self._deficit_s = self._deficit_s, 0.0
        return due_s
