"""Which log is cleaned, and what a commit leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.builder import build_batch
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.verify import verify_log_dir
from tests.support.batches import raw_batch
from tests.support.log_builder import TOPIC_ID, LogBuilder, row
from tests.support.ports import NOW_MS


def compacted(tmp_path: Path, **configs: str) -> LogBuilder:
    configs = {"cleanup_policy": "compact", "file_delete_delay_ms": "0", **configs}
    return LogBuilder(tmp_path, **configs)


def fill(builder: LogBuilder, count: int = 10) -> LogBuilder:
    for i in range(count):
        builder.append(row(f"k{i % 2}", f"v{i}"))
    builder.roll().log.flush()
    return builder


def cleaner(builder: LogBuilder) -> LogCleaner:
    return LogCleaner(builder.fs, builder.manager, 100_000)


def clean(builder: LogBuilder, now_ms: int = NOW_MS) -> bool:
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(now_ms)
    if cleaning is None:
        return False
    cleaning.run()
    return worker.commit(cleaning, now_ms)


def test_a_cleaning_from_plan_to_files(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    builder.append(row("k0", "active"))
    assert clean(builder)
    assert builder.values() == ["v8", "v9", "active"]
    assert [r.offset for r in builder.records()] == [8, 9, 10]
    assert builder.log.read(0, 1000, 11, True).fetch_offset_metadata == (0, 0, 0)
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    assert checkpoint.read_bytes() == b"0\n1\norders 0 10\n"
    assert any(name.endswith(".log.deleted") for name in builder.files())
    builder.manager.delete_due_files(NOW_MS)
    assert not any(name.endswith(".deleted") for name in builder.files())
    builder.reopen()
    assert builder.values() == ["v8", "v9", "active"]
    builder.stop()
    assert verify_log_dir(builder.fs, builder.root) == []


def test_nothing_is_cleaned_twice(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    assert clean(builder)
    assert not clean(builder)
    builder.reopen()
    assert not clean(builder)


def test_the_dirty_ratio_decides(tmp_path: Path) -> None:
    builder = compacted(tmp_path, min_cleanable_dirty_ratio="0.6")
    for i in range(10):
        builder.append(row(f"k{i}", "kept" * 10))
    builder.roll().log.flush()
    assert clean(builder)
    fill(builder, 10)
    assert not clean(builder)
    builder.manager.update_topic_config(
        "orders", {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3"}
    )
    assert clean(builder)


def test_an_overdue_log_is_cleaned_whatever_its_ratio(tmp_path: Path) -> None:
    builder = compacted(tmp_path, min_cleanable_dirty_ratio="1.0", max_compaction_lag_ms="5000")
    fill(builder)
    assert not clean(builder, NOW_MS + 5000)
    assert clean(builder, NOW_MS + 5001)


def test_young_records_wait(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path, min_compaction_lag_ms="5000"))
    assert not clean(builder, NOW_MS + 4999)
    assert clean(builder, NOW_MS + 5000)


def test_an_open_transaction_bounds_the_cleaning(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    builder.produce(7, 0, is_transactional=True)
    fill(builder)
    assert clean(builder)
    assert (tmp_path / "cleaner-offset-checkpoint").read_text().endswith("orders 0 10\n")


def test_unflushed_segments_wait(tmp_path: Path) -> None:
    builder = compacted(tmp_path).append(row("a")).append(row("a")).roll()
    assert not clean(builder)
    builder.log.flush()
    assert clean(builder)
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text().endswith("orders 0 2\n")


def test_the_filthiest_log_goes_first_and_one_at_a_time(tmp_path: Path) -> None:
    builder = compacted(tmp_path, min_cleanable_dirty_ratio="0.01")
    for partition, clean_first in ((1, True), (2, False)):
        log = builder.manager.get_or_create_log(
            TopicPartition("orders", partition), TOPIC_ID, builder.configs, True
        )
        builder.log = log
        fill(builder)
        if clean_first:
            assert clean(builder)
            fill(builder, 4)
    worker = cleaner(builder)
    first = worker.next_cleaning(NOW_MS)
    assert first is not None
    assert first.log.topic_partition.partition == 2
    assert worker.next_cleaning(NOW_MS) is None
    first.run()
    worker.commit(first, NOW_MS)
    second = worker.next_cleaning(NOW_MS)
    assert second is not None
    assert second.log.topic_partition.partition == 1


def test_logs_that_are_not_compacted_are_left_alone(tmp_path: Path) -> None:
    assert not clean(fill(LogBuilder(tmp_path)))


@pytest.mark.parametrize("change", ["truncate", "delete", "retention"])
def test_a_log_that_changed_meanwhile_keeps_its_segments(tmp_path: Path, change: str) -> None:
    builder = fill(compacted(tmp_path, segment_bytes="300"))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    cleaning.run()
    if change == "truncate":
        builder.log.truncate_to(9)
    elif change == "delete":
        builder.manager.delete_log(builder.topic_partition)
    else:
        builder.log.maybe_increment_log_start_offset(5, "test")
        builder.log.delete_old_segments(NOW_MS)
    assert not worker.commit(cleaning, NOW_MS)
    assert worker.running is None
    assert not list(tmp_path.rglob("*.cleaned")) or change == "delete"
    assert not (tmp_path / "cleaner-offset-checkpoint").exists()


def test_a_log_that_cannot_be_read_is_given_up_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = compacted(tmp_path)
    broken = bytearray(build_batch([row("a")]))
    broken[61] = 0x7E
    builder.log.segments.active.append([bytes(broken)], len(broken), 0, 0, NOW_MS, 0, 0)
    builder.log.local.log_end_offset = 1
    builder.log.update_high_watermark(1)
    builder.roll().log.flush()
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    with pytest.raises(ApiError) as caught:
        cleaning.run()
    assert caught.value.code is ErrorCode.INVALID_RECORD
    worker.fail(cleaning, caught.value)
    assert "orders-0 cannot be cleaned any more" in caplog.text
    assert worker.next_cleaning(NOW_MS) is None


def test_a_lying_batch_from_before_the_topic_was_compacted_ends_no_cleaner(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Records are not looked at where a topic is not compacted. Its directory stays online."""
    builder = LogBuilder(tmp_path, cleanup_policy="delete")
    builder.append(row("a", "1")).add(raw_batch(bytes(70), 10))
    builder.append(row("a", "2")).roll().log.flush()
    builder.manager.update_topic_config("orders", {"cleanup.policy": "compact"})
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    with pytest.raises(ApiError) as caught:
        cleaning.run()
    worker.fail(cleaning, caught.value)
    assert "orders-0 cannot be cleaned any more" in caplog.text
    assert worker.next_cleaning(NOW_MS) is None
    assert builder.log.read(0, 1000, 12, True).records


