"""A full disk: for every n, the n-th change fails, and recovery finds the acknowledged records."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kafkapy.common.errors import LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.builder import build_batch
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.verify import verify_log_dir
from tests.harness.cores.ports import NOW_MS, ManualClock, SeededRandom
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.log_builder import TOPIC_ID, LogBuilder, row
from tests.simulation.sim_filesystem import SimFileSystem

STEPS = 27
"""Enough for failures of every kind of file. Each further step adds a failure per change."""
CONFIGS = {
    "segment_bytes": "600",
    "index_interval_bytes": "100",
    "flush_ms": "0",
    "retention_bytes": "1200",
    "file_delete_delay_ms": "0",
}


def workload(builder: LogBuilder, acknowledged: list[str]) -> None:
    """Perform all kinds of disk changes. Stops at the first failure of the directory."""
    chance = random.Random(5)
    for i in range(STEPS):
        builder.clock.now_ms += 1
        builder.leader_epoch = i // 12
        builder.append(row(f"k{i % 5}", f"v{i}"))
        acknowledged.append(f"v{i}")
        manager = builder.manager
        if i % 7 == 0:
            for task in manager.flush_due_logs(builder.clock.now_ms):
                task.fsync()
                task.complete(builder.clock.now_ms)
        if i % 11 == 0:
            sum(manager.retention_slices(builder.clock.now_ms))
            sum(manager.deletion_slices(builder.clock.now_ms))
            manager.checkpoint_log_start_offsets()
        if i % 13 == 0:
            manager.checkpoint_recovery_points()
            manager.checkpoint_high_watermarks()
        if i == 24:
            builder.end_transaction(chance.randrange(100), commit=True)
            acknowledged.append("marker")


def attempts(for_good: bool) -> Iterator[tuple[SimFileSystem, int, list[str], bool]]:
    """Run the workload with failure number 1, 2, 3 and so on, until no change fails."""
    fail_at = 0
    failed = True
    while failed:
        fail_at += 1
        disk = SimFileSystem()
        faulty = FaultyFileSystem(disk, 0, for_good)
        builder = LogBuilder("/logs", faulty, **CONFIGS)
        faulty.changes, faulty.fail_at = 0, fail_at
        acknowledged: list[str] = []
        failed = False
        try:
            workload(builder, acknowledged)
            builder.manager.shutdown()
        except LogDirFailure as failure:
            failed = failure.log_dir == "/logs" and "No space left on device" in str(failure)
        for log in builder.manager.logs.values():
            log.abandon()
        builder.manager.unlock()
        yield disk, fail_at, acknowledged, failed


@pytest.mark.parametrize("for_good", [False, True])
def test_every_failing_change_leaves_a_log_that_recovers(for_good: bool) -> None:
    counted = 0
    for disk, fail_at, acknowledged, failed in attempts(for_good):
        counted = fail_at
        builder = LogBuilder("/logs", disk, **CONFIGS)
        found = {r.offset: (r.value or b"").decode() for r in builder.records()}
        end = builder.log.log_end_offset
        # A batch that was written whole before a failure may be found too, but no more than one.
        assert len(acknowledged) <= end <= len(acknowledged) + 1, f"failure {fail_at}"
        for offset in range(builder.log.log_start_offset, min(end, len(acknowledged))):
            expected = acknowledged[offset]
            assert found.get(offset, "marker") == expected, f"failure {fail_at}"
        builder.append(row("after", "after"))
        builder.stop()
        assert verify_log_dir(disk, "/logs") == [], f"failure {fail_at}"
        assert failed or len(acknowledged) == STEPS + 1
    assert counted > 100


def test_a_failed_directory_leaves_the_others_in_service() -> None:
    disk = FaultyFileSystem(SimFileSystem(), prefix="/a/")
    manager = LogManager(disk, ["/a", "/b"], {}, ManualClock(), SeededRandom())
    manager.open()
    manager.load({})
    logs = [manager.get_or_create_log(TopicPartition("t", i), TOPIC_ID, {}, True) for i in range(4)]
    assert sorted(log.log_dir for log in logs) == ["/a", "/a", "/b", "/b"]
    disk.changes, disk.fail_at, disk.for_good = 0, 1, True
    manager.checkpoint_recovery_points()
    assert manager.live_log_dirs == ["/b"]
    assert manager.offline_log_dirs == ["/a"]
    assert sorted(log.log_dir for log in manager.logs.values()) == ["/b", "/b"]
    for log in manager.logs.values():
        log.append_as_leader(_batch(), 0, NOW_MS)
    manager.shutdown()
    assert disk.stat("/b/.kafka_cleanshutdown") is not None
    assert disk.stat("/a/.kafka_cleanshutdown") is None


def _batch() -> bytes:
    return build_batch([row()])


def test_a_cleaning_that_meets_a_full_disk_changes_nothing() -> None:
    fail_at = 0
    while True:
        fail_at += 1
        disk = SimFileSystem()
        faulty = FaultyFileSystem(disk)
        builder = LogBuilder(
            "/logs", faulty, cleanup_policy="compact", segment_bytes="600",
            min_cleanable_dirty_ratio="0.01",
        )  # fmt: skip
        for i in range(30):
            builder.append(row(f"k{i % 3}", f"v{i}"))
        builder.log.flush()
        cleaner = LogCleaner(faulty, builder.manager)
        cleaning = cleaner.next_cleaning(builder.clock.now_ms)
        assert cleaning is not None
        faulty.changes, faulty.fail_at, faulty.for_good = 0, fail_at, True
        failed = False
        try:
            try:
                cleaning.run()
            except OSError as error:
                cleaner.fail(cleaning, error)
            cleaner.commit(cleaning, builder.clock.now_ms)
        except LogDirFailure:
            failed = True
        faulty.fail_at = 0
        builder.kill()
        again = LogBuilder("/logs", disk, cleanup_policy="compact", segment_bytes="600")
        latest = {(r.key or b"").decode(): (r.value or b"").decode() for r in again.records()}
        assert latest == {"k0": "v27", "k1": "v28", "k2": "v29"}, f"failure {fail_at}"
        again.stop()
        assert verify_log_dir(disk, "/logs") == [], f"failure {fail_at}"
        if not failed:
            break
    assert fail_at > 20
