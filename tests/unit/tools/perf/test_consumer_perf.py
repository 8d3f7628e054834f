"""The rows of consumer-perf; runs are tested live."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

from kafkapy.tools.java_format import DateFormat
from kafkapy.tools.perf.consumer_perf import DETAILED_HEADER, HEADER, Span, Workload, run

SECONDS = DateFormat("ss")


def test_a_row_has_a_cell_for_each_column() -> None:
    span = Span(1000, 3000, 4 * 1024 * 1024, 2 * 1024 * 1024, 400, 200, 1000)
    assert span.line(SECONDS) == (
        "01, 03, 4.0000, 1.0000, 400, 100.0000, 1000, 1000, 2.0000, 200.0000"
    )
    assert span.detailed_line(SECONDS).startswith("03, 0, 4.0000, 1.0000, 400, ")
    assert len(span.line(SECONDS).split(", ")) == len(HEADER.split(", "))
    assert len(span.detailed_line(SECONDS).split(", ")) == len(DETAILED_HEADER.split(", "))


def test_no_time_at_all_is_no_fault() -> None:
    assert Span(0, 0, 0, 0, 0, 0, 0).line(SECONDS).endswith("0.0000, NaN, 0, NaN, 0, 0, NaN, NaN")


class Broken:
    """A `confluent_kafka.Consumer` of a partition that cannot be read: an error, again and again,
    and for one that does not give up an end."""

    def __init__(self) -> None:
        self.left = 3

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        pass

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        self.left -= 1
        assert self.left
        return [self]

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._BAD_COMPRESSION)


def test_errors_are_no_records_to_wait_for() -> None:
    broken: Any = Broken()
    result = run(broken, Workload(["t"], records=1, timeout_ms=0, interval_ms=5000), [].append)
    assert (result.timed_out, result.span.records_total) == (True, 0)


class Records:
    """A consumer of a topic with a number of records, behind which no more come."""

    def __init__(self, count: int) -> None:
        self.left = count

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        pass

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        assert count <= self.left, "librdkafka would wait out the timeout"
        self.left -= count
        return [self] * count

    def error(self) -> None:
        pass

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"value"


def test_the_last_records_are_not_waited_for() -> None:
    """A tenth of a second was added to each run."""
    records: Any = Records(2500)
    result = run(records, Workload(["t"], records=2500, timeout_ms=0, interval_ms=5000), [].append)
    assert (result.timed_out, result.span.records_total) == (False, 2500)
    assert result.span.bytes_total == 2500 * 6
