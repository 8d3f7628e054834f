"""ListOffsets by time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.record.builder import build_batch
from kafkapy.record.codec import Codec
from kafkapy.storage import time_lookup
from kafkapy.storage.log_segment import first_record
from tests.harness.storage.batches import patched
from tests.harness.storage.log_builder import LogBuilder, row


@pytest.fixture
def builder(tmp_path: Path) -> LogBuilder:
    made = LogBuilder(tmp_path, index_interval_bytes="0")
    made.append(row(timestamp=100), row(timestamp=90), row(timestamp=120), codec=Codec.GZIP)
    made.leader_epoch = 4
    return made.append(row(timestamp=110)).roll().append(row(timestamp=50), row(timestamp=300))


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (0, (100, 0, 0)),
        (100, (100, 0, 0)),
        (101, (120, 2, 0)),
        (121, (300, 5, 4)),
        (300, (300, 5, 4)),
        (301, None),
    ],
)
def test_the_first_record_at_or_after_a_time(
    builder: LogBuilder, timestamp: int, found: tuple[int, int, int] | None
) -> None:
    for _ in range(2):
        assert builder.log.offset_for_timestamp(timestamp, 6) == found
        builder.reopen()


def test_records_below_the_log_start_are_not_found(builder: LogBuilder) -> None:
    builder.log.maybe_increment_log_start_offset(1, "test")
    assert time_lookup.first_at_or_after(builder.log.local, 0, 1) == (90, 1, 0)


def test_offsets_before_a_time_are_those_of_segments_by_their_last_write(
    builder: LogBuilder,
) -> None:
    builder.roll()
    log = builder.log
    for written, segment in zip((1000, 2000, 3000), log.segments, strict=True):
        builder.fs.set_modified(segment.records.path, written)
    assert log.offsets_before(None, 9000) == [6, 4, 0]
    assert log.offsets_before(1999, 9000) == [0]
    assert log.offsets_before(2000, 9000) == [4, 0]
    assert log.offsets_before(999, 9000) == []
    builder.append(row(timestamp=1))
    assert log.offsets_before(None, 9000) == [7, 6, 4, 0], "the end counts once there is a record"
    builder.fs.set_modified(log.segments.active.records.path, 3000)
    assert log.offsets_before(8999, 9000) == [6, 4, 0], "and is as old as the question"
    log.maybe_increment_log_start_offset(2, "test")
    assert log.offsets_before(None, 9000) == [7, 6, 4, 2]


def test_the_bound_hides_what_is_found(builder: LogBuilder) -> None:
    assert builder.log.offset_for_timestamp(200, 5) is None


def test_the_greatest_timestamp(builder: LogBuilder, tmp_path: Path) -> None:
    assert builder.log.offset_of_max_timestamp(first_record, 0) == (300, 5, 4)
    builder.log.truncate_to(4)
    assert builder.log.offset_of_max_timestamp(first_record, 0) == (120, 2, 0)
    assert LogBuilder(tmp_path / "empty").log.offset_of_max_timestamp(first_record, 0) is None


@pytest.mark.parametrize("codec", Codec)
def test_records_of_clients_that_set_no_maximum_are_found_by_time_and_kept_as_long(
    tmp_path: Path, codec: Codec
) -> None:
    """Sarama before 1.45.1 sends -1. Kafka's broker sets the maximum of each batch."""
    builder = LogBuilder(tmp_path).append(row(timestamp=100))
    batch = build_batch([row(timestamp=t) for t in (200, 400, 300)], codec=codec)
    builder.add(patched(batch, max_timestamp=-1))
    assert builder.log.offset_for_timestamp(150, 4) == (200, 1, 0)
    assert builder.log.offset_for_timestamp(301, 4) == (400, 2, 0)
    assert builder.log.segments.active.newest_ms() == 400
