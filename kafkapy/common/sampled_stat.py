"""Rates over sliding windows, and token buckets.

The arithmetic is Kafka's to the millisecond (`common.metrics.stats`: SampledStat, Rate, Avg,
TokenBucket; KIP-13, KIP-599), for a client that is throttled by the one must be throttled as long
by the other. Times are `now_ms` of the caller's clock; rates are per second.
"""

from __future__ import annotations


class _Sample:
    """The value recorded in one window."""

    __slots__ = ("count", "last_ms", "start_ms", "total")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.total = 0.0
        self.count = 0


class SampledStat:
    """Totals over `num_windows` windows of `window_ms`: their rate and their average.

    A window that nothing was recorded in does not exist; one more than `num_windows` is kept, for
    the oldest may reach into what is looked at.
    """

    __slots__ = ("_current", "_num_windows", "_samples", "_window_ms")

    def __init__(self, window_ms: int, num_windows: int) -> None:
        self._window_ms = window_ms
        self._num_windows = num_windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """`value` happened now; a negative one takes an earlier one back."""
        sample = self._sample(now_ms)
        sample.total += value
        sample.count += 1
        sample.last_ms = now_ms

    def _sample(self, now_ms: int) -> _Sample:
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        elif now_ms - samples[self._current].start_ms >= self._window_ms:
            self._current = (self._current + 1) % (self._num_windows + 1)
            if self._current == len(samples):
                samples.append(_Sample(now_ms))
            else:
                samples[self._current].reset(now_ms)
        return samples[self._current]

    def span_ms(self, now_ms: int) -> int:
        """The span of a rate in ms: since the oldest window, and all but one at least."""
        self._forget(now_ms)
        oldest_ms = min((sample.start_ms for sample in self._samples), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = self._num_windows - 1 - elapsed_ms // self._window_ms
        return elapsed_ms + max(0, missing) * self._window_ms

    def rate(self, now_ms: int) -> float:
        """The rate a second."""
        span_ms = self.span_ms(now_ms)
        total = sum(sample.total for sample in self._samples)
        # A single window that has just begun spans nothing.
        return total / (span_ms / 1000) if span_ms else total and float("inf")

    def average(self, now_ms: int) -> float:
        """The mean of what was recorded; NaN if nothing was."""
        self._forget(now_ms)
        count = sum(sample.count for sample in self._samples)
        return sum(sample.total for sample in self._samples) / count if count else float("nan")

    def _forget(self, now_ms: int) -> None:
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._num_windows * self._window_ms:
                sample.reset(now_ms)


class TokenBucket:
    """Credit that comes back at a rate; full at first. Below zero it is exhausted."""

    __slots__ = ("_span_s", "_tokens", "_updated_ms")

    def __init__(self, window_ms: int, num_windows: int) -> None:
        """It holds what `num_windows` windows give."""
        self._span_s = window_ms * num_windows / 1000
        self._tokens = float("inf")
        self._updated_ms = 0

    def tokens(self, per_second: float, now_ms: int) -> float:
        """Remaining tokens, refilled since the last call."""
        elapsed_s = (now_ms - self._updated_ms) / 1000
        self._tokens = min(per_second * self._span_s, self._tokens + per_second * elapsed_s)
        self._updated_ms = now_ms
        return self._tokens

    def take(self, value: float, per_second: float, now_ms: int) -> None:
        """Use credit up, below zero if need be."""
        self._tokens = self.tokens(per_second, now_ms) - value
