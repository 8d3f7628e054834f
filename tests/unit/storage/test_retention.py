"""Which segments go."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.storage.retention import deletable_segments
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.batches import flip
from tests.harness.storage.log_builder import LogBuilder, row


@pytest.fixture
def builder(tmp_path: Path) -> LogBuilder:
    """Three segments of two records, 1000 ms apart, and an active one of one."""
    made = LogBuilder(tmp_path)
    for i in range(3):
        made.append(row(timestamp=NOW_MS + 1000 * i)).append(row(timestamp=NOW_MS + 1000 * i))
        made.roll()
    return made.append(row(timestamp=NOW_MS + 3000))


def chosen(builder: LogBuilder, now_ms: int = NOW_MS, **configs: str) -> tuple[list[int], str]:
    log = builder.log
    given = {name.replace("_", "."): value for name, value in configs.items()}
    builder.manager.update_topic_config("orders", {"retention.ms": "-1", **given})
    segments, reason = deletable_segments(
        log.segments, log.config, log.log_start_offset, log.high_watermark,
        log.log_end_offset, now_ms,
    )  # fmt: skip
    return [segment.base_offset for segment in segments], reason


def test_nothing_by_default(builder: LogBuilder) -> None:
    assert chosen(builder, NOW_MS + 10**15) == ([], "")


def test_by_time(builder: LogBuilder) -> None:
    found = chosen(builder, NOW_MS + 2500, retention_ms="1500")
    assert found == ([0], "retention time breach")
    assert chosen(builder, NOW_MS + 2501, retention_ms="1000")[0] == [0, 2]
    assert chosen(builder, NOW_MS + 99_000, retention_ms="1")[0] == [0, 2, 4, 6]


def test_by_time_whatever_cannot_be_read(builder: LogBuilder) -> None:
    """Otherwise the log would grow until the disk is full."""
    builder.reopen()
    path = builder.path(f"{2:020d}.log")
    flip(path, 8 * (builder.log.segments[1].size // 2 + 8))  # the length of the last batch
    assert chosen(builder, NOW_MS + 2001, retention_ms="1000")[0] == [0, 2]
    assert chosen(builder, NOW_MS + 2000, retention_ms="1000")[0] == [0]


def test_by_size(builder: LogBuilder) -> None:
    sizes = [segment.size for segment in builder.log.segments]
    total = sum(sizes)
    assert chosen(builder, retention_bytes=str(total))[0] == []
    assert chosen(builder, retention_bytes=str(total - sizes[0] + 1))[0] == []
    assert chosen(builder, retention_bytes=str(total - sizes[0]))[0] == [0]
    assert chosen(builder, retention_bytes="0")[0] == [0, 2, 4, 6]


def test_by_log_start_offset_whatever_the_policy(builder: LogBuilder) -> None:
    builder.log.maybe_increment_log_start_offset(5, "test")
    found = chosen(builder, NOW_MS + 10**9, cleanup_policy="compact", retention_ms="1")
    assert found == ([0, 2], "log start offset breach")


def test_nothing_beyond_the_high_watermark(builder: LogBuilder) -> None:
    builder.log.update_high_watermark(3)
    assert chosen(builder, NOW_MS + 10**9, retention_ms="1")[0] == [0]


def test_an_empty_active_segment_stays(builder: LogBuilder) -> None:
    builder.roll()
    assert chosen(builder, NOW_MS + 10**9, retention_ms="1")[0] == [0, 2, 4, 6]
