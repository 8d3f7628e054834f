"""Each periodic step does its work on real logs; periods are the configured ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import LogDirFailure
from kafkapy.common.ports import Pause
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.messages import CommitOffsets, FetchOffsets, OffsetToCommit
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.records import iter_records
from kafkapy.server import maintenance as module
from kafkapy.server.maintenance import Maintenance
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.storage.cleaning import Cleaning
from kafkapy.storage.cleaning_state import LogCleaningAborted
from kafkapy.storage.flush_task import FlushTask
from tests.harness.cores.server_parts import WALL_AHEAD_MS, Parts
from tests.harness.plugins.closing import Disk
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.partitions import LAG_MAX_MS, partition_state

T0 = TopicPartition("t", 0)

Step = Callable[[], Awaitable[Any] | None]


class FakeScheduler:
    """Writes down what is to come round; the test does a round."""

    def __init__(self, on_log_dir_failure: Callable[[LogDirFailure], None]) -> None:
        self.on_log_dir_failure = on_log_dir_failure
        self.steps: dict[str, Step] = {}
        self.periods_ms: dict[str, tuple[int, int | None]] = {}

    def every(self, name: str, period_ms: int, step: Step, delay_ms: int | None = None) -> None:
        self.steps[name] = step
        self.periods_ms[name] = (period_ms, delay_ms)

    async def stop(self) -> None:
        self.steps.clear()


class Upkeep:
    """Maintenance over real parts in one directory."""

    def __init__(
        self, directory: Path, disk: FaultyFileSystem | None = None, **properties: str
    ) -> None:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        self.directory = directory
        self.parts = Parts(directory, fs=disk, properties=given)
        self.connections = ConnectionTable(self.parts.config)
        parts = self.parts
        self.maintenance = Maintenance(
            parts.config,
            parts.replicas,
            parts.groups,
            parts.transactions,
            parts.shares,
            None,
            parts.controller,  # type: ignore[arg-type]
            parts.fs,
            self.connections,
            parts.clock,
        )
        self.maintenance.start()
        self.scheduler: FakeScheduler = self.maintenance._scheduler  # type: ignore[assignment]

    def round(self, name: str) -> None:
        """One round of a step."""

        async def come_round() -> None:
            outcome = self.scheduler.steps[name]()
            if outcome is not None:
                await outcome

        asyncio.run(come_round())

    def produce(self, key: str = "k", count: int = 1) -> None:
        now_ms = self.parts.clock.time_ms()
        for i in range(count):
            record = RecordData(key.encode(), b"%d" % i, now_ms, [])
            self.parts.replicas.append("t", 0, build_batch([record]), 1, 11)

    def file(self, name: str) -> str:
        return (self.directory / name).read_text()


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Scheduler", FakeScheduler)


def test_periods_are_kafkas(tmp_path: Path) -> None:
    """Kafka's names of the tasks, their periods and first delays (LogManager, ReplicaManager)."""
    assert Upkeep(tmp_path).scheduler.periods_ms == {
        "kafka-log-retention": (300_000, 30_000),
        "kafka-recovery-point-checkpoint": (60_000, 30_000),
        "kafka-log-start-offset-checkpoint": (60_000, 30_000),
        "highwatermark-checkpoint": (5_000, None),
        "kafka-delete-logs": (1_000, None),
        "kafka-log-flusher": (1_000, None),
        "replica-alter-log-dirs": (100, None),
        "PeriodicProducerExpirationCheck": (600_000, None),
        "delete-expired-group-metadata": (600_000, None),
        "share-group-state-prune": (300_000, None),
        "transaction-abort": (10_000, None),
        "transactionalId-expiration": (3_600_000, None),
        "isr-expiration": (15_000, None),
        "idle-connections": (10_000, None),
        "kafka-log-cleaner": (15_000, None),
        "replicas-without-files": (10_000, None),  # ours
    }


