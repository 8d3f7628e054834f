"""A timer: a count, the total time, and the latest times for quantiles."""

from __future__ import annotations

from typing import Final

_RECENT_TIMES_MAX: Final = 1024


class RequestTimes:
    """RequestMetrics of one API: a count, the time spent, and the latest times for quantiles."""

    __slots__ = ("_next", "count", "recent_s", "total_s")

    def __init__(self) -> None:
        self.count = 0
        self.total_s = 0.0
        self.recent_s: list[float] = []
        self._next = 0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total_s += seconds
        if len(self.recent_s) < _RECENT_TIMES_MAX:
            self.recent_s.append(seconds)
        else:
            self.recent_s[self._next] = seconds
            self._next = (self._next + 1) % _RECENT_TIMES_MAX

    def average(self) -> float:
        """The mean of the latest times, in seconds; 0 before the first."""
        return sum(self.recent_s) / len(self.recent_s) if self.recent_s else 0.0

    def maximum(self) -> float:
        """The longest of the latest times, in seconds; 0 before the first."""
        return max(self.recent_s, default=0.0)

    def quantile(self, q: float) -> float:
        """A quantile of the latest times, in seconds; 0 before the first request."""
        if not self.recent_s:
            return 0.0
        ordered = sorted(self.recent_s)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
