"""Hosted partitions: the controller's commands, appends, and disks that fail."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkapy.common.cluster_state import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    CommandResult,
    LeaderAndIsrCommand,
    StopReplicaCommand,
    StopReplicaPartition,
)
from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.replication.follower_fetcher import FollowerFetcher
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import DelayedOperation
from kafkapy.storage.log_cleaner import LogCleaner
from tests.harness.cores.server_parts import WALL_AHEAD_MS, Parts
from tests.harness.cores.znodes import run
from tests.harness.plugins.closing import Disk
from tests.harness.storage.faulty_filesystem import FaultyFileSystem
from tests.harness.storage.legacy_messages import message_set
from tests.harness.storage.partitions import LAG_MAX_MS, batch, partition_state
from tests.harness.storage.short_filesystem import ShortFileSystem

TP = TopicPartition("t", 0)
LATEST = 11


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


class Waiter(DelayedOperation):
    """Waits until `holds()`; remembers whether it ended."""

    __slots__ = ("has_ended", "holds")

    def __init__(self, holds: Callable[[], bool]) -> None:
        super().__init__(2_000_000)
        self.holds = holds
        self.has_ended = False

    def ready(self) -> bool:
        return self.holds()

    def on_complete(self) -> None:
        self.has_ended = True


def stop(parts: Parts, epoch: int, delete: bool, controller_epoch: int = 1) -> CommandResult:
    rows = [StopReplicaPartition("t", 0, epoch, delete)]
    command = StopReplicaCommand(1, controller_epoch, 1, rows)
    return run(parts.replicas.stop_replicas(command))


def refusal(parts: Parts, topic: str = "t", index: int = 0) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        parts.replicas.get(topic, index)
    return refused.value.code


def test_a_new_partition_has_a_log_with_its_topics_configs(parts: Parts, tmp_path: Path) -> None:
    result = parts.apply_leader_and_isr(partition_state(), max_message_bytes="77")
    assert (result.error, result.partition_errors) == (ErrorCode.NONE, {TP: ErrorCode.NONE})
    assert parts.replicas.get("t", 0).log.config.max_message_bytes == 77
    assert (tmp_path / "t-0" / "partition.metadata").exists()


def test_who_coordinates_is_told_of_each_change_of_leadership_once(parts: Parts) -> None:
    heard: list[tuple[Partition, bool]] = []
    parts.replicas.on_leadership = lambda partition, leads: heard.append((partition, leads))
    partition = parts.lead()
    assert parts.apply_leader_and_isr(partition_state(leader_epoch=0)).partition_errors[TP]
    parts.lead(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    parts.lead(isr=(1, 2), leader_epoch=2, partition_epoch=2)
    assert heard == [(partition, True), (partition, False), (partition, True)]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (partition_state(leader_epoch=6), ErrorCode.NONE),
        (partition_state(leader_epoch=5), ErrorCode.STALE_CONTROLLER_EPOCH),
        (partition_state(leader_epoch=4), ErrorCode.STALE_CONTROLLER_EPOCH),
        (
            partition_state(leader_epoch=6, topic_id=Uuid(bytes(15) + b"\7")),
            ErrorCode.INCONSISTENT_TOPIC_ID,
        ),
        (
            partition_state(leader=2, isr=(2,), leader_epoch=6, partition_epoch=1),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
    ],
)
def test_leader_and_isr_of_a_hosted_partition(parts: Parts, row: object, code: ErrorCode) -> None:
    partition = parts.lead(leader_epoch=5)
    assert parts.apply_leader_and_isr(row).partition_errors == {TP: code}  # type: ignore[arg-type]
    assert partition.leader_epoch == (6 if code is ErrorCode.NONE else 5)
    assert partition.is_leader


def test_a_replica_that_lacked_descriptors_is_asked_for_once(tmp_path: Path) -> None:
    """The controller sends it again; otherwise it would be offline until the broker restarts."""
    disk = ShortFileSystem(Disk())
    parts = Parts(tmp_path, fs=disk)  # type: ignore[arg-type]
    asked: list[bool] = []
    parts.replicas.on_log_dir_failure = lambda: asked.append(True)
    disk.descriptors_left = 0
    assert parts.apply_leader_and_isr(partition_state()).partition_errors == {
        TP: ErrorCode.KAFKA_STORAGE_ERROR
    }
    disk.descriptors_left = None
    parts.replicas.request_missing_replicas()
    parts.replicas.request_missing_replicas()
    assert asked == [True]
    assert parts.apply_leader_and_isr(partition_state()).partition_errors == {TP: ErrorCode.NONE}


def test_a_replica_that_lacks_descriptors_begins_to_lead_when_it_is_asked_again(
    tmp_path: Path,
) -> None:
    """The epoch could not be written: that costs neither the directory nor the broker."""
    disk = ShortFileSystem(Disk())
    parts = Parts(tmp_path, fs=disk)  # type: ignore[arg-type]
    parts.lead(leader=2, isr=(1, 2))
    parts.replicas.on_fatal = lambda failure: pytest.fail(str(failure))
    asked: list[bool] = []
    parts.replicas.on_log_dir_failure = lambda: asked.append(True)
    row = partition_state(isr=(1,), leader_epoch=1, partition_epoch=1)
    parts.replicas.get("t", 0).log.local.close_handles()
    disk.descriptors_left = 0
    assert parts.apply_leader_and_isr(row).partition_errors == {TP: ErrorCode.KAFKA_STORAGE_ERROR}
    assert not parts.replicas.get("t", 0).is_leader
    disk.descriptors_left = None
    parts.replicas.request_missing_replicas()
    assert asked == [True]
    assert parts.apply_leader_and_isr(row).partition_errors == {TP: ErrorCode.NONE}
    assert parts.replicas.get("t", 0).is_leader


def test_a_log_that_cannot_be_cut_to_be_followed_costs_no_other_partition(tmp_path: Path) -> None:
    """It has batches of an old format. The others would never have been announced: a repetition of
    the command is refused."""
    disk = ShortFileSystem(Disk())
    parts = Parts(tmp_path, fs=disk)  # type: ignore[arg-type]
    rows = [partition_state(leader=2, isr=(1, 2), partition=index) for index in range(2)]
    parts.apply_leader_and_isr(*rows)
    partition = parts.replicas.get("t", 0)
    partition.log.append_as_follower(message_set(1, [0, 1]), 0)
    failures: list[LogDirFailure] = []
    fetcher = FollowerFetcher(3, 1 << 20, 1000, parts.replicas.quotas.follower, failures.append)
    announced: list[int] = []
    parts.replicas.on_follow = fetcher.follow
    parts.replicas.on_leadership = lambda p, leads: announced.append(p.topic_partition.partition)
    rows = [
        partition_state(leader=3, isr=(1, 3), partition=index, leader_epoch=1, partition_epoch=1)
        for index in range(2)
    ]
    for log in parts.logs.logs.values():
        log.local.close_handles()
    disk.descriptors_left = 0
    parts.apply_leader_and_isr(*rows)
    assert announced == [0, 1]
    fetch = fetcher.next_fetch(0)
    assert fetch is not None
    assert list(fetch.requested) == [TopicPartition("t", 1)]
    assert partition.log.log_end_offset == 2
    disk.descriptors_left = None
    fetch = fetcher.next_fetch(fetcher.next_due_ms() or 0)
    assert fetch is not None
    assert fetch.requested[TP].fetch_offset == partition.log.log_end_offset == 0
    assert failures == []


@pytest.mark.parametrize("left", range(2))
def test_a_compacted_log_is_deleted_without_a_descriptor(tmp_path: Path, left: int) -> None:
    """Its row of the cleaner's checkpoint goes with it. The deletion was refused after it was done,
    and the topic's was halted until a broker restarted."""
    disk = ShortFileSystem(Disk())
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"0\n2\nt 0 1\nt 1 1\n")
    parts = Parts(tmp_path, fs=disk)  # type: ignore[arg-type]
    cleaner = LogCleaner(disk, parts.logs)  # type: ignore[arg-type]
    parts.lead()
    parts.apply_leader_and_isr(partition_state(partition=1))
    for index in range(2):
        parts.replicas.append("t", index, batch(), 1, LATEST)
        parts.logs.logs[TopicPartition("t", index)].roll(0)
    parts.logs.update_topic_config("t", {"cleanup.policy": "compact"})
    assert cleaner.next_cleaning(0) is None
    parts.logs.logs[TP].local.close_handles()
    disk.descriptors_left = left
    assert stop(parts, EPOCH_DURING_DELETE, delete=True).partition_errors == {TP: ErrorCode.NONE}
    disk.descriptors_left = None
    assert (tmp_path / "cleaner-offset-checkpoint").read_bytes() == b"0\n1\nt 1 1\n"