def test_work_that_is_switched_off_does_not_come_round(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path, log_cleaner_enable="false", connections_max_idle_ms="-1")
    assert not {"idle-connections", "kafka-log-cleaner"} & upkeep.scheduler.periods_ms.keys()
    at_once = Upkeep(tmp_path / "at_once", connections_max_idle_ms="0")
    assert at_once.scheduler.periods_ms["idle-connections"] == (1, None)


def test_a_cleaner_without_a_pause_still_lets_others_work(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path, log_cleaner_backoff_ms="0", connections_max_idle_ms="2")
    assert upkeep.scheduler.periods_ms["kafka-log-cleaner"] == (1, None)
    assert upkeep.scheduler.periods_ms["idle-connections"] == (1, None)


def test_retention_takes_old_segments_and_their_files_go_later(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path)
    upkeep.parts.apply_leader_and_isr(
        partition_state(), retention_ms="1000", file_delete_delay_ms="60000"
    )
    log = upkeep.parts.replicas.get("t", 0).log
    upkeep.produce()
    log.roll(upkeep.parts.clock.time_ms())
    upkeep.produce()
    upkeep.round("kafka-log-retention")
    assert log.log_start_offset == 0
    upkeep.parts.clock.now_ms += 1001
    upkeep.produce()
    upkeep.round("kafka-log-retention")
    assert log.log_start_offset == 1
    deleted = tmp_path / "t-0" / "00000000000000000000.log.deleted"
    upkeep.round("kafka-delete-logs")
    assert deleted.exists()
    upkeep.parts.clock.now_ms += 60_000
    upkeep.round("kafka-delete-logs")
    assert not deleted.exists()


def test_checkpoints(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path)
    partition = upkeep.parts.lead()
    upkeep.produce(count=3)
    upkeep.round("highwatermark-checkpoint")
    assert upkeep.file("replication-offset-checkpoint").split("\n")[2] == "t 0 3"
    partition.log.flush()
    upkeep.round("kafka-recovery-point-checkpoint")
    assert upkeep.file("recovery-point-offset-checkpoint").split("\n")[2] == "t 0 3"
    partition.delete_records(2)
    upkeep.round("kafka-log-start-offset-checkpoint")
    assert upkeep.file("log-start-offset-checkpoint").split("\n")[2] == "t 0 2"


def test_logs_are_flushed_when_their_time_is_over(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path)
    upkeep.parts.apply_leader_and_isr(partition_state(), flush_ms="500")
    log = upkeep.parts.replicas.get("t", 0).log
    upkeep.produce()
    upkeep.parts.clock.now_ms += 500
    upkeep.round("kafka-log-flusher")
    assert (log.recovery_point, log.log_end_offset) == (1, 1)
    upkeep.produce()
    upkeep.round("kafka-log-flusher")
    assert log.recovery_point == 1


def test_a_disk_that_cannot_be_flushed_goes_offline(tmp_path: Path) -> None:
    disk = FaultyFileSystem(Disk())
    upkeep = Upkeep(tmp_path, disk)
    upkeep.parts.apply_leader_and_isr(partition_state(), flush_ms="0")
    upkeep.produce()
    disk.fail_at, disk.for_good = disk.changes + 1, True
    upkeep.round("kafka-log-flusher")
    assert upkeep.parts.logs.offline_log_dirs == [str(tmp_path)]
    assert upkeep.parts.replicas.offline == {T0}