def test_a_log_that_cannot_even_be_looked_at_is_no_obstacle_to_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = fill(compacted(tmp_path)).reopen()
    other = builder.manager.get_or_create_log(
        TopicPartition("other", 0), TOPIC_ID, builder.configs, True
    )
    for i in range(4):
        other.append_as_leader(build_batch([row("k", str(i))]), 0, NOW_MS)
    other.roll(NOW_MS)
    other.update_high_watermark(4)
    other.flush()
    path = builder.path("00000000000000000000.log")
    path.write_bytes(bytes(61) + path.read_bytes()[61:])
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    assert cleaning.log is other
    assert "orders-0 cannot be cleaned any more" in caplog.text


def test_a_failing_disk_fails_the_directory(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    with pytest.raises(LogDirFailure) as caught:
        worker.fail(cleaning, OSError(28, "No space left on device"))
    assert caught.value.log_dir == str(tmp_path)


def test_a_checkpoint_beyond_the_log_counts_for_nothing(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"0\n1\norders 0 999\n")
    assert clean(builder)


def test_a_deleted_log_is_forgotten(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    cleaning.run()
    assert worker.commit(cleaning, NOW_MS)
    builder.manager.delete_log(builder.topic_partition)
    assert (tmp_path / "cleaner-offset-checkpoint").read_bytes() == b"0\n0\n"
    builder.log = builder.manager.get_or_create_log(
        builder.topic_partition, TOPIC_ID, builder.configs, True
    )
    fill(builder, 20)
    again = worker.next_cleaning(NOW_MS)
    assert again is not None
    assert again.plan.first_dirty_offset == 0


def test_a_malformed_checkpoint_counts_for_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = fill(compacted(tmp_path))
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"nonsense")
    assert clean(builder)
    assert "everything counts as dirty" in caplog.text


def test_transactions_are_cleaned_with_their_index(tmp_path: Path) -> None:
    builder = compacted(tmp_path)
    builder.produce(1, 0, is_transactional=True)
    builder.end_transaction(1, commit=False)
    builder.append(row("k", "v")).roll().log.flush()
    index = builder.path("00000000000000000000.txnindex")
    before = index.read_bytes()
    assert clean(builder)
    assert builder.values() == ["v"]
    assert index.read_bytes() == before
    aborted = builder.log.read(0, 1000, 3, True, include_aborted=True).aborted_transactions
    assert aborted == [(1, 0, 1, 2)]
