"""Measures the rate of acknowledged records (`org.apache.kafka.tools.ProducerPerformance`)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.java_numbers import decimal, ratio
from kafkapy.tools.librdkafka_client import ToolProducer
from kafkapy.tools.perf.throughput import Throttle

REPORT_INTERVAL_MS: Final = 5000
SAMPLES_MAX: Final = 500_000
_MEBI: Final = 1024.0 * 1024.0
_PERCENTILES: Final = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
_QUEUE_FULL_WAIT_S: Final = 0.1
_INIT_LIMIT_S: Final = 30.0
# A letter for each byte.
_CAPITALS: Final = bytes(65 + byte % 26 for byte in range(256))


class Totals(NamedTuple):
    """The result of a run: latencies in ms, rates by second."""

    records: int
    records_per_s: float
    mb_per_s: float
    avg_latency_ms: float
    max_latency_ms: int
    percentiles_ms: dict[str, int]

    def line(self, label: str = "") -> str:
        """The last line of Kafka's tool."""
        text = (
            f"{self.records}{label} records sent, {decimal(self.records_per_s, 6)} records/sec"
            f" ({decimal(self.mb_per_s, 2)} MB/sec), {decimal(self.avg_latency_ms, 2)} ms avg"
            f" latency, {decimal(self.max_latency_ms, 2)} ms max latency, "
        )
        return text + ", ".join(f"{ms} ms {name}" for name, ms in self.percentiles_ms.items()) + "."


