"""Rates over sliding windows, and token buckets.

The arithmetic is Kafka's to the millisecond (`common.metrics.stats`: SampledStat, Rate, Avg,
TokenBucket; KIP-13, KIP-599), so that clients are throttled for the same time as by Kafka. Times
are `now_ms` of the caller's clock; rates are per second.
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

    A window without recorded values does not exist. One more than `num_windows` is kept, because
    the oldest may overlap the measured span.
    """

    __slots__ = ("_current", "_num_windows", "_samples", "_window_ms")

    def __init__(self, window_ms: int, num_windows: int) -> None:
        self._window_ms = window_ms
        self._num_windows = num_windows
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Record `value` now. A negative value undoes an earlier one."""
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
        """The span of a rate in ms: since the oldest window, but at least all windows but one."""
        self._purge_obsolete_samples(now_ms)
        oldest_ms = min((sample.start_ms for sample in self._samples), default=now_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = self._num_windows - 1 - elapsed_ms // self._window_ms
        return elapsed_ms + max(0, missing) * self._window_ms

    def rate(self, now_ms: int) -> float:
        """The rate per second."""
        span_ms = self.span_ms(now_ms)
        total = sum(sample.total for sample in self._samples)
        # A single window that has just begun has a span of 0.
        return total / (span_ms / 1000) if span_ms else total and float("inf")

    def average(self, now_ms: int) -> float:
        """The mean of the recorded values; NaN if there are none."""
        self._purge_obsolete_samples(now_ms)
        count = sum(sample.count for sample in self._samples)
        return sum(sample.total for sample in self._samples) / count if count else float("nan")

    def _purge_obsolete_samples(self, now_ms: int) -> None:
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._num_windows * self._window_ms:
                sample.reset(now_ms)


class TokenBucket:
    """Tokens that are refilled at a rate. Full at first; exhausted below zero."""

    __slots__ = ("_span_s", "_tokens", "_updated_ms")

    def __init__(self, window_ms: int, num_windows: int) -> None:
        """The bucket holds the tokens of `num_windows` windows."""
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
        """Use tokens, below zero if necessary."""
        self._tokens = self.tokens(per_second, now_ms) - value
