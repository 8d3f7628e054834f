"""All logs of a broker over its directories."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.record.builder import build_batch
from kafkapy.storage import flush_task, local_log
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.filesystem import FileSystem, OsFileSystem, read_file
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.storage.verify import verify_log_dir
from tests.harness.cores.call_counts import calls
from tests.harness.cores.ports import NOW_MS, ManualClock, SeededRandom
from tests.harness.plugins.closing import Disk
from tests.harness.storage.counting_filesystem import CountingFileSystem
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.log_builder import CLUSTER_ID, TOPIC_ID, TP, LogBuilder, row
from tests.harness.storage.short_filesystem import ShortFileSystem, ShortForPath
from tests.simulation.sim_filesystem import SimFileSystem


def manager_of(*dirs: Path | str, fs: FileSystem | None = None, **given: object) -> LogManager:
    manager = LogManager(
        fs or Disk(), [str(d) for d in dirs], {}, ManualClock(), SeededRandom(),
        **given,  # type: ignore[arg-type]
    )  # fmt: skip
    manager.open()
    manager.load({})
    return manager


def create(manager: LogManager, partition: int, topic: str = "t") -> None:
    manager.get_or_create_log(TopicPartition(topic, partition), TOPIC_ID, {}, True)


def test_new_logs_go_where_the_fewest_are(tmp_path: Path) -> None:
    manager = manager_of(tmp_path / "a", tmp_path / "b/")
    for partition in range(5):
        create(manager, partition)
    assert [log.log_dir for log in manager.logs.values()] == [
        f"{tmp_path}/{name}" for name in "ababa"
    ]
    manager.shutdown()
    again = manager_of(tmp_path / "a", tmp_path / "b")
    assert len(again.logs) == 5
    for path in ("a", "b"):
        assert not (tmp_path / path / ".kafka_cleanshutdown").exists()


def test_what_is_on_disk_for_a_new_partition(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    create(manager, 0)
    files = {p.name: p.stat().st_size for p in (tmp_path / "t-0").iterdir()}
    assert files == {
        "00000000000000000000.log": 0,
        "00000000000000000000.index": 10_485_760,
        "00000000000000000000.timeindex": 10_485_756,
        "partition.metadata": 43,
    }
    used = sum(p.stat().st_blocks * 512 for p in (tmp_path / "t-0").iterdir())
    assert used < 20_000


def test_the_topic_id_is_kept(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = manager.get_or_create_log(TP, ZERO_UUID, {}, True)
    assert log.topic_id.is_zero
    assert manager.get_or_create_log(TP, TOPIC_ID, {}, False) is log
    manager.shutdown()
    again = manager_of(tmp_path)
    found = again.get_log(TP)
    assert found is not None
    assert found.topic_id == TOPIC_ID
    other = Uuid(bytes(reversed(range(16))))
    assert again.get_or_create_log(TP, other, {}, False).topic_id == TOPIC_ID


def test_an_existing_replica_is_not_made_anew_while_a_directory_is_offline(tmp_path: Path) -> None:
    manager = manager_of(tmp_path / "a", tmp_path / "b")
    manager.fail_log_dir(f"{tmp_path}/a", OSError(5, "broken"))
    with pytest.raises(ApiError, match=f"{tmp_path}/a") as caught:
        manager.get_or_create_log(TP, TOPIC_ID, {}, False)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    create(manager, 0)
    with pytest.raises(LogDirFailure, match="All log directories are offline"):
        manager.fail_log_dir(f"{tmp_path}/b", OSError(5, "broken"))
    manager.fail_log_dir(f"{tmp_path}/b", OSError(5, "broken"))
    assert manager.offline_log_dirs == [f"{tmp_path}/a", f"{tmp_path}/b"]
    with pytest.raises(ApiError) as caught:  # a later row of the request that failed the last one
        manager.get_or_create_log(TopicPartition("t", 1), TOPIC_ID, {}, True)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_deleting_a_log(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, file_delete_delay_ms="100").append()
    builder.manager.checkpoint_high_watermarks()
    builder.manager.delete_log(TP)
    builder.manager.delete_log(TP)
    assert builder.manager.get_log(TP) is None
    [renamed] = [p.name for p in tmp_path.iterdir() if p.is_dir()]
    assert renamed.startswith("orders-0.")
    assert renamed.endswith("-delete")
    again = builder.manager.get_or_create_log(TP, TOPIC_ID, {}, True)
    assert (again.log_end_offset, again.high_watermark) == (0, 0)
    assert sum(builder.manager.deletion_slices(NOW_MS + 99)) == 0
    assert sum(builder.manager.deletion_slices(NOW_MS + 100)) == 1
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == ["orders-0"]


@pytest.mark.parametrize("seed", range(8))
def test_a_deleted_log_is_not_back_after_a_power_cut(seed: int) -> None:
    """The controller forgets a deleted topic: nobody would delete its log once more."""
    disk = SimFileSystem()
    manager = manager_of(Path("/logs"), fs=disk)
    create(manager, 0)
    manager.delete_log(TopicPartition("t", 0))
    disk.crash(seed)
    assert disk.stat("/logs/t-0") is None


def test_checkpoints_of_a_deleted_log_do_not_bind_the_next_of_its_name(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, segment_bytes="300")
    for _ in range(20):
        builder.append()
    builder.log.flush()
    builder.manager.checkpoint_all()
    builder.manager.delete_log(TP)
    builder.kill().open()
    assert "orders 0 20" not in (tmp_path / "recovery-point-offset-checkpoint").read_text()
    for _ in range(20):
        builder.append(committed=False)
    first = builder.path("00000000000000000000.log")
    builder.kill()
    with first.open("r+b") as file:
        file.seek(70)
        file.write(b"\xff")
    builder.open()
    assert (builder.log.log_end_offset, builder.log.high_watermark) == (0, 0)


def test_a_log_is_not_made_while_checkpoints_speak_of_a_deleted_one(tmp_path: Path) -> None:
    disk = ShortForPath(Disk(), "/log-start-offset-checkpoint")
    builder = LogBuilder(tmp_path, disk).append(count=10)
    builder.log.maybe_increment_log_start_offset(8, "test")
    builder.manager.checkpoint_all()
    builder.manager.delete_log(TP)
    disk.descriptors_left = 0
    with pytest.raises(StorageShortage):
        builder.manager.get_or_create_log(TP, TOPIC_ID, {}, True)
    builder.manager.checkpoint_all()  # put off
    disk.descriptors_left = None
    builder.log = builder.manager.get_or_create_log(TP, TOPIC_ID, {}, True)
    builder.append(count=3)
    builder.kill().open()
    assert (builder.log.log_start_offset, builder.log.log_end_offset) == (0, 3)


def test_configs_change_in_place(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    create(manager, 0)
    create(manager, 0, "other")
    first, other = (manager.logs[TopicPartition(t, 0)] for t in ("t", "other"))
    manager.update_topic_config("t", {"retention.ms": "5"})
    assert (first.config.retention_ms, other.config.retention_ms) == (5, 604_800_000)
    manager.update_broker_defaults({"log.retention.ms": 9, "log.segment.bytes": 70_000})
    assert (first.config.retention_ms, other.config.retention_ms) == (5, 9)
    assert first.config.segment_bytes == 70_000
    with pytest.raises(ConfigError, match=r"retention\.ms"):
        manager.update_topic_config("t", {"retention.ms": "never"})
    assert first.config.retention_ms == 5


def test_the_configs_of_a_topic_change_without_a_search_of_all_logs(tmp_path: Path) -> None:
    """A broker with 10,000 topics stood still for seconds when it applied all configs again."""

    class Logs(dict[TopicPartition, UnifiedLog]):
        def values(self) -> Any:
            raise AssertionError("all logs are searched")

    manager = manager_of(tmp_path)
    for number in range(2):
        create(manager, number)
    manager.delete_log(TopicPartition("t", 1))
    manager.logs = Logs(manager.logs)
    manager.update_topic_config("t", {"retention.ms": "5"})
    assert manager.logs[TopicPartition("t", 0)].config.retention_ms == 5


def test_the_configs_of_deleted_topics_do_not_fill_memory(tmp_path: Path) -> None:
    def live_configs() -> int:
        gc.collect()
        return sum(isinstance(each, LogConfig) for each in gc.get_objects())

    manager = manager_of(tmp_path)
    create(manager, 0)
    create(manager, 1)
    before = live_configs()
    for number in range(5):
        create(manager, 0, f"deleted-{number}")
        manager.update_topic_config(f"elsewhere-{number}", {"retention.ms": "5"})
    manager.update_topic_config("t", {"retention.ms": "5"})
    for topic in ("t", *(f"deleted-{number}" for number in range(5))):
        manager.delete_log(TopicPartition(topic, 0))
    for _ in manager.deletion_slices(NOW_MS + 10**9):
        pass
    manager.drop_unused_configs()
    assert live_configs() == before
    manager.update_broker_defaults({})
    assert manager.logs[TopicPartition("t", 1)].config.retention_ms == 5


def test_checkpoints(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append(count=3).append(count=3, committed=False)
    builder.log.flush()
    builder.log.maybe_increment_log_start_offset(2, "test")
    manager = builder.manager
    manager.checkpoint_recovery_points()
    manager.checkpoint_log_start_offsets()
    manager.checkpoint_high_watermarks()
    assert {
        p.name: p.read_text().splitlines()[2] for p in tmp_path.iterdir() if "checkpoint" in p.name
    } == {
        "recovery-point-offset-checkpoint": "orders 0 6",
        "log-start-offset-checkpoint": "orders 0 2",
        "replication-offset-checkpoint": "orders 0 3",
    }
    builder.reopen(clean=False)
    assert (builder.log.high_watermark, builder.log.log_start_offset) == (3, 2)


def test_a_truncation_below_the_recovery_point_is_checkpointed(tmp_path: Path) -> None:
    """Otherwise recovery would not read what is appended there, and keep what a power cut tore."""
    builder = LogBuilder(tmp_path)
    for _ in range(6):
        builder.append()
    builder.log.flush()
    builder.manager.checkpoint_recovery_points()
    builder.log.truncate_to(2)
    builder.append().append().roll().append().append().append()
    builder.kill()
    path = builder.path("00000000000000000000.log")
    path.write_bytes(path.read_bytes()[:-1])
    builder.open()
    assert (builder.log.log_end_offset, builder.bases()) == (3, [0])


def test_a_crash_after_a_truncation_does_not_commit_what_is_not_replicated(tmp_path: Path) -> None:
    """A leader would show consumers a record that it may lose."""
    builder = LogBuilder(tmp_path).append(count=6)
    builder.manager.checkpoint_high_watermarks()
    builder.log.truncate_to(0)
    builder.append(count=2).append(count=4, committed=False)
    builder.kill().open()
    assert (builder.log.high_watermark, builder.log.log_end_offset) == (0, 6)


def test_a_crash_after_a_torn_log_does_not_commit_what_is_not_replicated(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path).append().append()
    builder.manager.checkpoint_high_watermarks()
    builder.kill()
    path = builder.path("00000000000000000000.log")
    path.write_bytes(path.read_bytes()[:-1])
    builder.open()
    assert builder.log.log_end_offset == 1
    builder.append(committed=False)
    builder.kill().open()
    assert (builder.log.high_watermark, builder.log.log_end_offset) == (1, 2)


def test_a_crash_after_a_truncation_does_not_hide_new_records(tmp_path: Path) -> None:
    """DeleteRecords, then an unclean leader: the log starts lower, and its new records stay."""
    builder = LogBuilder(tmp_path).append().append().append()
    builder.log.maybe_increment_log_start_offset(3, "test")
    builder.manager.checkpoint_log_start_offsets()
    builder.log.truncate_to(1)
    builder.append()
    builder.kill().open()
    assert (builder.log.log_start_offset, builder.log.log_end_offset) == (1, 2)


def test_only_due_flushes_are_handed_out(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, flush_ms="1000").append()
    manager = builder.manager
    assert list(manager.flush_due_logs(NOW_MS + 999)) == []
    [task] = manager.flush_due_logs(NOW_MS + 1000)
    task.fsync()
    task.complete(NOW_MS + 1000)
    assert builder.log.recovery_point == 1
    assert list(manager.flush_due_logs(NOW_MS + 5000)) == []
    builder.append().roll()
    [task] = manager.flush_due_logs(NOW_MS + 1000)
    assert task.log is builder.log
    task.fsync()


def test_producers_expire(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path)
    builder.produce(7, 0)
    assert builder.manager.expire_producers(NOW_MS + 86_399_999) == 0
    assert builder.manager.expire_producers(NOW_MS + 86_400_000) == 1


def test_verifications_without_a_batch_do_not_fill_memory(tmp_path: Path) -> None:
    """A client may send transactional batches with new producer ids without end."""
    builder = LogBuilder(tmp_path)
    verification = builder.log.producers.verification
    for producer_id in range(3):
        verification.begin(producer_id, 0, 0, NOW_MS + producer_id)
    verification.begin(1, 1, 0, NOW_MS + 9)
    expired = [
        builder.manager.expire_producers(NOW_MS + 86_400_000 + later) for later in (-1, 1, 9, 10)
    ]
    assert expired == [0, 2, 2, 0]


def test_the_flush_of_many_logs_takes_the_descriptors_of_one(tmp_path: Path) -> None:
    disk = ShortFileSystem(Disk())
    manager = manager_of(tmp_path, fs=disk, open_files_max=1)
    for partition in range(20):
        create(manager, partition)
        log = manager.logs[TopicPartition("t", partition)]
        log.append_as_leader(build_batch([row()]), 0, NOW_MS)
    manager.update_broker_defaults({"log.flush.interval.ms": 1})
    points = []
    disk.descriptors_left = 3
    for task in manager.flush_due_logs(NOW_MS + 9):
        task.fsync()
        task.complete(NOW_MS + 9)
        points.append(task.log.recovery_point)
        if task.log.topic_partition.partition == 3:
            manager.delete_log(TopicPartition("t", 4))
    assert points == [1] * 19


def test_checkpoints_of_deleted_logs_use_no_memory(tmp_path: Path) -> None:
    """A broker whose topics come and go kept the name of each partition that it ever had."""
    manager = manager_of(tmp_path)
    [log_dir] = manager._dirs.values()
    for topic in "abc":
        create(manager, 0, topic)
        for write in (manager.checkpoint_recovery_points, manager.checkpoint_high_watermarks):
            write()
        manager.delete_log(TopicPartition(topic, 0))
    manager.checkpoint_recovery_points()
    assert sorted(map(len, log_dir.checkpointed_partitions.values())) == [0, 1]


def test_a_shutdown_flushes_logs_of_many_segments_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opened the files of all segments at once. With 300 segments it had no descriptors for
    them, and was not clean.
    """
    monkeypatch.setattr(local_log, "SEGMENTS_PER_FLUSH", 4)
    monkeypatch.setattr(flush_task, "_OPEN_FILES_MAX", 8)
    disk = ShortFileSystem(Disk())
    manager = manager_of(tmp_path, fs=disk, open_files_max=4)  # type: ignore[arg-type]
    for partition in range(3):
        create(manager, partition)
        log = manager.logs[TopicPartition("t", partition)]
        for _ in range(20):
            log.append_as_leader(build_batch([row()]), 0, NOW_MS)
            log.roll(NOW_MS)
    logs = list(manager.logs.values())
    disk.descriptors_left = 28
    manager.shutdown()
    assert [log.recovery_point for log in logs] == [20] * 3
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    assert disk.descriptors_left == 32, "the four files of segments are closed, too"