class LatencyStats:
    """Latencies of acknowledged records, for each window of `interval_ms` and for the whole run."""

    def __init__(self, records: int, start_ms: int, interval_ms: int = REPORT_INTERVAL_MS) -> None:
        self._start_ms = start_ms
        self._interval_ms = interval_ms
        self._sample_interval = max(1, records // SAMPLES_MAX)
        self._samples: list[int] = []
        self.count = 0
        self._bytes = self._latency_ms = self._max_ms = 0
        self._open_window(start_ms)

    def _open_window(self, now_ms: int) -> None:
        self._window_start_ms = now_ms
        self._window_count = self._window_bytes = self._window_latency_ms = self._window_max_ms = 0

    def record(self, latency_ms: int, size_bytes: int, now_ms: int) -> str | None:
        """Count one acknowledgement. Returns a line if a window ends with it."""
        if self.count % self._sample_interval == 0:
            self._samples.append(latency_ms)
        self.count += 1
        self._bytes += size_bytes
        self._latency_ms += latency_ms
        self._max_ms = max(self._max_ms, latency_ms)
        self._window_count += 1
        self._window_bytes += size_bytes
        self._window_latency_ms += latency_ms
        self._window_max_ms = max(self._window_max_ms, latency_ms)
        if now_ms - self._window_start_ms < self._interval_ms:
            return None
        line = self.window_line(now_ms)
        self._open_window(now_ms)
        return line

    def window_line(self, now_ms: int) -> str:
        """The line of the window that began after the last line."""
        elapsed_s = (now_ms - self._window_start_ms) / 1000
        average = ratio(self._window_latency_ms, self._window_count)
        return (
            f"{self._window_count} records sent,"
            f" {decimal(ratio(self._window_count, elapsed_s), 1)} records/sec"
            f" ({decimal(ratio(self._window_bytes, elapsed_s) / _MEBI, 2)} MB/sec),"
            f" {decimal(average, 1)} ms avg latency, {decimal(self._window_max_ms, 1)} ms max"
            " latency."
        )

    def totals(self, now_ms: int) -> Totals:
        """The result of the whole run."""
        elapsed_s = (now_ms - self._start_ms) / 1000
        return Totals(
            self.count,
            ratio(self.count, elapsed_s),
            ratio(self._bytes, elapsed_s) / _MEBI,
            ratio(self._latency_ms, self.count),
            self._max_ms,
            percentiles(self._samples, _PERCENTILES),
        )


def percentiles(samples: Sequence[int], wanted: Sequence[tuple[float, str]]) -> dict[str, int]:
    """Percentiles by name: the sample at `int(p * n)` of the sorted samples, or 0 without any."""
    ordered = sorted(samples)
    return {name: ordered[int(p * len(ordered))] if ordered else 0 for p, name in wanted}


def random_payloads(size_bytes: int) -> Iterator[bytes]:
    """Payloads of random capitals, which are the same in every run. Each record has another one:
    codecs would compress a repeated payload to almost nothing.
    """
    rng = random.Random(0)
    while True:
        yield rng.randbytes(size_bytes).translate(_CAPITALS)


def monotonic_payloads() -> Iterator[bytes]:
    """`0`, `1`, `2` and so on."""
    number = 0
    while True:
        yield str(number).encode()
        number += 1


def file_payloads(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Lines of a file in random order, which is the same in every run."""
    rng = random.Random(0)
    while True:
        yield rng.choice(lines)


def read_payload_file(path: str, delimiter: str) -> list[bytes]:
    """The payloads of a file, without empty ones at the end, as with Java's `split`.

    Raises:
        ConfigError: the file does not exist, or has no payload.
    """
    try:
        found = Path(path).read_bytes()
    except OSError:
        found = b""
    parts = found.split(delimiter.encode())
    while parts and not parts[-1]:
        parts.pop()
    if not parts:
        raise ConfigError("File does not exist or empty file provided.")
    return parts


class Workload(NamedTuple):
    """The load: a topic, records and their number, and the rate (negative: unlimited).

    With `transaction_duration_ms` records are sent in transactions of at least that duration. The
    first `warmup_records` do not count in the statistics of the steady state.
    """

    topic: str
    records: int
    payloads: Iterator[bytes]
    throughput: float
    transaction_duration_ms: int = 0
    warmup_records: int = 0
    interval_ms: int = REPORT_INTERVAL_MS


class _Statistics:
    """The statistics of all records, and after a warm-up of the records that follow it."""

    def __init__(
        self,
        workload: Workload,
        print_line: Callable[[str], None],
        report_error: Callable[[str], None],
        show_progress: Callable[[str], None],
    ) -> None:
        self._print_line = print_line
        self._report_error = report_error
        self._show_progress = show_progress
        self._records = workload.records
        self._interval_ms = workload.interval_ms
        self._whole = LatencyStats(workload.records, _now_ms(), workload.interval_ms)
        self._steady: LatencyStats | None = None

    def begin_steady(self, sent: int) -> None:
        """End the warm-up. The lines of windows are those of the steady state from now on."""
        self._steady = LatencyStats(self._records - sent, _now_ms(), self._interval_ms)
        self._print_line("In steady state.")

    def acknowledged(self, is_warm: bool, error: KafkaError | None, message: Message) -> None:
        """Count a record. `is_warm`: it was sent after the warm-up."""
        if error is not None:
            self._report_error(f"{error.name()}: {error.str()}")
            return
        now_ms = _now_ms()
        latency_ms, size = int((message.latency() or 0) * 1000), len(message.value() or b"")
        line = self._whole.record(latency_ms, size, now_ms)
        shown = self._whole
        if self._steady is not None:
            shown = self._steady
            line = shown.record(latency_ms, size, now_ms) if is_warm else None
        if line is not None:
            self._print_line(line)
        else:
            self._show_progress(shown.window_line(now_ms) if shown.count % 1000 == 0 else "")

    def totals(self) -> tuple[Totals, Totals | None]:
        """The result of the run, and after a warm-up that of the steady state."""
        now_ms = _now_ms()
        steady = None if self._steady is None else self._steady.totals(now_ms)
        return self._whole.totals(now_ms), steady


def run(
    producer: ToolProducer,
    workload: Workload,
    print_line: Callable[[str], None],
    report_error: Callable[[str], None],
    show_progress: Callable[[str], None],
) -> tuple[Totals, Totals | None]:
    """Send everything and wait for acknowledgements. Returns the totals, and after a warm-up those
    of the steady state. `print_line` gets the lines of windows, `show_progress` the progress in
    between, `report_error` the errors.

    Raises:
        ApiError: a transaction could not be initialised, begun or committed.
    """
    in_transactions = workload.transaction_duration_ms > 0
    if in_transactions:
        _call_transaction(lambda: producer.init_transactions(_INIT_LIMIT_S))
    statistics = _Statistics(workload, print_line, report_error, show_progress)
    warmup = workload.warmup_records
    if warmup > 0:
        print_line(
            f"Warmup first {warmup} records. Steady state results will print after the complete"
            " test summary."
        )
    throttle = Throttle(workload.throughput, time.monotonic())
    transaction_start_ms = 0
    acknowledged = partial(statistics.acknowledged, warmup <= 0)
    for sent in range(workload.records):
        if in_transactions and not transaction_start_ms:
            _call_transaction(producer.begin_transaction)
            transaction_start_ms = _now_ms()
        if sent == warmup > 0:
            statistics.begin_steady(sent)
            acknowledged = partial(statistics.acknowledged, True)
        _send(producer, workload.topic, next(workload.payloads), acknowledged)
        if (
            transaction_start_ms
            and _now_ms() - transaction_start_ms >= workload.transaction_duration_ms
        ):
            _call_transaction(producer.commit_transaction)
            transaction_start_ms = 0
        wait_for_throttle(producer, throttle, sent)
    if transaction_start_ms:
        _call_transaction(producer.commit_transaction)
    producer.flush()
    return statistics.totals()


def wait_for_throttle(
    producer: ToolProducer,
    throttle: Throttle,
    sent: int,
    is_needed: Callable[[], bool] = lambda: True,
) -> None:
    """Wait for the throttle while `is_needed`. Receive acknowledgements meanwhile."""
    deadline = time.monotonic() + throttle.wait_s(sent, time.monotonic())
    while (throttle.blocks or (left_s := deadline - time.monotonic()) > 0) and is_needed():
        producer.poll(_QUEUE_FULL_WAIT_S if throttle.blocks else min(left_s, _QUEUE_FULL_WAIT_S))


def _send(
    producer: ToolProducer,
    topic: str,
    payload: bytes,
    on_acknowledged: Callable[[KafkaError | None, Message], None],
) -> None:
    while True:
        try:
            producer.produce(topic, payload, on_delivery=on_acknowledged)
            break
        except BufferError:
            producer.poll(_QUEUE_FULL_WAIT_S)
        except KafkaException as error:
            producer.poll(0)  # raises a fatal error, which has the reason
            raise ConfigError(error.args[0].str()) from error
    producer.poll(0)


def _call_transaction(call: Callable[[], object]) -> None:
    try:
        call()
    except KafkaException as error:
        raise ApiError(ErrorCode.INVALID_TXN_STATE, error.args[0].str()) from error


def _now_ms() -> int:
    return int(time.time() * 1000)
