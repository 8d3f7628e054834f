"""Logs that move between the directories of a broker."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import build_batch
from kafkapy.record.control import end_transaction_marker
from kafkapy.storage import future_logs
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.filesystem import Entry, FileSystem
from kafkapy.storage.log_append import AppendOrigin
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.producer_log import DEFAULT_PRODUCER_CONFIG, ProducerConfig
from kafkapy.storage.unified_log import UnifiedLog
from tests.harness.cores.ports import NOW_MS, ManualClock, SeededRandom
from tests.harness.plugins.closing import Disk
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.log_builder import TOPIC_ID, TP, row
from tests.harness.storage.short_filesystem import ShortFileSystem

CONFIGS = {"segment.bytes": "2000"}


class TwoDirs:
    """A log manager with the directories a and b, and the log of TP in a."""

    def __init__(self, root: Path, fs: FileSystem | None = None, **configs: str) -> None:
        self.root = root
        self.fs = fs or Disk()
        self.configs = {**CONFIGS, **{k.replace("_", "."): v for k, v in configs.items()}}
        self.producers = DEFAULT_PRODUCER_CONFIG
        self.open()

    def open(self, seed: int = 0) -> None:
        dirs = [str(self.root / name) for name in "ab"]
        self.manager = LogManager(
            self.fs, dirs, {}, ManualClock(), SeededRandom(seed), producers=self.producers
        )
        self.manager.open()
        self.manager.load({TP.topic: self.configs})
        self.manager.get_or_create_log(TP, TOPIC_ID, self.configs, True)

    @property
    def log(self) -> UnifiedLog:
        return self.manager.logs[TP]

    def append(self, count: int = 10, epoch: int = 0, key: str = "k") -> None:
        for _ in range(count):
            batch = build_batch([row(key, "v" * 200)])
            self.log.append_as_leader(batch, epoch, NOW_MS)
        self.log.update_high_watermark(self.log.log_end_offset)

    def move(self, name: str = "b") -> None:
        self.manager.future_logs.move(TP, str(self.root / name))

    def copy(self) -> None:
        while self.manager.future_logs.copy(TP, NOW_MS):
            pass

    def replace(self) -> UnifiedLog | None:
        return self.manager.future_logs.replace(TP, NOW_MS)

    def names(self, name: str) -> list[str]:
        """Directories of a log directory, ids left out."""
        found = (path.name for path in (self.root / name).iterdir() if path.is_dir())
        return sorted(re.sub(r"\.[0-9a-f]{32}-", ".", n) for n in found)

    def records(self, log: UnifiedLog | None = None) -> bytes:
        log = log or self.log
        read, offset = b"", log.log_start_offset
        while offset < log.log_end_offset:
            piece = log.read(offset, 1 << 20, log.log_end_offset, True).records
            read += piece
            offset = _end(piece)
        return read


def batch_of(producer_id: int, sequence: int, is_transactional: bool = False) -> bytes:
    return build_batch(
        [row("k", "v" * 200)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=is_transactional,
    )


def _end(records: bytes) -> int:
    return max(header.next_offset for _, header in iter_headers(records))


@pytest.fixture
def two(tmp_path: Path) -> TwoDirs:
    return TwoDirs(tmp_path)


def test_a_copy_takes_the_logs_place_with_everything_in_it(two: TwoDirs) -> None:
    two.append(30)
    two.log.assign_epoch_start(7, two.log.log_end_offset)
    before, segments = two.records(), len(two.log.segments)
    two.move()
    assert two.names("b") == ["orders-0.future"]
    two.copy()
    log = two.replace()
    assert log is two.log
    assert log.directory == str(two.root / "b" / "orders-0")
    assert two.records() == before
    assert len(log.segments) == segments
    assert (log.high_watermark, log.log_end_offset, log.recovery_point) == (30, 30, 30)
    assert (log.topic_id, log.epochs.latest) == (TOPIC_ID, 7)
    assert two.names("a") == ["orders-0.delete"]
    two.append(5)
    assert log.log_end_offset == 35
    sum(two.manager.deletion_slices(NOW_MS + 60_000))
    assert two.names("a") == []

    two.manager.shutdown()
    two.open()
    assert two.log.log_dir == str(two.root / "b")
    assert (two.log.log_end_offset, two.log.topic_id) == (35, TOPIC_ID)


def test_what_comes_meanwhile_is_copied_too(two: TwoDirs) -> None:
    two.append(10)
    two.move()
    two.copy()
    two.append(1)
    assert two.replace() is None
    two.copy()
    assert two.replace() is not None
    assert two.log.log_end_offset == 11


def test_the_end_of_a_move_stops_no_client_for_the_flush_of_the_whole_log(
    two: TwoDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker stood still while 540 MB were forced to disk: for 0.6 s on a fast one."""
    monkeypatch.setattr(future_logs, "UNFLUSHED_BYTES_MAX", 1000)
    two.append(30)
    two.move()
    two.copy()
    assert two.replace() is None
    for task in two.manager.flush_due_logs(NOW_MS):
        task.fsync()  # another thread does it
        task.complete(NOW_MS)
    two.append(3)
    two.copy()
    assert two.replace() is not None
    assert (two.log.log_end_offset, two.log.log_dir) == (33, str(two.root / "b"))


