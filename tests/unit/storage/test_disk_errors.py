"""Which errors of the system mean that a log directory has failed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.builder import build_batch
from kafkapy.storage.disk_errors import StorageShortage, disk_error
from kafkapy.storage.filesystem import OsFileSystem
from kafkapy.storage.flush_task import FlushTask
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.storage.verify import verify_log_dir
from tests.harness.cores.ports import NOW_MS
from tests.harness.plugins.closing import Disk
from tests.harness.storage.log_builder import TOPIC_ID, LogBuilder, row
from tests.harness.storage.short_filesystem import ShortFileSystem


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/logs/t-0/1.log")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.ENOENT])
def test_a_disk_that_fails(number: int) -> None:
    found = disk_error("/logs", error(number), "for t-0")
    assert isinstance(found, LogDirFailure)
    assert str(found) == (
        f"I/O error for t-0 in log directory /logs: /logs/t-0/1.log: [Errno {number}] "
        f"{os.strerror(number)}"
    )


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_shortage_is_none_unless_the_work_was_half_done(number: int) -> None:
    found = disk_error("/logs", error(number))
    assert isinstance(found, StorageShortage)
    assert found.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert isinstance(disk_error("/logs", error(number), changed=True), LogDirFailure)


def two_epochs(log: UnifiedLog) -> bytes:
    """Batches of the latest epoch and of the next one, which follow on the log."""
    end, latest = log.log_end_offset, log.epochs.latest
    rows = [row(), row()]
    return build_batch(rows, base_offset=end, leader_epoch=latest) + build_batch(
        rows, base_offset=end + 2, leader_epoch=latest + 1
    )


def operations(builder: LogBuilder) -> dict[str, Callable[[], object]]:
    log, manager = builder.log, builder.manager
    return {
        "append": lambda: builder.append(count=2),
        "append of a leader's set": lambda: log.append_as_follower(two_epochs(log), NOW_MS),
        "append of an abort": lambda: builder.end_transaction(7, commit=False),
        "roll": builder.roll,
        "read": builder.records,
        "read old": lambda: log.read(log.log_start_offset, 1 << 20, log.log_end_offset, True),
        "look-up by time": lambda: log.offset_for_timestamp(NOW_MS + 3, log.log_end_offset),
        "truncate": lambda: log.truncate_to(log.log_end_offset - 3),
        "begin anew": lambda: log.truncate_fully_and_start_at(log.log_end_offset + 5),
        "new epoch": lambda: log.assign_epoch_start(log.epochs.latest + 1, log.log_end_offset),
        "flush": log.flush,
        "retention": lambda: sum(manager.retention_slices(NOW_MS + 10**9)),
        "checkpoints": manager.checkpoint_all,
        "due flushes": lambda: list(manager.flush_due_logs(NOW_MS + 10**9)),
        "deletion": lambda: sum(manager.deletion_slices(NOW_MS + 10**9)),
        "a new log": lambda: manager.get_or_create_log(
            TopicPartition("new", 0), TOPIC_ID, {}, False
        ),
    }


@pytest.mark.parametrize("left", [0, 1, 2])
@pytest.mark.parametrize("opened", ["all files", "no file", "the active segment"])
def test_no_operation_fails_a_directory_for_want_of_descriptors(
    tmp_path: Path, left: int, opened: str
) -> None:
    """Refused operations must change nothing: the log is sound, and a retry succeeds."""
    names = list(operations(LogBuilder(tmp_path / "names")))
    if opened == "no file":
        names.remove("flush")  # it follows an append, which has opened a file
    for i, name in enumerate(names):
        fs = ShortFileSystem(Disk())
        builder = LogBuilder(tmp_path / str(i), fs, segment_bytes="400", index_interval_bytes="1")
        for sequence in range(6):
            builder.append(count=3)
            builder.produce(8, sequence)  # a truncation reads its last batches in all segments
        builder.produce(7, 0, is_transactional=True)
        builder.log.append_as_follower(two_epochs(builder.log), NOW_MS)  # a truncation drops one
        builder.log.update_high_watermark(builder.log.log_end_offset)
        if opened != "all files":
            builder.manager.checkpoint_all()
            builder.reopen()
            builder.log.update_high_watermark(builder.log.log_end_offset)
        before = builder.values(), builder.log.epochs.entries()
        if opened != "all files":
            builder.log.local.close_handles()
        if opened == "the active segment":
            builder.log.segments.active.records.handle()
        do = operations(builder)[name]
        fs.descriptors_left = left
        try:
            done = do()
        except StorageShortage:
            fs.descriptors_left = None
            assert (builder.values(), builder.log.epochs.entries()) == before, name
            done = do()
        fs.descriptors_left = None
        if isinstance(done, list):
            for task in [task for task in done if isinstance(task, FlushTask)]:
                task.fsync()
        assert builder.manager.offline_log_dirs == [], name
        builder.append(row("after", "after"))
        expected = builder.values()
        builder.reopen(clean=False)
        assert builder.values() == expected, name
        builder.stop()
        assert verify_log_dir(OsFileSystem(), builder.root) == [], name