def test_a_stop_hears_of_the_flush_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system tells of a failed write once: unheard, the shutdown would count as clean."""
    upkeep = Upkeep(tmp_path)
    upkeep.parts.apply_leader_and_isr(partition_state(), flush_ms="0")
    upkeep.produce()
    begun, may_fail = threading.Event(), threading.Event()
    flush = FlushTask.fsync

    def fsync(task: FlushTask) -> None:
        begun.set()
        assert may_fail.wait(20)
        flush(task)
        raise LogDirFailure(str(tmp_path), "broken")

    monkeypatch.setattr(FlushTask, "fsync", fsync)

    async def stop_meanwhile() -> None:
        work = asyncio.ensure_future(upkeep.scheduler.steps["kafka-log-flusher"]() or _nothing())
        assert await asyncio.to_thread(begun.wait, 20)
        work.cancel()
        asyncio.get_running_loop().call_soon(may_fail.set)
        await asyncio.gather(work, return_exceptions=True)
        assert work.cancelled()
        assert upkeep.parts.logs.offline_log_dirs == [str(tmp_path)]

    asyncio.run(stop_meanwhile())


def test_idle_producers_are_forgotten(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path, producer_id_expiration_ms="1000")
    log = upkeep.parts.lead().log
    record = RecordData(b"k", b"v", upkeep.parts.clock.time_ms(), [])
    batch = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=0)
    upkeep.parts.replicas.append("t", 0, batch, 1, 11)
    upkeep.round("PeriodicProducerExpirationCheck")
    assert list(log.producers.state.producers) == [7]
    upkeep.parts.clock.now_ms += 1001
    upkeep.round("PeriodicProducerExpirationCheck")
    assert list(log.producers.state.producers) == []


def test_offsets_of_forgotten_groups_expire_by_the_wall_clock(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path, offsets_retention_minutes="1")
    parts = upkeep.parts
    parts.coordinate()
    groups = parts.groups

    def committed() -> int:
        fetch = groups.coordinator.fetch_offsets
        found = groups.call(fetch, FetchOffsets("g", [T0]), lambda result: result)
        offset: int = found.offsets[T0].offset
        return offset

    commit = CommitOffsets("g", {T0: OffsetToCommit(5)})
    groups.call(groups.coordinator.commit_offsets, commit, lambda result: result)
    parts.clock.now_ms += 59_999
    upkeep.round("delete-expired-group-metadata")
    assert committed() == 5
    parts.clock.now_ms += 2
    upkeep.round("delete-expired-group-metadata")
    assert committed() == -1


def test_idle_connections_are_looked_for_by_the_clock_they_are_stamped_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep = Upkeep(tmp_path)
    asked_ms: list[int] = []
    monkeypatch.setattr(upkeep.connections, "close_idle", asked_ms.append)
    upkeep.round("idle-connections")
    assert asked_ms == [upkeep.parts.clock.monotonic_ms()]
    assert asked_ms[0] < WALL_AHEAD_MS


def test_compaction_leaves_the_last_value_of_each_key(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path)
    upkeep.parts.apply_leader_and_isr(
        partition_state(), cleanup_policy="compact", min_cleanable_dirty_ratio="0.0"
    )
    log = upkeep.parts.replicas.get("t", 0).log
    upkeep.produce("a", 3)
    upkeep.produce("b", 2)
    log.roll(upkeep.parts.clock.time_ms())
    upkeep.produce("c")
    upkeep.round("kafka-log-flusher")
    upkeep.round("kafka-log-cleaner")
    records = list(iter_records(log.read(0, 1 << 20, log.log_end_offset, True).records))
    assert [(record.key, record.value) for record in records] == [(b"a", b"2"), (b"b", b"1")]
    assert upkeep.file("cleaner-offset-checkpoint").split("\n")[2] == "t 0 5"


def test_a_log_that_cannot_be_cleaned_does_not_stop_the_cleaner(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    upkeep = Upkeep(tmp_path)
    upkeep.parts.apply_leader_and_isr(
        partition_state(), cleanup_policy="compact", min_cleanable_dirty_ratio="0.0"
    )
    log = upkeep.parts.replicas.get("t", 0).log
    upkeep.produce("a", 3)
    log.roll(upkeep.parts.clock.time_ms())
    upkeep.round("kafka-log-flusher")
    segment = tmp_path / "t-0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[61] ^= 0xFF  # the first record's length
    segment.write_bytes(data)
    for _ in range(2):
        upkeep.round("kafka-log-cleaner")
    [error] = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert error.startswith("Log t-0 cannot be cleaned any more:")
    assert upkeep.parts.logs.live_log_dirs == [str(tmp_path)]


@pytest.mark.parametrize("raised", [LogCleaningAborted("as asked"), OSError(2, "gone"), None])
def test_a_stop_aborts_the_cleaning_and_waits_for_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception | None
) -> None:
    """Nobody may be at work in a directory that another broker may have the next moment."""
    upkeep = Upkeep(tmp_path)
    upkeep.parts.apply_leader_and_isr(
        partition_state(), cleanup_policy="compact", min_cleanable_dirty_ratio="0.0"
    )
    log = upkeep.parts.replicas.get("t", 0).log
    upkeep.produce("a", 3)
    log.roll(upkeep.parts.clock.time_ms())
    upkeep.round("kafka-log-flusher")
    begun, ended, look_again = threading.Event(), threading.Event(), threading.Event()

    def run(cleaning: Cleaning, pause: Pause) -> None:
        begun.set()
        while not cleaning.log.cleaning.is_aborted:
            look_again.wait(0.001)
        ended.set()
        if raised is not None:
            raise raised

    monkeypatch.setattr(Cleaning, "run", run)

    async def stop_meanwhile() -> None:
        work = asyncio.ensure_future(upkeep.scheduler.steps["kafka-log-cleaner"]() or _nothing())
        assert await asyncio.to_thread(begun.wait, 20)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert ended.is_set()

    asyncio.run(stop_meanwhile())
    assert upkeep.parts.logs.live_log_dirs == [str(tmp_path)]


async def _nothing() -> None:
    """In the place of a step that does not wait."""


def test_an_unexpected_error_costs_one_log_its_cleaning_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    upkeep = Upkeep(tmp_path)
    upkeep.parts.apply_leader_and_isr(
        partition_state(), cleanup_policy="compact", min_cleanable_dirty_ratio="0.0"
    )
    log = upkeep.parts.replicas.get("t", 0).log
    upkeep.produce("a", 3)
    log.roll(upkeep.parts.clock.time_ms())
    upkeep.round("kafka-log-flusher")
    monkeypatch.setattr(Cleaning, "run", lambda *_: {}["no such key"])
    upkeep.round("kafka-log-cleaner")
    assert "Log t-0 cannot be cleaned any more: 'no such key'" in caplog.text
    assert not log.cleaning.in_progress


def test_followers_that_lag_are_looked_for(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path)
    upkeep.parts.lead(isr=(1, 2))
    proposed: list[tuple[int, ...]] = []
    upkeep.parts.replicas.on_isr_change = lambda _, change: proposed.append(change.isr)
    upkeep.produce()
    upkeep.parts.clock.now_ms += LAG_MAX_MS + 1
    upkeep.round("isr-expiration")
    assert proposed == [(1,)]


def test_stop_ends_it_all(tmp_path: Path) -> None:
    upkeep = Upkeep(tmp_path)
    asyncio.run(upkeep.maintenance.stop())
    assert upkeep.scheduler.steps == {}


@pytest.mark.parametrize(("is_active", "rounds"), [(True, 1), (False, 0), (None, 0)])
def test_only_the_controller_removes_expired_tokens(
    tmp_path: Path, is_active: bool | None, rounds: int
) -> None:
    removed: list[bool] = []

    class Admin:
        async def delete_expired(self) -> None:
            removed.append(True)

    upkeep = Upkeep(tmp_path)
    assert "delete-expired-tokens" not in upkeep.scheduler.periods_ms
    upkeep.maintenance._token_admin = Admin()  # type: ignore[assignment]
    if is_active is not None:
        controller = SimpleNamespace(is_active=is_active)
        upkeep.parts.controller.controller = controller  # type: ignore[assignment]
    upkeep.maintenance.start()
    assert upkeep.scheduler.periods_ms["delete-expired-tokens"] == (3_600_000, 0)
    upkeep.round("delete-expired-tokens")
    assert len(removed) == rounds