def test_a_log_of_another_topic_of_that_name_is_not_taken_over(parts: Parts) -> None:
    parts.logs.get_or_create_log(TP, Uuid(bytes(15) + b"\7"), {}, True)
    assert parts.apply_leader_and_isr(partition_state()).partition_errors == {
        TP: ErrorCode.INCONSISTENT_TOPIC_ID
    }
    assert parts.replicas.partitions == {}


def test_a_partition_that_is_elsewhere_is_not_made_here(parts: Parts, tmp_path: Path) -> None:
    code = parts.apply_leader_and_isr(partition_state(leader=2, isr=(2,))).partition_errors[TP]
    assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not (tmp_path / "t-0").exists()
    assert refusal(parts) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_older_partition_epoch_changes_nothing_and_is_no_error(parts: Parts) -> None:
    partition = parts.lead(partition_epoch=3)
    parts.replicas.on_leadership = lambda *_: pytest.fail("nothing has changed")
    result = parts.apply_leader_and_isr(
        partition_state(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=2)
    )
    assert result.partition_errors == {TP: ErrorCode.NONE}
    assert partition.is_leader


def test_one_bad_row_does_not_cost_the_others(parts: Parts) -> None:
    parts.lead()
    result = parts.apply_leader_and_isr(
        partition_state(leader_epoch=0), partition_state(partition=1)
    )
    assert result.partition_errors == {
        TP: ErrorCode.STALE_CONTROLLER_EPOCH,
        TopicPartition("t", 1): ErrorCode.NONE,
    }