def test_retention_runs_over_all_logs(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, retention_ms="10").append().roll().append()
    assert sum(builder.manager.retention_slices(NOW_MS)) == 0
    assert sum(builder.manager.retention_slices(NOW_MS + 11)) == 1


def test_a_log_that_cannot_be_read_keeps_no_other_log_from_retention(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, retention_ms="10").append(count=2).roll().append()
    create(builder.manager, 0)
    other = builder.manager.logs[TopicPartition("t", 0)]
    for _ in range(2):
        other.append_as_leader(build_batch([row()]), 0, NOW_MS)
        other.roll(NOW_MS)
    other.update_high_watermark(2)
    builder.manager.update_topic_config("t", {"retention.ms": "10"})
    first = builder.log.segments.first
    first.set_max_timestamp(-1, 0)
    first._max_timestamp = None  # as after a start
    path = Path(first.records.path)
    path.write_bytes(bytes(len(path.read_bytes())))
    assert sum(builder.manager.retention_slices(NOW_MS + 11)) == 2


def test_the_volume_is_described(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    total, usable = manager.volume_bytes(str(tmp_path))
    assert total >= usable > 0
    assert manager.volume_bytes("/no/such/place") == (-1, -1)


def test_identity(tmp_path: Path) -> None:
    manager = manager_of(tmp_path / "a", tmp_path / "b")
    assert manager.stored_identity() == (None, None)
    manager.claim(4, CLUSTER_ID)
    assert manager.stored_identity() == (4, CLUSTER_ID)
    with pytest.raises(ConfigError, match=r"stored broker\.id 4"):
        manager.claim(5, CLUSTER_ID)


@pytest.mark.parametrize(
    "work",
    [
        lambda m: m.checkpoint_recovery_points(),
        lambda m: m.checkpoint_log_start_offsets(),
        lambda m: m.checkpoint_high_watermarks(),
        lambda m: sum(m.retention_slices(NOW_MS + 10**9)),
        lambda m: sum(m.deletion_slices(NOW_MS + 10**9)),
        lambda m: m.shutdown(),
    ],
    ids=["recovery-points", "starts", "high-watermarks", "retention", "deletions", "shutdown"],
)
def test_a_failing_directory_is_told_and_the_other_goes_on(
    tmp_path: Path, work: Callable[[LogManager], object]
) -> None:
    bad = f"{tmp_path}/a"
    disk = FaultyFileSystem(Disk(), prefix=bad)
    told: list[str] = []
    manager = manager_of(tmp_path / "a", tmp_path / "b", fs=disk)

    def tell(log_dir: str, failure: LogDirFailure) -> None:
        told.append(str(failure))
        manager.fail_log_dir(log_dir, failure)

    manager.on_log_dir_failure = tell
    manager.update_broker_defaults({"log.retention.ms": 1, "log.segment.delete.delay.ms": 0})
    for partition in range(2):
        create(manager, partition)
        log = manager.logs[TopicPartition("t", partition)]
        for end in (1, 2):
            # One segment waits for its removal, the next one is old enough to follow.
            log.append_as_leader(build_batch([row()]), 0, NOW_MS)
            log.update_high_watermark(end)
            log.delete_old_segments(NOW_MS + 9 * (2 - end))
    disk.changes, disk.fail_at, disk.for_good = 0, 1, True
    work(manager)
    assert len(told) == 1
    assert bad in told[0]
    assert "No space left on device" in told[0]
    assert (manager.live_log_dirs, manager.offline_log_dirs) == ([f"{tmp_path}/b"], [bad])
    assert list(manager.logs) == [TopicPartition("t", 1)]
    manager.shutdown()
    assert not (tmp_path / "a/.kafka_cleanshutdown").exists()
    assert verify_log_dir(OsFileSystem(), f"{tmp_path}/b") == []


def test_a_stop_without_its_checkpoints_is_not_clean(tmp_path: Path) -> None:
    """Deleted records would be there again, and nothing would be recovered."""

    disk = ShortForPath(Disk(), f"{tmp_path}/a/log-start-offset-checkpoint")
    manager = manager_of(tmp_path / "a", tmp_path / "b", fs=disk)
    disk.descriptors_left = 0
    manager.shutdown()
    assert not (tmp_path / "a/.kafka_cleanshutdown").exists()
    assert (tmp_path / "b/.kafka_cleanshutdown").exists()


def test_a_directory_that_cannot_be_made_is_offline_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    manager = manager_of(tmp_path / "a", tmp_path / "b")
    assert manager.live_log_dirs == [f"{tmp_path}/b"]
    with pytest.raises(LogDirFailure, match="All log directories are offline"):
        manager_of(tmp_path / "a")


def test_a_broken_log_takes_its_directory_offline_at_load(tmp_path: Path) -> None:
    LogBuilder(tmp_path / "a").append().stop()
    (tmp_path / "a/orders-0/partition.metadata").write_bytes(b"x")
    manager = manager_of(tmp_path / "a", tmp_path / "b")
    assert manager.offline_log_dirs == [f"{tmp_path}/a"]
    assert manager.logs == {}


def test_a_clean_stop_leaves_a_directory_that_kafka_would_load(tmp_path: Path) -> None:
    builder = LogBuilder(tmp_path, segment_bytes="500")
    for sequence in range(20):
        builder.produce(7, sequence)
    builder.manager.shutdown(broker_epoch=33)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":33}'
    assert verify_log_dir(builder.fs, builder.root) == []


def test_a_stop_waits_for_many_logs_at_once(tmp_path: Path) -> None:
    """Thousands of partitions, one after the other, would take minutes on a slow disk."""
    fs = CountingFileSystem()
    manager = manager_of(tmp_path, fs=fs)
    for partition in range(100):
        create(manager, partition)
        log = manager.logs[TopicPartition("t", partition)]
        log.append_as_leader(build_batch([row()]), 0, NOW_MS)
    fs.waits.clear()
    manager.shutdown()
    # Of each: the log, both indexes, the snapshot.
    assert sum(fs.waits) == 400
    assert len([files for files in fs.waits if files]) == 2
    again = manager_of(tmp_path, fs=fs)
    assert {log.local.recovery_point for log in again.logs.values()} == {1}


def test_logs_made_together_survive_a_power_cut() -> None:
    disk = SimFileSystem()
    manager = manager_of(Path("/logs"), fs=disk)
    with manager.group_commit():
        for partition in range(3):
            create(manager, partition)
            manager.logs[TopicPartition("t", partition)].assign_epoch_start(5, 0)
    disk.crash(1)
    names = [f"/logs/t-{partition}/leader-epoch-checkpoint" for partition in range(3)]
    assert [read_file(disk, name) for name in names] == [b"0\n1\n5 0\n"] * 3
    again = manager_of(Path("/logs"), fs=disk)
    assert [log.topic_id for log in again.logs.values()] == [TOPIC_ID] * 3


def test_retention_lets_others_work_between_its_slices(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    with manager.group_commit():
        for partition in range(101):
            create(manager, partition)
    slices = manager.retention_slices(NOW_MS)
    assert next(slices) == 0
    for partition in (60, 61):
        manager.delete_log(TopicPartition("t", partition))
    counted = calls(lambda: list(slices))
    assert counted["UnifiedLog.delete_old_segments"] == 49, "of those that are left"
    assert counted["LogManager.retention_slices"] == 3, "two slices, and the end"
    assert not counted["OsFileSystem.stat"], "an empty log has no age to ask the disk for"
    assert manager.offline_log_dirs == []


def test_retention_waits_for_the_disk_once_a_slice(tmp_path: Path) -> None:
    """The event loop stood still for half a second: each log wrote its leader epochs by itself."""
    disk = CountingFileSystem()
    manager = manager_of(tmp_path, fs=disk)
    for partition in range(4):
        create(manager, partition)
    manager.update_topic_config("t", {"retention.bytes": "0"})
    for log in manager.logs.values():
        for _ in range(2):
            log.append_as_leader(build_batch([row()]), 3, NOW_MS)
            log.roll(NOW_MS)
        log.update_high_watermark(2)
    disk.waits.clear()
    assert list(manager.retention_slices(NOW_MS)) == [8]
    assert disk.waits[0] == 4, "one wait for the four files, then their directories together"
    for log in manager.logs.values():
        assert Path(log.directory, "leader-epoch-checkpoint").read_bytes() == b"0\n1\n3 2\n"


def test_retention_without_descriptors_fails_no_directory(tmp_path: Path) -> None:
    disk = ShortForPath(Disk(), "leader-epoch-checkpoint")
    manager = manager_of(tmp_path, fs=disk)  # type: ignore[arg-type]
    create(manager, 0)
    log = manager.logs[TopicPartition("t", 0)]
    log.append_as_leader(build_batch([row()]), 3, NOW_MS)
    log.roll(NOW_MS)
    log.update_high_watermark(1)
    manager.update_topic_config("t", {"retention.bytes": "0"})
    disk.descriptors_left = 5
    assert list(manager.retention_slices(NOW_MS)) == [1]
    assert (manager.offline_log_dirs, log.epochs.entries()) == ([], [(3, 1)])


def waits_of_a_start(root: Path, logs: int) -> int:
    """The disk syncs of a start after a clean stop, with leaders that have no records."""
    manager = manager_of(root)
    with manager.group_commit():
        for partition in range(logs):
            create(manager, partition)
            manager.logs[TopicPartition("t", partition)].assign_epoch_start(5, 0)
    manager.shutdown()
    counted = calls(lambda: manager_of(root))
    for partition in range(logs):
        written = (root / f"t-{partition}" / "leader-epoch-checkpoint").read_bytes()
        assert written == b"0\n0\n", "an epoch that has no records is forgotten"
    kinds = ("OsFile.fsync", "fsync_dir", "fsync_dirs", "fsync_all")
    return sum(n for name, n in counted.items() if name.endswith(kinds))


def test_a_start_does_not_wait_for_the_disk_once_a_log(tmp_path: Path) -> None:
    few, many = (waits_of_a_start(tmp_path / str(logs), logs) for logs in (2, 40))
    assert many == few, f"{few} waits with 2 logs, {many} with 40"


def test_a_directory_that_fails_what_was_made_together_is_told_and_the_other_goes_on(
    tmp_path: Path,
) -> None:
    bad = f"{tmp_path}/a"
    disk = FaultyFileSystem(Disk(), prefix=bad)
    manager = manager_of(tmp_path / "a", tmp_path / "b", fs=disk)
    with manager.group_commit():
        for partition in range(4):
            create(manager, partition)
        disk.changes, disk.fail_at, disk.for_good = 0, 1, True
    assert manager.offline_log_dirs == [bad]
    assert sorted(log.log_dir for log in manager.logs.values()) == [f"{tmp_path}/b"] * 2
    for log in manager.logs.values():
        assert Path(log.directory, "partition.metadata").exists()


@pytest.mark.parametrize("left", [0, 1])
def test_an_epoch_that_cannot_be_written_is_not_begun(tmp_path: Path, left: int) -> None:
    """With no descriptor nothing changes; the last one is the epoch's, not the segment's."""
    disk = ShortFileSystem(Disk())
    manager = manager_of(tmp_path, fs=disk)  # type: ignore[arg-type]
    create(manager, 0)
    log = manager.logs[TopicPartition("t", 0)]
    log.local.close_handles()
    disk.descriptors_left = left
    with manager.group_commit():
        if left:
            log.append_as_follower(build_batch([row()], leader_epoch=3), NOW_MS)
        else:
            with pytest.raises(StorageShortage):
                log.append_as_follower(build_batch([row()], leader_epoch=3), NOW_MS)
    assert manager.offline_log_dirs == []
    assert (log.log_end_offset, log.epochs.latest) == ((1, 3) if left else (0, -1))


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_log_that_cannot_be_created_leaves_no_directory(tmp_path: Path, suffix: str) -> None:
    """The next attempt is in another directory; the one of the first would keep the broker from
    starting again, and the partition from moving there."""
    disk = ShortForPath(Disk(), suffix)
    dirs = tmp_path / "a", tmp_path / "b"
    manager = manager_of(*dirs, fs=disk)  # type: ignore[arg-type]
    disk.descriptors_left = 0
    with pytest.raises(StorageShortage):
        create(manager, 0)
    disk.descriptors_left = None
    create(manager, 1)
    create(manager, 0)
    assert manager.logs[TopicPartition("t", 0)].log_dir == f"{tmp_path}/b"
    assert not (dirs[0] / "t-0").exists()
    manager.shutdown()
    assert len(manager_of(*dirs).logs) == 2


def test_a_log_that_cannot_be_created_among_others_fails_no_directory(tmp_path: Path) -> None:
    """Its directory was to be made durable with theirs, and is renamed."""

    class LateShortage(ShortFileSystem):
        def _check(self, path: str) -> None:
            if path.endswith("t-1/partition.metadata"):
                super()._check(path)

    disk = LateShortage(Disk())
    manager = manager_of(tmp_path, fs=disk)  # type: ignore[arg-type]
    disk.descriptors_left = 0
    with manager.group_commit():
        create(manager, 0)
        with pytest.raises(StorageShortage):
            create(manager, 1)
    disk.descriptors_left = None
    assert manager.offline_log_dirs == []
    create(manager, 1)


def test_a_log_that_cannot_be_created_is_created_later_where_it_is_wanted(tmp_path: Path) -> None:
    disk = ShortFileSystem(Disk())
    manager = manager_of(tmp_path / "a", tmp_path / "b", fs=disk)  # type: ignore[arg-type]
    with pytest.raises(ApiError, match="REPLICA_NOT_AVAILABLE"):
        manager.future_logs.move(TopicPartition("t", 0), f"{tmp_path}/b")
    disk.descriptors_left = 0
    with pytest.raises(StorageShortage):
        create(manager, 0)
    disk.descriptors_left = None
    create(manager, 0)
    assert manager.logs[TopicPartition("t", 0)].log_dir == f"{tmp_path}/b"
    assert manager.future_logs.preferred_log_dirs == {}


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_creation_that_did_not_end_does_not_count(tmp_path: Path, order: str) -> None:
    """Its disk failed then, and is sound now."""
    manager = manager_of(tmp_path / "a")
    create(manager, 0)
    log = manager.logs[TopicPartition("t", 0)]
    log.append_as_leader(build_batch([row()]), 0, NOW_MS)
    manager.shutdown()
    (tmp_path / "b" / "t-0").mkdir(parents=True)
    again = manager_of(*(tmp_path / name for name in order))
    found = again.logs[TopicPartition("t", 0)]
    assert (found.log_dir, found.log_end_offset) == (f"{tmp_path}/a", 1)
    assert not (tmp_path / "b" / "t-0").exists()
    create(again, 1)
    assert again.logs[TopicPartition("t", 1)].log_dir == f"{tmp_path}/b"


def test_a_flush_under_way_does_not_mind_that_the_log_is_deleted(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    create(manager, 0)
    log = manager.logs[TopicPartition("t", 0)]
    log.append_as_leader(build_batch([row()]), 0, NOW_MS)
    handle = log.flush_handle()
    manager.delete_log(TopicPartition("t", 0))
    log.run_flush(handle)
    assert manager.offline_log_dirs == []