def test_what_producers_may_send_again_moves_too(two: TwoDirs) -> None:
    """The simulator found it, in its seed 3000490: producers whose batches had not been answered
    sent them again after a move, and were told that they were out of order."""
    for sequence in range(8):
        two.log.append_as_leader(batch_of(9, sequence), 0, NOW_MS)
    two.move()
    two.copy()
    log = two.replace()
    assert log is not None
    assert log.segments.active.base_offset == 7  # of the five, only the last is in it
    repeated = [log.append_as_leader(batch_of(9, at), 0, NOW_MS) for at in range(3, 8)]
    assert [(info.duplicate, info.first_offset) for info in repeated] == [
        (True, 3), (True, 4), (True, 5), (True, 6), (True, 7)
    ]  # fmt: skip
    assert log.append_as_leader(batch_of(9, 8), 0, NOW_MS).first_offset == 8


def test_a_transaction_whose_marker_is_not_replicated_stays_unstable(two: TwoDirs) -> None:
    two.log.append_as_leader(batch_of(9, 0, is_transactional=True), 0, NOW_MS)
    two.log.update_high_watermark(1)
    marker = end_transaction_marker(
        commit=True, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
    )
    two.log.append_as_leader(marker, 0, NOW_MS, AppendOrigin.COORDINATOR)
    two.move()
    two.copy()
    log = two.replace()
    assert log is not None
    assert (log.high_watermark, log.last_stable_offset) == (1, 0)
    log.update_high_watermark(2)
    assert log.last_stable_offset == 2


def test_a_transaction_that_was_verified_before_a_move_begins_after_it(two: TwoDirs) -> None:
    two.manager.shutdown()
    two.producers = ProducerConfig(verifies_transactions=True)
    two.open()
    two.log.producers.verification.begin(9, 0, 0, NOW_MS).is_confirmed = True
    two.move()
    two.copy()
    log = two.replace()
    assert log is not None
    assert log.append_as_leader(batch_of(9, 0, is_transactional=True), 0, NOW_MS).first_offset == 0
    assert log.first_unstable_offset == 0
    with pytest.raises(ApiError, match="not part of an ongoing transaction"):
        log.append_as_leader(batch_of(8, 0, is_transactional=True), 0, NOW_MS)


def test_a_truncation_of_the_log_is_followed(two: TwoDirs) -> None:
    two.append(10, epoch=0)
    two.append(10, epoch=1)
    two.move()
    two.copy()
    two.log.truncate_to(14, NOW_MS)
    two.append(10, epoch=3, key="other")
    two.copy()
    expected = two.records()
    assert two.replace() is not None
    assert two.records() == expected
    assert two.log.log_end_offset == 24


def test_a_truncation_to_before_an_epoch_is_followed(two: TwoDirs) -> None:
    two.append(10, epoch=0)
    two.append(10, epoch=5)
    two.move()
    two.copy()
    two.log.truncate_to(8, NOW_MS)
    two.append(20, epoch=2, key="other")
    two.copy()
    expected = two.records()
    assert two.replace() is not None
    assert two.records() == expected


@pytest.mark.parametrize("restart_at", [6, 8])
def test_a_truncation_that_other_records_of_the_same_epoch_follow_is_followed(
    two: TwoDirs, restart_at: int
) -> None:
    """A follower is cut within an epoch if its leader lost some of its log and led on in it."""
    two.append(10, epoch=3)
    two.move()
    two.copy()
    two.log.truncate_to(6, NOW_MS)
    if restart_at > 6:
        two.log.truncate_fully_and_start_at(restart_at, NOW_MS)
    two.append(9, epoch=3, key="other")
    two.copy()
    expected = two.records()
    assert two.replace() is not None
    assert two.records() == expected
    assert two.log.log_end_offset == restart_at + 9


