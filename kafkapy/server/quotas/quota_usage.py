"""Usage of quotas, and the pause of a client that exceeds one
(`ClientQuotaManager`, `QuotaUtils`; KIP-13).

No loop and no clock: times are the caller's `now_ms`. For a quota of 0 or less, no pause can be
computed. As in Kafka, there is none then, except where pauses are bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from kafkapy.common.sampled_stat import SampledStat, TokenBucket
from kafkapy.server.config.kafka_config import KafkaConfig

K = TypeVar("K")

INACTIVE_MS: Final = 3_600_000
USAGES_MAX: Final = 10_000
"""The limit of usages, because clients choose their client ids. Each takes 750 bytes, and 0.1 ms of
each metrics scrape."""
PAUSE_MS_MAX: Final = 2**31 - 1
# The windows of metrics, which are not those of quotas.
_AVERAGE_WINDOW_MS, _AVERAGE_WINDOWS = 30_000, 2


def throttle_time_ms(
    rate: float, limit: float, span_ms: int, pause_max_ms: int | None = None
) -> int:
    """The ms until a rate over `span_ms` that exceeds its limit returns to it without further use.
    0 if the rate is within the limit, or if the time cannot be computed."""
    if rate <= limit:
        return 0
    if limit == 0:
        return pause_max_ms or 0
    pause_ms = rounded((rate - limit) / limit * span_ms)
    return pause_ms if pause_max_ms is None else min(pause_ms, pause_max_ms)


def rounded(pause_ms: float) -> int:
    """A pause in whole ms, as responses contain it."""
    if not pause_ms > 0:  # NaN too
        return 0
    return PAUSE_MS_MAX if pause_ms >= PAUSE_MS_MAX else math.floor(pause_ms + 0.5)


def pause_stat() -> SampledStat:
    """A record of pauses, for the metrics."""
    return SampledStat(_AVERAGE_WINDOW_MS, _AVERAGE_WINDOWS)


class Windows:
    """Windows of a quota: `quota.window.*`, or those of another `prefix`."""

    def __init__(self, config: KafkaConfig, prefix: str = "") -> None:
        self.num = config.get_int(f"{prefix}quota.window.num")
        self.size_ms = config.get_int(f"{prefix}quota.window.size.seconds") * 1000


class Usage:
    """One entity's usage, its quota per second, and its pauses."""

    __slots__ = ("bucket", "last_ms", "limit", "pauses", "rate")

    def __init__(self, windows: Windows) -> None:
        self.rate = SampledStat(windows.size_ms, windows.num)
        self.bucket = TokenBucket(windows.size_ms, windows.num)
        self.pauses = pause_stat()
        self.limit = math.inf
        self.last_ms = 0

    def record(self, value: float, now_ms: int, pause_max_ms: int | None = None) -> int:
        """Record that `value` was used. Returns the pause in ms, at most `pause_max_ms`."""
        self.rate.record(value, now_ms)
        span_ms = self.rate.span_ms(now_ms)
        return throttle_time_ms(self.rate.rate(now_ms), self.limit, span_ms, pause_max_ms)


class Ledger(Generic[K]):
    """The usages of entities with a quota, until they are inactive for an hour. At `USAGES_MAX`
    usages, the quarter that was inactive for longest is dropped.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._usages: dict[K, Usage] = {}
        self._swept_ms = 0

    def usage(self, key: K, limit: float, now_ms: int) -> Usage:
        """The recorded usage of an entity, with its current quota of `limit` per second."""
        usage = self._usages.get(key)
        if usage is None:
            self._sweep(now_ms)
            usage = self._usages[key] = Usage(self.windows)
        usage.limit = limit
        usage.last_ms = now_ms
        return usage

    def items(self) -> Iterator[tuple[K, Usage]]:
        """All recorded usages."""
        return iter(self._usages.items())

    def _sweep(self, now_ms: int) -> None:
        """Drop inactive usages. The search takes place at most once an hour: there may be many."""
        if now_ms - self._swept_ms >= INACTIVE_MS:
            self._swept_ms = now_ms
            oldest_kept_ms = now_ms - INACTIVE_MS
            self._usages = {k: u for k, u in self._usages.items() if u.last_ms > oldest_kept_ms}
        if len(self._usages) >= USAGES_MAX:
            by_time = sorted(self._usages.items(), key=lambda row: row[1].last_ms)
            self._usages = dict(by_time[USAGES_MAX // 4 :])
