"""Which log is cleaned, and what a commit leaves."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.builder import build_batch
from kafkapy.storage.cleaning_state import LogCleaningAborted
from kafkapy.storage.disk_errors import SHORTAGE_ERRNOS
from kafkapy.storage.filesystem import OsFile
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.offset_map import ENTRY_BYTES
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.storage.verify import verify_log_dir
from tests.harness.cores.ports import NOW_MS, SeededRandom
from tests.harness.plugins.closing import Disk
from tests.harness.storage.batches import raw_batch
from tests.harness.storage.log_builder import TOPIC_ID, LogBuilder, row
from tests.harness.storage.short_filesystem import ShortFileSystem, ShortForPath


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
    sum(builder.manager.deletion_slices(NOW_MS))
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


def test_a_segment_with_more_keys_than_fit_is_cleaned_to_its_end(tmp_path: Path) -> None:
    builder = compacted(tmp_path, min_cleanable_dirty_ratio="1.0", max_compaction_lag_ms="5000")
    for version in ("old", "new"):
        for i in range(100):
            builder.append(row(f"k{i}", version))
    builder.roll().log.flush()
    worker, rounds = LogCleaner(builder.fs, builder.manager, 30 * ENTRY_BYTES), 0
    while (cleaning := worker.next_cleaning(NOW_MS + 5001)) is not None:
        cleaning.run()
        assert worker.commit(cleaning, NOW_MS)
        rounds += 1
    assert rounds > 2
    assert builder.values() == ["new"] * 100


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


def delete(builder: LogBuilder) -> None:
    builder.manager.delete_log(builder.topic_partition)


def make_again(builder: LogBuilder) -> None:
    """A new log has the directory that the cleaning works in."""
    delete(builder)
    builder.log = builder.manager.get_or_create_log(
        builder.topic_partition, TOPIC_ID, builder.configs, True
    )
    fill(builder)


def truncate(builder: LogBuilder) -> None:
    builder.log.truncate_to(4)


def begin_anew(builder: LogBuilder) -> None:
    builder.log.truncate_fully_and_start_at(50)


def keep_everything(builder: LogBuilder) -> None:
    builder.manager.update_topic_config("orders", {"cleanup.policy": "delete"})


CHANGES = (delete, make_again, truncate, begin_anew, keep_everything)


@pytest.mark.parametrize("change", CHANGES)
def test_a_log_that_changes_in_the_middle_of_a_cleaning_aborts_it(
    tmp_path: Path, change: Callable[[LogBuilder], None], caplog: pytest.LogCaptureFixture
) -> None:
    """At every step, and when the thread is done but the loop has not heard of it."""
    caplog.set_level("INFO")
    steps_left, step = True, 0
    while steps_left:
        builder = fill(compacted(tmp_path / str(step), segment_bytes="300"))
        worker = cleaner(builder)
        cleaning = worker.next_cleaning(NOW_MS)
        assert cleaning is not None
        steps = cleaning.steps()
        taken = sum(1 for _ in islice(steps, step))
        steps_left = taken == step
        change(builder)
        before = builder.values() if change is not delete else []
        error: Exception | None = None
        try:
            for _ in steps:
                pass
        except (LogCleaningAborted, OSError) as raised:
            error = raised
        assert (error is None) == (not steps_left)
        if error is None:
            assert not worker.commit(cleaning, NOW_MS)
        else:
            worker.fail(cleaning, error)
        assert worker.running is None
        assert builder.manager.offline_log_dirs == []
        assert not list(Path(builder.root).glob("orders-0/*.cleaned"))
        assert "orders 0 10" not in checkpoint_of(builder)
        if change is not delete:
            assert builder.values() == before
            builder.reopen()
            assert builder.values() == before
        step += 1
    assert step > 10
    assert "The cleaning for partition orders-0 is aborted" in caplog.text
    assert "cannot be cleaned any more" not in caplog.text


def checkpoint_of(builder: LogBuilder) -> str:
    path = Path(builder.root) / "cleaner-offset-checkpoint"
    return path.read_text() if path.exists() else ""


def test_after_an_abort_the_log_is_cleaned_again(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    builder.log.truncate_to(8)
    builder.append(row("k0", "last")).roll().log.flush()
    with pytest.raises(LogCleaningAborted):
        cleaning.run()
    assert worker.next_cleaning(NOW_MS) is None, "the first is still under way"
    worker.fail(cleaning, LogCleaningAborted("as it was raised"))
    again = worker.next_cleaning(NOW_MS)
    assert again is not None
    again.run()
    assert worker.commit(again, NOW_MS)
    assert builder.values() == ["v7", "last"]


def test_retention_leaves_a_log_alone_while_it_is_cleaned(tmp_path: Path) -> None:
    """Kafka deletes from no log that is in progress."""
    builder = fill(compacted(tmp_path, segment_bytes="300", cleanup_policy="compact,delete",
                             min_cleanable_dirty_ratio="0.01"))  # fmt: skip
    builder.log.maybe_increment_log_start_offset(5, "test")
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    assert sum(builder.manager.retention_slices(NOW_MS)) == 0
    cleaning.run()
    assert worker.commit(cleaning, NOW_MS)
    assert builder.values() == ["v8", "v9"]
    builder.manager.update_topic_config("orders", {"cleanup.policy": "compact,delete",
                                                   "retention.ms": "10"})  # fmt: skip
    assert sum(builder.manager.retention_slices(NOW_MS + 11)) > 0


def test_a_log_that_moves_is_not_cleaned_until_the_move_is_over(tmp_path: Path) -> None:
    dirs = [str(tmp_path / name) for name in "ab"]
    builder = fill(compacted(tmp_path / "a"))
    builder.stop()
    manager = LogManager(builder.fs, dirs, {}, builder.clock, SeededRandom(1))
    manager.open()
    manager.load({"orders": builder.configs})
    worker = LogCleaner(builder.fs, manager, 100_000)
    moving = builder.topic_partition
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    manager.future_logs.move(moving, dirs[1])
    with pytest.raises(LogCleaningAborted) as aborted:
        cleaning.run()
    worker.fail(cleaning, aborted.value)
    assert worker.next_cleaning(NOW_MS) is None
    manager.future_logs.move(moving, dirs[0])
    assert manager.logs[moving].cleaning.may_begin, "the move was called off"
    manager.future_logs.move(moving, dirs[1])
    manager.future_logs.abandon(dirs[1])
    assert manager.logs[moving].cleaning.may_begin, "its target has failed"
    manager.future_logs.move(moving, dirs[1])
    while manager.future_logs.copy(moving, NOW_MS):
        pass
    assert worker.next_cleaning(NOW_MS) is None
    log = manager.future_logs.replace(moving, NOW_MS)
    assert log is not None
    log.roll(NOW_MS)
    log.flush()
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    assert cleaning.log is log
    cleaning.run()
    assert worker.commit(cleaning, NOW_MS)


def test_what_was_truncated_and_written_again_is_dirty(tmp_path: Path) -> None:
    """Also after a crash: the checkpoint says so."""
    builder = fill(compacted(tmp_path, min_cleanable_dirty_ratio="0.01"))
    assert clean(builder)
    worker = cleaner(builder)
    assert worker.next_cleaning(NOW_MS) is None
    builder.log.truncate_to(9)
    for i in range(6):
        builder.append(row("k0", f"again{i}"))
    builder.roll().log.flush()
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    assert cleaning.plan.first_dirty_offset == 0
    assert checkpoint_of(builder).endswith("orders 0 0\n")
    cleaning.run()
    assert worker.commit(cleaning, NOW_MS)
    assert builder.values() == ["again5"]


@pytest.mark.parametrize("size", ["1", "100000"], ids=["an entry for each batch", "no entry"])
def test_a_truncation_behind_what_was_cleaned_is_one_to_the_last_batch(
    tmp_path: Path, size: str
) -> None:
    """The later values are dropped, so a follower must fetch the former ones again. A start would
    find that end, and give the offsets anew."""
    builder = fill(compacted(tmp_path, index_interval_bytes=size), 4)
    for _ in range(6):
        builder.append(row("k1", "later"))
    builder.roll().log.flush()
    assert clean(builder)
    assert [r.offset for r in builder.records()] == [2, 9]
    for offset in (9, 8, 4):
        builder.log.truncate_to(offset)
        assert builder.log.log_end_offset == 3
    builder.reopen()
    assert (builder.log.log_end_offset, builder.values()) == (3, ["v2"])


@pytest.mark.parametrize("number", sorted(SHORTAGE_ERRNOS))
def test_without_descriptors_or_memory_a_log_is_cleaned_another_time(
    tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    builder = fill(compacted(tmp_path))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    worker.fail(cleaning, OSError(number, os.strerror(number)))
    assert "Log orders-0 is not cleaned now" in caplog.text
    assert clean(builder)


@pytest.mark.parametrize("left", range(4))
def test_a_cleaning_without_descriptors_keeps_none(tmp_path: Path, left: int) -> None:
    """It is tried again every few seconds, and each attempt would take one for good."""
    disk = Disk()
    fs = ShortFileSystem(disk)
    builder = fill(LogBuilder(tmp_path, fs, cleanup_policy="compact"))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    before = disk.open_files()
    fs.descriptors_left = left
    try:
        cleaning.run()
    except OSError as error:
        worker.fail(cleaning, error)
    assert disk.open_files() == before


@pytest.mark.parametrize("has_open_files", [True, False])
def test_a_commit_without_descriptors_changes_nothing(tmp_path: Path, has_open_files: bool) -> None:
    """Whichever opening fails: the log is whole, and cleaned the next time."""
    for allowed in range(3):
        fs = ShortFileSystem(Disk())
        builder = LogBuilder(
            tmp_path / str(allowed), fs, cleanup_policy="compact", segment_bytes="300"
        )
        fill(builder)
        worker = cleaner(builder)
        cleaning = worker.next_cleaning(NOW_MS)
        assert cleaning is not None
        cleaning.run()
        if not has_open_files:
            builder.log.local.close_handles()
        fs.descriptors_left = allowed
        worker.commit(cleaning, NOW_MS)
        fs.descriptors_left = None
        assert builder.manager.offline_log_dirs == []
        latest = {record.key: record.value for record in builder.records()}
        assert latest == {b"k0": b"v8", b"k1": b"v9"}
        builder.reopen()
        assert {record.key: record.value for record in builder.records()} == latest


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
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
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


def filled_beside(builder: LogBuilder) -> UnifiedLog:
    """Another log of the broker, with records to clean."""
    other = builder.manager.get_or_create_log(
        TopicPartition("other", 0), TOPIC_ID, builder.configs, True
    )
    for i in range(4):
        other.append_as_leader(build_batch([row("k", str(i))]), 0, NOW_MS)
    other.roll(NOW_MS)
    other.update_high_watermark(4)
    other.flush()
    return other


def test_a_log_that_cannot_even_be_looked_at_is_no_obstacle_to_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = fill(compacted(tmp_path)).reopen()
    other = filled_beside(builder)
    path = builder.path("00000000000000000000.log")
    path.write_bytes(bytes(61) + path.read_bytes()[61:])
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    assert cleaning.log is other
    assert "orders-0 cannot be cleaned any more" in caplog.text


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_log_whose_file_cannot_be_opened_is_no_obstacle_to_the_others(
    tmp_path: Path, number: int
) -> None:
    """Without descriptors it is looked at later; a failing disk fails its directory."""

    class BadFile(Disk):
        bad = "none"

        def open(self, path: str, create: bool = False) -> OsFile:
            if path == self.bad:
                raise OSError(number, os.strerror(number), path)
            return super().open(path, create)

    disk = BadFile()
    builder = fill(LogBuilder(tmp_path, disk, cleanup_policy="compact")).reopen()
    failures: list[LogDirFailure] = []
    builder.manager.on_log_dir_failure = lambda log_dir, failure: failures.append(failure)
    other = filled_beside(builder)
    disk.bad = str(builder.path("00000000000000000000.log"))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    assert cleaning.log is other
    assert len(failures) == (number == errno.EIO)
    assert other.cleaning.end()
    worker.running = None
    if number == errno.EIO:
        builder.manager.logs = dict(reversed(builder.manager.logs.items()))
        builder.manager.on_log_dir_failure = lambda log_dir, failure: other.abandon()
        assert worker.next_cleaning(NOW_MS) is None


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


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_deleted_log_is_forgotten(tmp_path: Path, policy: str) -> None:
    builder = fill(compacted(tmp_path))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    cleaning.run()
    assert worker.commit(cleaning, NOW_MS)
    builder.manager.update_topic_config("orders", {"cleanup.policy": policy})
    builder.manager.delete_log(builder.topic_partition)
    assert (tmp_path / "cleaner-offset-checkpoint").read_bytes() == b"0\n0\n"
    builder.log = builder.manager.get_or_create_log(
        builder.topic_partition, TOPIC_ID, builder.configs, True
    )
    fill(builder, 20)
    again = worker.next_cleaning(NOW_MS)
    assert again is not None
    assert again.plan.first_dirty_offset == 0


def test_a_deleted_key_is_not_back_since_a_log_outgrew_its_checkpoint(tmp_path: Path) -> None:
    """Records that replace a lost end are dirty. The tombstone went, and the value stayed."""
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"0\n1\norders 0 4\n")
    builder = compacted(tmp_path, delete_retention_ms="1000", min_cleanable_dirty_ratio="0")
    worker = cleaner(builder)
    assert worker.next_cleaning(NOW_MS) is None
    builder.append(row("k", "old")).append(row("k", None)).append(row("a"), row("b")).roll()
    for now_ms in (NOW_MS, NOW_MS + 2000):
        fill(builder, 4)
        cleaning = worker.next_cleaning(now_ms)
        assert cleaning is not None
        cleaning.run()
        assert worker.commit(cleaning, now_ms)
    assert "old" not in builder.values()


def test_a_truncation_is_noted_at_once(tmp_path: Path) -> None:
    builder = fill(compacted(tmp_path))
    fill(builder)
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    cleaning.run()
    assert worker.commit(cleaning, NOW_MS)
    builder.log.truncate_to(12)
    fill(builder.kill().open(), 20)
    again = cleaner(builder).next_cleaning(NOW_MS)
    assert again is not None
    assert again.plan.first_dirty_offset == 0


def test_a_truncation_that_cannot_be_noted_fails_the_directory(tmp_path: Path) -> None:
    """The records are gone by then: a log that goes on would have the state of their producers."""
    disk = ShortForPath(Disk(), "cleaner-offset-checkpoint")
    builder = fill(LogBuilder(tmp_path, disk, cleanup_policy="compact"))
    worker = cleaner(builder)
    cleaning = worker.next_cleaning(NOW_MS)
    assert cleaning is not None
    cleaning.run()
    assert worker.commit(cleaning, NOW_MS)
    disk.descriptors_left = 0
    with pytest.raises(LogDirFailure, match="cleaner-offset-checkpoint"):
        builder.log.truncate_to(0)


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
