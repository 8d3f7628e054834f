"""The lines of producer-perf, and what is sent; runs are tested live."""

import zlib
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.tools.perf.producer_perf import (
    LatencyStats,
    Workload,
    file_payloads,
    monotonic_payloads,
    percentiles,
    random_payloads,
    read_payload_file,
    run,
)


def test_a_window_ends_with_the_first_record_after_five_seconds() -> None:
    stats = LatencyStats(100, start_ms=1000)
    assert stats.record(10, 1024 * 1024, now_ms=3000) is None
    assert stats.record(30, 1024 * 1024, now_ms=6000) == (
        "2 records sent, 0.4 records/sec (0.40 MB/sec), 20.0 ms avg latency, 30.0 ms max latency."
    )
    assert stats.record(1, 0, now_ms=6001) is None, "a new window begins"


def test_a_window_has_the_length_that_was_asked_for() -> None:
    stats = LatencyStats(100, start_ms=0, interval_ms=1000)
    assert stats.record(1, 1, now_ms=999) is None
    assert stats.record(1, 1, now_ms=1000) is not None


def test_the_last_line() -> None:
    stats = LatencyStats(100, start_ms=0)
    for latency_ms in range(1, 101):
        stats.record(latency_ms, 1024, now_ms=1)
    assert stats.totals(2000).line() == (
        "100 records sent, 50.000000 records/sec (0.05 MB/sec), 50.50 ms avg latency, 100.00 ms"
        " max latency, 51 ms 50th, 96 ms 95th, 100 ms 99th, 100 ms 99.9th."
    )


def test_nothing_sent_is_a_line_too() -> None:
    line = LatencyStats(0, 0).totals(0).line()
    assert line.startswith("0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg latency, 0.00")


def test_long_runs_keep_every_nth_sample() -> None:
    stats = LatencyStats(1_000_000, 0)
    for _ in range(10):
        stats.record(7, 1, 0)
    assert len(stats._samples) == 5
    assert percentiles([], [(0.5, "50th")]) == {"50th": 0}


def test_rates_of_compressed_records_are_not_those_of_one_repeated_payload() -> None:
    payloads = list(islice(random_payloads(100), 50))
    # Random capitals have 4.7 bits of 8.
    assert len(zlib.compress(b"".join(payloads))) > 50 * 100 / 2
    assert {len(payload) for payload in payloads} == {100}
    assert all(payload.isalpha() and payload.isupper() for payload in payloads)
    assert payloads == list(islice(random_payloads(100), 50))


def test_payloads() -> None:
    assert list(islice(monotonic_payloads(), 3)) == [b"0", b"1", b"2"]
    picked = list(islice(file_payloads([b"a", b"b"]), 50))
    assert set(picked) == {b"a", b"b"}
    assert picked == list(islice(file_payloads([b"a", b"b"]), 50))


def test_a_payload_file_loses_its_empty_end(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a;;b;;")
    assert read_payload_file(str(tmp_path / "p"), ";") == [b"a", b"", b"b"]
    (tmp_path / "empty").touch()
    (tmp_path / "blank").write_text("\n\n")
    for name in ("empty", "blank", "none"):
        with pytest.raises(ConfigError, match="File does not exist or empty file provided"):
            read_payload_file(str(tmp_path / name), "\n")


class Acknowledged:
    """A record that was acknowledged."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s

    def latency(self) -> float:
        return self._latency_s

    def value(self) -> bytes:
        return b"x"


class SlowStart:
    """A producer whose first two records take a second, the others 1 ms."""

    sent = 0

    def produce(self, topic: str, value: bytes, on_delivery: Any) -> None:
        self.sent += 1
        on_delivery(None, Acknowledged(1.0 if self.sent <= 2 else 0.001))

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self) -> None:
        """All are acknowledged."""


def test_the_steady_state_is_without_the_warm_up() -> None:
    lines: list[str] = []
    producer: Any = SlowStart()
    work = Workload("t", 5, monotonic_payloads(), -1, warmup_records=2)
    whole, steady = run(producer, work, lines.append, lines.append, lambda _: None)
    assert (whole.records, whole.max_latency_ms) == (5, 1000)
    assert steady is not None
    assert (steady.records, steady.max_latency_ms) == (3, 1)
    assert lines == [
        "Warmup first 2 records. Steady state results will print after the complete test summary.",
        "In steady state.",
    ]
    assert steady.line(" steady state").startswith("3 steady state records sent, ")


def test_a_run_without_a_warm_up_has_one_result() -> None:
    producer: Any = SlowStart()
    work = Workload("t", 5, monotonic_payloads(), -1)
    whole, steady = run(producer, work, print, print, lambda _: None)
    assert (whole.records, steady) == (5, None)


def test_a_producer_that_was_fenced_ends_with_its_error() -> None:
    class Fenced:
        def init_transactions(self, timeout: float) -> None:
            """Nothing is wrong yet."""

        def begin_transaction(self) -> None:
            raise KafkaException(KafkaError(KafkaError._FENCED, "fenced by a newer instance"))

    producer: Any = Fenced()
    work = Workload("t", 1, random_payloads(1), -1, transaction_duration_ms=1)
    silent: Any = [].append
    with pytest.raises(ApiError, match="fenced by a newer instance"):
        run(producer, work, silent, silent, silent)