def test_a_topic_with_configs_that_are_not_allowed_does_not_cost_the_others(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [partition_state(), partition_state(topic="u")]
    command = LeaderAndIsrCommand(1, 1, 1, rows)
    overrides = {"t": {"retention.ms": "never"}}
    result = run(parts.replicas.become_leader_or_follower(command, overrides))
    assert list(result.partition_errors.values()) == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        "Cannot host t-0: Invalid value never for configuration retention.ms:"
        " Not a number of type LONG (64-bit integer)"
    ]


def test_others_have_their_turn_while_many_partitions_come(parts: Parts) -> None:
    command = LeaderAndIsrCommand(
        1, 1, 1, [partition_state(partition=index) for index in range(450)]
    )
    hosted: list[int] = []

    async def apply() -> CommandResult:
        applying = asyncio.ensure_future(parts.replicas.become_leader_or_follower(command, {}))
        while not applying.done():
            await asyncio.sleep(0)
            hosted.append(len(parts.replicas.partitions["t"]))
        return applying.result()

    result = asyncio.run(apply())
    assert len(result.partition_errors) == 450
    assert set(result.partition_errors.values()) == {ErrorCode.NONE}
    assert len(set(hosted)) > 2


def test_a_controller_that_was_replaced_is_not_obeyed(parts: Parts) -> None:
    parts.apply_leader_and_isr(partition_state(), controller_epoch=5)
    stale = CommandResult(ErrorCode.STALE_CONTROLLER_EPOCH)
    assert parts.apply_leader_and_isr(partition_state(leader_epoch=9), controller_epoch=4) == stale
    assert stop(parts, NO_EPOCH, True, controller_epoch=4) == stale
    assert stop(parts, NO_EPOCH, False, controller_epoch=6) != stale
    assert parts.apply_leader_and_isr(partition_state(leader_epoch=9), controller_epoch=5) == stale
    assert parts.replicas.get("t", 0).leader_epoch == 0


