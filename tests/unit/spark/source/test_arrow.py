"""arrow: the exact types Spark wants, batches within its limits, nothing lost in the cuts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from kafkapy.common.errors import KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.columns import decode_columns
from kafkapy.spark.source import arrow
from kafkapy.spark.source.pushdown import ANY, Interval
from kafkapy.spark.source.source_columns import COLUMNS, default_columns, schema_of
from tests.harness.storage.batches import NOW_MS, ROWS, raw_batch, rows

TP = TopicPartition("größe", 3)

ALL = default_columns(include_headers=True)


def batches(log: bytes, names: Sequence[str] = ALL) -> list[pa.RecordBatch]:
    found = [
        batch
        for columns in decode_columns(log, 0, 2**62, selection=arrow.fields_to_decode(names))
        for batch in arrow.record_batches(columns, TP, names)
    ]
    for batch in found:
        batch.validate(full=True)
    return found


@pytest.mark.parametrize("names", [ALL, COLUMNS, ("timestamp", "key"), ("headers",)])
def test_the_schema_is_the_one_spark_checks_for(names: tuple[str, ...]) -> None:
    wanted = to_arrow_schema(schema_of(names), timezone="UTC")
    (batch,) = batches(build_batch(ROWS), names)
    assert wanted.equals(batch.schema)


@pytest.mark.parametrize("names", [*((name,) for name in ALL), ("offset", "value"), ALL[::-1]])
def test_columns_alone_are_what_they_are_among_the_others(names: tuple[str, ...]) -> None:
    log = build_batch(rows(25_001)) + build_batch(ROWS, base_offset=25_001)
    everything = pa.Table.from_batches(batches(log))
    assert pa.Table.from_batches(batches(log, names)).equals(everything.select(names))


def test_rows_come_through_with_nulls_and_headers() -> None:
    (batch,) = batches(build_batch(ROWS, base_offset=7))
    found = batch.to_pylist()
    assert [row["key"] for row in found] == [r.key for r in ROWS]
    assert [row["value"] for row in found] == [r.value for r in ROWS]
    assert [row["offset"] for row in found] == [7, 8, 9, 10, 11]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in found} == {(*TP, 0)}
    assert found[0]["timestamp"] == datetime.fromtimestamp(NOW_MS / 1000, UTC)
    assert found[0]["headers"] == [
        {"key": "trace", "value": b"1"},
        {"key": "empty", "value": b""},
        {"key": "null", "value": None},
    ]
    assert found[1]["headers"] is None  # as the JVM source: null, not empty


@pytest.mark.parametrize("names", [("timestamp",), ("value",)])
def test_a_time_that_spark_cannot_hold_is_an_error(names: tuple[str, ...]) -> None:
    """As in the JVM source, which ends with "long overflow"; other columns can be read."""
    limit_ms = (2**63 - 1) // 1000
    for ms in (limit_ms, -limit_ms):
        (batch,) = batches(build_batch([RecordData(b"k", b"v", ms)]), ("timestamp",))
        assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [ms * 1000]
    for ms in (limit_ms + 1, 2**63 - 1, -limit_ms - 2):
        log = build_batch([RecordData(b"k", b"v", NOW_MS), RecordData(b"k", b"w", ms)])
        (columns,) = decode_columns(log, 0, 2**62, selection=arrow.fields_to_decode(names))
        interval = Interval(low=0)
        for bounds in (ANY, interval):
            if names == ("value",) and bounds is ANY:
                (batch,) = arrow.record_batches(columns, TP, names)
                assert batch.column("value").to_pylist() == [b"v", b"w"]
                continue
            with pytest.raises(KafkapyError, match=f"offset 1 of größe-3 has the timestamp {ms}"):
                list(arrow.record_batches(columns, TP, names, bounds))


def test_a_header_key_that_is_not_utf8_is_replaced() -> None:
    record = b"\0\0\0\x01\x01\x02\x02\xff\x02v"  # a one-byte key 0xff, value "v"
    (batch,) = batches(raw_batch(bytes([len(record) * 2]) + record, 1))
    assert batch.to_pylist()[0]["headers"] == [{"key": "\ufffd", "value": b"v"}]


def test_batches_have_at_most_ten_thousand_rows() -> None:
    found = batches(build_batch(rows(25_001)))
    assert [batch.num_rows for batch in found] == [10_000, 10_000, 5_001]
    offsets = [offset for batch in found for offset in batch.column("offset").to_pylist()]
    assert offsets == list(range(25_001))


def test_batches_have_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BATCH_BYTES_MAX", 1000)
    log = build_batch([RecordData(b"k", b"x" * size, NOW_MS) for size in (300, 300, 300, 5000, 1)])
    assert [batch.num_rows for batch in batches(log)] == [3, 1, 1]
