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