def test_a_stopped_replica_keeps_its_log_and_serves_nobody(parts: Parts) -> None:
    partition = parts.lead()
    heard: list[bool] = []
    parts.replicas.on_leadership = lambda _, leads: heard.append(leads)
    waiter = Waiter(lambda: not partition.is_leader)
    parts.replicas.fetch_purgatory.try_complete_else_watch(waiter, [TP])
    assert stop(parts, 0, delete=False).partition_errors == {TP: ErrorCode.NONE}
    assert (heard, waiter.has_ended) == ([False], True)
    assert parts.logs.get_log(TP) is not None
    with pytest.raises(ApiError) as refused:
        parts.replicas.append("t", 0, batch(), 1, LATEST)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (5, ErrorCode.NONE),
        (6, ErrorCode.NONE),
        (NO_EPOCH, ErrorCode.NONE),
        (EPOCH_DURING_DELETE, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_stop_replica_is_fenced_by_leader_epoch(parts: Parts, epoch: int, code: ErrorCode) -> None:
    parts.lead(leader_epoch=5)
    assert stop(parts, epoch, delete=True).partition_errors == {TP: code}
    gone = code is ErrorCode.NONE
    assert (parts.logs.get_log(TP) is None) == gone
    assert ("t" not in parts.replicas.partitions) == gone


def test_a_log_that_nobody_hosts_is_deleted_all_the_same(parts: Parts, tmp_path: Path) -> None:
    parts.logs.get_or_create_log(TP, partition_state().topic_id, {}, True)
    assert stop(parts, NO_EPOCH, delete=True).partition_errors == {TP: ErrorCode.NONE}
    assert not (tmp_path / "t-0").exists()
    assert stop(parts, NO_EPOCH, delete=True).partition_errors == {TP: ErrorCode.NONE}


class UnsyncedDirectories(Disk):
    """Directories cannot be synced once `is_broken`."""

    is_broken = False

    def fsync_dir(self, path: str) -> None:
        if self.is_broken:
            raise OSError(errno.EIO, "broken", path)
        super().fsync_dir(path)


def test_a_deletion_that_is_not_durable_is_an_error(tmp_path: Path) -> None:
    """The controller would forget the topic, and a power cut bring its log back."""
    fs = UnsyncedDirectories()
    parts = Parts(tmp_path / "a", tmp_path / "b", fs=fs)
    parts.apply_leader_and_isr(partition_state())
    fs.is_broken = True
    for _ in range(2):  # asked again, as after a lost answer, it is none either
        assert stop(parts, 0, delete=True).partition_errors == {TP: ErrorCode.KAFKA_STORAGE_ERROR}
    assert len(parts.logs.offline_log_dirs) == 1


def test_a_deletion_that_fails_is_an_error_however_often_it_is_asked_for(tmp_path: Path) -> None:
    parts, disk = two_dirs(tmp_path)
    disk.fail_at, disk.for_good = disk.changes + 1, True
    for _ in range(2):
        assert stop(parts, 0, delete=True).partition_errors == {TP: ErrorCode.KAFKA_STORAGE_ERROR}
    assert parts.logs.live_log_dirs == [str(tmp_path / "b")]


def test_a_client_learns_whether_to_look_elsewhere(parts: Parts) -> None:
    assert refusal(parts) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    parts.announce("t", leader=2)
    assert refusal(parts) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(parts, "t", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_append_is_stamped_with_the_wall_clock_and_wakes_who_waits(parts: Parts) -> None:
    parts.apply_leader_and_isr(partition_state(), message_timestamp_type="LogAppendTime")
    partition = parts.replicas.get("t", 0)
    waiters = [Waiter(lambda: partition.log.high_watermark == 2) for _ in range(2)]
    parts.replicas.fetch_purgatory.try_complete_else_watch(waiters[0], [TP])
    parts.replicas.produce_purgatory.try_complete_else_watch(waiters[1], [TP])
    info, found = parts.replicas.append("t", 0, batch(2), -1, LATEST)
    assert found is partition
    assert info.log_append_time == WALL_AHEAD_MS + parts.clock.now_ms
    assert all(waiter.has_ended for waiter in waiters)


def test_a_lower_minimum_of_replicas_lets_the_high_watermark_go_on(parts: Parts) -> None:
    parts.apply_leader_and_isr(partition_state(isr=(1,), replicas=(1, 2)), min_insync_replicas="2")
    partition = parts.replicas.get("t", 0)
    parts.replicas.append("t", 0, batch(), 1, LATEST)
    waiter = Waiter(lambda: partition.log.high_watermark == 1)
    parts.replicas.fetch_purgatory.try_complete_else_watch(waiter, [TP])
    parts.logs.update_topic_config("t", {})
    assert not waiter.has_ended
    parts.replicas.update_high_watermark(partition)
    assert waiter.has_ended


def test_stop_answers_whoever_still_waits(parts: Parts) -> None:
    waiters = [Waiter(lambda: False) for _ in range(2)]
    parts.replicas.fetch_purgatory.try_complete_else_watch(waiters[0], ["x"])
    parts.replicas.produce_purgatory.try_complete_else_watch(waiters[1], ["x"])
    parts.replicas.stop()
    assert all(waiter.has_ended for waiter in waiters)
    assert parts.timers.delays_s == []


def test_following_begins_and_ends_with_leadership(parts: Parts) -> None:
    heard: list[tuple[str, TopicPartition]] = []
    parts.replicas.on_follow = lambda p: heard.append(("follow", p.topic_partition))
    parts.replicas.on_unfollow = lambda tp: heard.append(("unfollow", tp))
    parts.apply_leader_and_isr(partition_state(2, (1, 2)))
    parts.apply_leader_and_isr(partition_state(2, (1, 2), leader_epoch=1, partition_epoch=1))
    parts.apply_leader_and_isr(partition_state(1, (1, 2), leader_epoch=2, partition_epoch=2))
    parts.apply_leader_and_isr(partition_state(2, (1, 2), leader_epoch=3, partition_epoch=1))
    stop(parts, 2, delete=False)
    assert [what for what, _ in heard] == ["follow", "follow", "unfollow", "unfollow"]
    assert {where for _, where in heard} == {TP}


def isr_changes(parts: Parts) -> list[tuple[int, ...]]:
    """The ISRs that are proposed from now on."""
    proposed: list[tuple[int, ...]] = []
    parts.replicas.on_isr_change = lambda _, change: proposed.append(change.isr)
    return proposed


def test_a_follower_that_caught_up_is_proposed_for_the_isr_if_it_lives(parts: Parts) -> None:
    partition = parts.lead(replicas=(1, 2, 3))
    parts.announce("t")
    proposed = isr_changes(parts)
    parts.replicas.append("t", 0, batch(2), 1, LATEST)
    parts.fetch_as_follower(partition, 1)
    assert proposed == []
    parts.fetch_as_follower(partition, 2, broker_id=3)
    assert proposed == []
    parts.fetch_as_follower(partition, 2)
    assert proposed == [(1, 2)]
    assert partition.in_sync.pending is not None
    assert partition.in_sync.pending.isr_epochs == (-1, 72)


def test_a_follower_that_lags_too_long_is_proposed_to_leave(parts: Parts) -> None:
    partition = parts.lead(isr=(1, 2))
    proposed = isr_changes(parts)
    parts.replicas.append("t", 0, batch(), 1, LATEST)
    parts.clock.now_ms += LAG_MAX_MS
    parts.replicas.shrink_isrs()
    assert proposed == []
    parts.clock.now_ms += 1
    parts.replicas.shrink_isrs()
    assert proposed == [(1,)]
    assert partition.isr == {1, 2}


def two_dirs(tmp_path: Path) -> tuple[Parts, FaultyFileSystem]:
    """t-0 in directory a, t-1 in directory b."""
    disk = FaultyFileSystem(Disk(), prefix=str(tmp_path / "a"))
    parts = Parts(tmp_path / "a", tmp_path / "b", fs=disk)
    parts.apply_leader_and_isr(partition_state(), partition_state(partition=1))
    assert parts.replicas.get("t", 0).log.log_dir == str(tmp_path / "a")
    return parts, disk


def test_a_failed_directory_goes_offline_and_the_others_serve_on(tmp_path: Path) -> None:
    parts, disk = two_dirs(tmp_path)
    partition = parts.replicas.get("t", 0)
    heard: list[tuple[TopicPartition, bool]] = []
    parts.replicas.on_leadership = lambda p, leads: heard.append((p.topic_partition, leads))
    unfollowed: list[TopicPartition] = []
    parts.replicas.on_unfollow = unfollowed.append
    parts.replicas.on_fatal = lambda _: pytest.fail("a directory is left")
    waiter = Waiter(lambda: not partition.is_leader)
    parts.replicas.produce_purgatory.try_complete_else_watch(waiter, [TP])
    disk.fail_at, disk.for_good = disk.changes + 1, True
    with pytest.raises(ApiError) as refused:
        parts.replicas.append("t", 0, batch(), 1, LATEST)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (heard, unfollowed, waiter.has_ended) == ([(TP, False)], [TP], True)
    assert parts.replicas.offline == {TP}
    assert refusal(parts) is ErrorCode.KAFKA_STORAGE_ERROR
    again = parts.apply_leader_and_isr(
        partition_state(leader_epoch=1), partition_state(partition=1, leader_epoch=1)
    )
    assert list(again.partition_errors.values()) == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]
    assert stop(parts, 1, delete=True).partition_errors == {TP: ErrorCode.KAFKA_STORAGE_ERROR}
    assert parts.replicas.append("t", 1, batch(), 1, LATEST)[0].last_offset == 0


def test_without_a_directory_there_is_no_broker(tmp_path: Path) -> None:
    parts, _ = two_dirs(tmp_path)
    fatal: list[LogDirFailure] = []
    parts.replicas.on_fatal = fatal.append
    for name in ("a", "b", "b"):
        parts.replicas.log_dir_failed(LogDirFailure(str(tmp_path / name), "gone"))
    assert len(fatal) == 1
    assert parts.replicas.offline == {TP, TopicPartition("t", 1)}
    assert list(parts.replicas.all_partitions()) == []


def test_a_directory_that_fails_a_command_fails_that_row(tmp_path: Path) -> None:
    parts, disk = two_dirs(tmp_path)
    disk.fail_at, disk.for_good = disk.changes + 1, True
    rows = [partition_state(topic=name, partition=0) for name in ("u", "v")]
    codes = set(parts.apply_leader_and_isr(*rows).partition_errors.values())
    assert codes == {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE}
    assert parts.logs.live_log_dirs == [str(tmp_path / "b")]


def test_a_disk_that_fails_when_all_is_made_durable_fails_its_rows_alone(tmp_path: Path) -> None:
    parts, disk = two_dirs(tmp_path)
    heard: list[TopicPartition] = []
    parts.replicas.on_leadership = lambda p, leads: heard.append(p.topic_partition)
    commit = parts.logs._pool.durable.commit

    def fail(directory: str) -> None:
        disk.fail_at, disk.for_good = disk.changes + 1, True
        commit(directory)

    parts.logs._pool.durable.commit = fail  # type: ignore[method-assign]
    codes = parts.apply_leader_and_isr(
        partition_state(topic="u"), partition_state(topic="v")
    ).partition_errors
    assert codes == {
        TopicPartition("u", 0): ErrorCode.KAFKA_STORAGE_ERROR,
        TopicPartition("v", 0): ErrorCode.NONE,
    }
    # Of the lost directory: its leader stepped down, and the new one never began.
    assert heard == [TP, TopicPartition("u", 0), TopicPartition("v", 0)]
    assert parts.replicas.get("v", 0).is_leader
    assert refusal(parts, "u") is ErrorCode.KAFKA_STORAGE_ERROR


class Finder(Waiter):
    """Finds that the directory a failed when it is answered, as a fetch of several partitions."""

    __slots__ = ("parts",)

    def __init__(self, parts: Parts) -> None:
        super().__init__(lambda: not parts.replicas.get("t", 0).is_leader)
        self.parts = parts
        parts.replicas.fetch_purgatory.watch(self, [TP])

    def on_complete(self) -> None:
        super().on_complete()
        [lost] = [path for path in self.parts.logs.live_log_dirs if path.endswith("/a")]
        self.parts.replicas.log_dir_failed(LogDirFailure(lost, "unreadable"))


def test_what_fails_while_a_command_is_announced_is_neither_led_nor_followed(
    tmp_path: Path,
) -> None:
    """A coordinator would have led for good, and a fetcher written into the directory."""
    parts, _ = two_dirs(tmp_path)
    parts.lead(index=2)
    heard: list[tuple[int, bool]] = []
    parts.replicas.on_leadership = lambda p, leads: heard.append((p.topic_partition[1], leads))
    followed: list[Partition] = []
    parts.replicas.on_follow = followed.append
    Finder(parts)
    states = [
        partition_state(partition=index, leader=leader, isr=(1, 2), leader_epoch=1)
        for index, leader in ((0, 2), (1, 1), (2, 1))
    ]
    codes = parts.apply_leader_and_isr(*states).partition_errors
    offline = ErrorCode.KAFKA_STORAGE_ERROR
    assert list(codes.values()) == [offline, ErrorCode.NONE, offline]
    assert (heard, followed) == ([(2, False), (1, True)], [])


@pytest.mark.parametrize("delete", [True, False])
def test_a_replica_that_fails_while_it_is_stopped_is_offline(tmp_path: Path, delete: bool) -> None:
    parts, _ = two_dirs(tmp_path)
    finder = Finder(parts)
    assert stop(parts, 0, delete).partition_errors == {TP: ErrorCode.KAFKA_STORAGE_ERROR}
    assert finder.has_ended
    assert refusal(parts) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_partition_without_a_topic_id_takes_the_one_it_is_told(
    parts: Parts, tmp_path: Path
) -> None:
    partition = parts.lead(topic_id=ZERO_UUID)
    assert not (tmp_path / "t-0" / "partition.metadata").exists()
    parts.replicas.on_leadership = lambda *_: pytest.fail("the leader epoch is the same")
    assert parts.apply_leader_and_isr(partition_state()).partition_errors == {TP: ErrorCode.NONE}
    assert partition.topic_id == partition.log.topic_id == partition_state().topic_id
    assert (tmp_path / "t-0" / "partition.metadata").exists()
    assert parts.apply_leader_and_isr(partition_state()).partition_errors == {
        TP: ErrorCode.STALE_CONTROLLER_EPOCH
    }
    other = partition_state(leader_epoch=1, topic_id=Uuid(bytes(15) + b"\7"))
    assert parts.apply_leader_and_isr(other).partition_errors == {
        TP: ErrorCode.INCONSISTENT_TOPIC_ID
    }


def test_a_controller_without_topic_ids_is_obeyed(parts: Parts) -> None:
    partition = parts.lead()
    again = partition_state(leader_epoch=1, topic_id=ZERO_UUID)
    assert parts.apply_leader_and_isr(again).partition_errors == {TP: ErrorCode.NONE}
    assert partition.topic_id == partition_state().topic_id