def test_records_deleted_from_the_start_are_not_brought_back(two: TwoDirs) -> None:
    two.append(30)
    two.log.maybe_increment_log_start_offset(20, "test")
    two.log.delete_old_segments(NOW_MS)
    two.move()
    two.copy()
    assert two.replace() is not None
    assert (two.log.log_start_offset, two.log.log_end_offset) == (20, 30)
    two.append(10)
    two.move("a")
    two.log.maybe_increment_log_start_offset(40, "test")
    two.copy()
    assert two.replace() is not None
    assert (two.log.log_start_offset, two.log.log_end_offset) == (40, 40)


def test_a_log_that_starts_inside_a_batch_moves_with_the_whole_batch(two: TwoDirs) -> None:
    for _ in range(3):
        two.log.append_as_leader(build_batch([row("k", "v" * 100)] * 10), 0, NOW_MS)
    two.log.update_high_watermark(30)
    two.log.maybe_increment_log_start_offset(13, "test")
    two.log.delete_old_segments(NOW_MS)
    two.move()
    two.copy()
    # And once more while it is under way, beyond what has been copied.
    assert two.manager.future_logs.logs[TP].log_end_offset == 30
    two.log.append_as_leader(build_batch([row("k", "w")] * 10), 0, NOW_MS)
    two.log.append_as_leader(build_batch([row("k", "x")] * 10), 0, NOW_MS)
    two.log.update_high_watermark(50)
    two.log.maybe_increment_log_start_offset(43, "test")
    two.copy()
    expected = two.records()
    assert two.replace() is not None
    assert (two.log.log_start_offset, two.log.log_end_offset) == (43, 50)
    assert two.records() == expected
    assert two.log.epochs.entries() == [(0, 43)]
    two.manager.shutdown()
    two.open()
    assert (two.log.log_start_offset, two.log.log_end_offset) == (43, 50)


class _Broken(FaultyFileSystem):
    """Cannot list the directories whose path ends with `unreadable`."""

    unreadable = "none"

    def list(self, path: str) -> list[Entry]:
        if path.endswith(self.unreadable):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().list(path)


def fail_to_replace(two: TwoDirs) -> None:
    with pytest.raises(LogDirFailure) as failed:
        two.replace()
    assert failed.value.log_dir == str(two.root / "b")
    two.manager.fail_log_dir(failed.value.log_dir, failed.value)
    assert two.manager.future_logs.logs == {}


def test_a_copy_that_cannot_be_opened_fails_its_own_directory_only(tmp_path: Path) -> None:
    """The log's files are gone by then: an append would have failed its old directory, too."""
    disk = _Broken(Disk())
    two = TwoDirs(tmp_path, disk)
    two.append(3)
    two.move()
    two.copy()
    disk.unreadable = "/b/orders-0"
    fail_to_replace(two)
    assert two.manager.logs == {}
    assert two.manager.live_log_dirs == [str(two.root / "a")]


def test_a_log_whose_copy_cannot_take_its_place_is_cleaned_again(tmp_path: Path) -> None:
    disk = _Broken(Disk(), prefix=f"{tmp_path}/b/orders-0.")
    two = TwoDirs(tmp_path, disk)
    two.append(3)
    two.move()
    two.copy()
    two.manager.future_logs.logs[TP].close(NOW_MS)
    disk.changes, disk.fail_at = 0, 1
    fail_to_replace(two)
    two.append(1)
    assert two.log.cleaning.may_begin


@pytest.mark.parametrize("left", range(4))
def test_a_move_that_was_refused_does_not_begin_at_the_next_start(
    tmp_path: Path, left: int
) -> None:
    disk = ShortFileSystem(Disk())
    two = TwoDirs(tmp_path, disk)  # type: ignore[arg-type]
    two.append()
    disk.descriptors_left = left
    try:
        two.move()
    except StorageShortage:
        assert "orders-0.future" not in two.names("b")
    else:
        assert two.names("b") == ["orders-0.future"]
    disk.descriptors_left = None


def test_a_copy_does_not_take_the_logs_place_without_a_descriptor(tmp_path: Path) -> None:
    """It was renamed, the log was not, and the next start refused to have it in both."""
    disk = ShortFileSystem(Disk())
    two = TwoDirs(tmp_path, disk)  # type: ignore[arg-type]
    two.append(3)
    two.move()
    two.copy()
    two.manager.future_logs.logs[TP].close(NOW_MS)
    two.log.local.close_handles()
    disk.descriptors_left = 0
    with pytest.raises(StorageShortage):
        two.replace()
    assert (two.names("a"), two.names("b")) == (["orders-0"], ["orders-0.future"])
    disk.descriptors_left = None
    assert two.replace() is not None


