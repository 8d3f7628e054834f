"""Measures the rate of a consumer (`org.apache.kafka.tools.ConsumerPerformance`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer

from kafkapy.common.java_numbers import decimal, ratio
from kafkapy.tools.java_format import DateFormat
from kafkapy.tools.librdkafka_client import raise_if_final, subscribe

_MEBI: Final = 1024.0 * 1024.0
_BATCH: Final = 1000
# Short, so that the timeout and Ctrl-C take effect soon.
_POLL_S: Final = 0.1
_COMMON_COLUMNS: Final = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms,"
    " fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
HEADER: Final = f"start.time, end.time, {_COMMON_COLUMNS}"
DETAILED_HEADER: Final = f"time, threadId, {_COMMON_COLUMNS}"


class Span(NamedTuple):
    """A time span in ms, with the totals at its end and those since its start."""

    start_ms: int
    end_ms: int
    bytes_total: int
    bytes_new: int
    records_total: int
    records_new: int
    rebalance_ms: int

    def cells(self) -> str:
        """The last cells of both forms of the report."""
        elapsed_s = (self.end_ms - self.start_ms) / 1000
        fetch_ms = max(0, self.end_ms - self.start_ms - self.rebalance_ms)  # by two clocks
        new_mb = self.bytes_new / _MEBI
        return ", ".join(
            [
                decimal(self.bytes_total / _MEBI, 4),
                decimal(ratio(new_mb, elapsed_s), 4),
                str(self.records_total),
                decimal(ratio(self.records_new, elapsed_s), 4),
                str(self.rebalance_ms),
                str(fetch_ms),
                decimal(ratio(new_mb, fetch_ms / 1000), 4),
                decimal(ratio(self.records_new, fetch_ms / 1000), 4),
            ]
        )

    def line(self, dates: DateFormat) -> str:
        """The line of a whole run."""
        return f"{dates.format(self.start_ms)}, {dates.format(self.end_ms)}, {self.cells()}"

    def detailed_line(self, dates: DateFormat) -> str:
        """One interval of `--show-detailed-stats`; there is one thread."""
        return f"{dates.format(self.end_ms)}, 0, {self.cells()}"


class Workload(NamedTuple):
    """The load: topics, the number of records, and the timeout for the next record."""

    topics: list[str]
    records: int
    timeout_ms: int
    interval_ms: int


class Result(NamedTuple):
    """The result of the whole run. `timed_out` is true if records did not arrive in time."""

    span: Span
    timed_out: bool


class _Rebalances:
    """Durations of the rebalances that assigned partitions to this consumer."""

    def __init__(self) -> None:
        self._rebalance_start_s: float | None = time.monotonic()
        self.total_ms = 0

    def on_assign(self, consumer: Consumer, partitions: Any) -> None:
        if self._rebalance_start_s is not None:
            self.total_ms += int((time.monotonic() - self._rebalance_start_s) * 1000)
            self._rebalance_start_s = None

    def on_revoke(self, consumer: Consumer, partitions: Any) -> None:
        self._rebalance_start_s = time.monotonic()


def run(consumer: Consumer, workload: Workload, on_interval: Callable[[Span], None]) -> Result:
    """Read until all records are read, or no record arrives within the timeout. `on_interval` gets
    each interval.

    Raises:
        ApiError: the consumer cannot continue.
    """
    start_ms = last_ms = _now_ms()
    rebalances = _Rebalances()
    callbacks = {"on_assign": rebalances.on_assign, "on_revoke": rebalances.on_revoke}
    subscribe(consumer, workload.topics, **callbacks)
    last_record_s = time.monotonic()
    size = count = last_size = last_count = last_rebalance_ms = 0
    timed_out = False
    while count < workload.records:
        before = count
        # For more records than remain, the call would wait out its timeout.
        for message in consumer.consume(min(_BATCH, workload.records - count), _POLL_S):
            error = message.error()
            if error is None:
                count += 1
                size += len(message.value() or b"") + len(message.key() or b"")
            else:
                raise_if_final(error)
        if count > before:
            last_record_s = time.monotonic()
        elif (time.monotonic() - last_record_s) * 1000 >= workload.timeout_ms:
            timed_out = True
            break
        now_ms = _now_ms()
        if now_ms - last_ms >= workload.interval_ms:
            rebalance_ms = rebalances.total_ms - last_rebalance_ms
            on_interval(
                Span(
                    last_ms, now_ms, size, size - last_size, count, count - last_count, rebalance_ms
                )
            )
            last_ms, last_size, last_count = now_ms, size, count
            last_rebalance_ms = rebalances.total_ms
    span = Span(start_ms, _now_ms(), size, size, count, count, rebalances.total_ms)
    return Result(span, timed_out)


def _now_ms() -> int:
    return int(time.time() * 1000)