def test_records_deleted_during_a_move_are_not_back_after_a_kill(two: TwoDirs) -> None:
    two.append(30)
    two.move()
    two.copy()
    two.log.maybe_increment_log_start_offset(25, "test")
    two.manager.checkpoint_all()
    assert two.replace() is not None
    two.log.abandon()
    two.manager.unlock()
    two.open(seed=1)
    assert (two.log.log_start_offset, two.log.high_watermark) == (25, 30)


def test_checkpoints_of_a_deleted_log_do_not_bind_one_that_moves(two: TwoDirs) -> None:
    two.append(30)
    two.move()
    two.copy()
    assert two.replace() is not None
    two.log.maybe_increment_log_start_offset(25, "test")
    two.manager.checkpoint_all()  # of b, where it is deleted
    two.manager.delete_log(TP)
    with pytest.raises(ApiError):
        two.move("a")
    two.manager.get_or_create_log(TP, TOPIC_ID, two.configs, True)
    two.append(3)
    two.move()
    two.copy()
    seen: list[str] = []
    retire_log = two.manager.retire_log

    def noted(log: UnifiedLog) -> None:
        seen.append((two.root / "b/log-start-offset-checkpoint").read_text())
        retire_log(log)

    two.manager.retire_log = noted  # type: ignore[method-assign]
    assert two.replace() is not None
    assert seen == ["0\n0\n"]


def test_the_directory_it_is_in_calls_a_move_off(two: TwoDirs) -> None:
    two.append(3)
    two.move()
    two.move()
    assert len(two.manager.future_logs.logs) == 1
    two.move("a")
    assert two.manager.future_logs.logs == {}
    assert two.names("b") == ["orders-0.delete"]
    assert two.names("a") == ["orders-0"]


def test_what_cannot_be(two: TwoDirs) -> None:
    with pytest.raises(ApiError) as refused:
        two.move("c")
    assert refused.value.code is ErrorCode.LOG_DIR_NOT_FOUND
    two.manager.fail_log_dir(str(two.root / "b"), OSError(5, "I/O error"))
    with pytest.raises(ApiError) as refused:
        two.move("b")
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_log_that_is_not_there_yet_is_made_where_it_was_wanted(two: TwoDirs) -> None:
    for partition in (1, 2):
        tp = TopicPartition("later", partition)
        with pytest.raises(ApiError) as refused:
            two.manager.future_logs.move(tp, str(two.root / "a"))
        assert refused.value.code is ErrorCode.REPLICA_NOT_AVAILABLE
        made = two.manager.get_or_create_log(tp, Uuid(bytes(16)), {}, True)
        assert made.log_dir == str(two.root / "a")


def test_a_move_that_a_kill_interrupted_begins_anew(two: TwoDirs) -> None:
    two.append(10)
    two.move()
    two.manager.future_logs.copy(TP, NOW_MS)
    for log in (*two.manager.logs.values(), *two.manager.future_logs.logs.values()):
        log.abandon()
    two.manager.unlock()
    two.open(seed=1)
    assert two.log.log_dir == str(two.root / "a")
    assert two.manager.future_logs.logs[TP].log_end_offset == 0
    two.copy()
    assert two.replace() is not None
    assert (two.log.log_dir, two.log.log_end_offset) == (str(two.root / "b"), 10)
    sum(two.manager.deletion_slices(NOW_MS + 60_000))
    assert two.names("b") == ["orders-0"]


def test_a_deleted_log_takes_its_copy_with_it(two: TwoDirs) -> None:
    two.append(3)
    two.move()
    two.manager.delete_log(TP)
    assert two.manager.future_logs.logs == {}
    assert (two.names("a"), two.names("b")) == (["orders-0.delete"], ["orders-0.delete"])


@pytest.mark.parametrize(("failed", "left"), [("a", []), ("b", [TP])])
def test_a_failed_directory_ends_its_moves(two: TwoDirs, failed: str, left: list[object]) -> None:
    two.append(3)
    two.move()
    two.manager.fail_log_dir(str(two.root / failed), OSError(5, "I/O error"))
    assert two.manager.future_logs.logs == {}
    assert list(two.manager.logs) == left
