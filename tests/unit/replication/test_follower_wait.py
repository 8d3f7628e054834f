"""News for a follower's session, partition by partition, and when the wait is ready."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.uuid import Uuid
from kafkapy.replication.fetch_session import FetchPartition, FetchSession
from kafkapy.replication.follower_wait import ChangeKind, FollowerWait
from kafkapy.replication.partition import Partition
from tests.harness.storage.partitions import (
    TOPIC_ID,
    batch,
    log_manager,
    make_partition,
    partition_state,
)

FOLLOWER = 2


class Scene:
    """Two led partitions with two records each, and a follower that has them."""

    def __init__(self, directory: Path) -> None:
        manager = log_manager(directory)
        self.partitions = [make_partition(manager, index) for index in range(2)]
        self.session = FetchSession(7, True, True, 0)
        self.wanted: list[FetchPartition] = []
        for index, partition in enumerate(self.partitions):
            partition.make_leader(partition_state(isr=(1, FOLLOWER), partition=index), 0)
            append(partition, 2)
            wanted = FetchPartition("t", TOPIC_ID, index, 2, 1 << 20, 0, 0, 0)
            wanted.sent_high_watermark = wanted.sent_log_start_offset = 0
            self.session.partitions[TOPIC_ID, index] = wanted
            self.wanted.append(wanted)
        self.answers = 0
        self.wait = FollowerWait(self.session, self.partitions, FOLLOWER, self._answer)

    def _answer(self) -> None:
        self.answers += 1


def append(partition: Partition, count: int = 1) -> None:
    partition.append_as_leader(batch(count), 1, 0, 0, 9)


def told_of(scene: Scene) -> list[FetchPartition]:
    return [each.wanted for each in scene.wait.changes()]


def kinds(scene: Scene) -> list[ChangeKind]:
    return [each.kind for each in scene.wait.changes()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_follower_that_has_all(scene: Scene) -> None:
    assert scene.wait.changes() == []
    assert not scene.wait.ready()


def test_records(scene: Scene) -> None:
    append(scene.partitions[1])
    assert kinds(scene) == [ChangeKind.RECORDS]
    assert told_of(scene) == [scene.wanted[1]]
    assert [scene.wait.ready_at(position) for position in range(2)] == [False, True]
    assert scene.wait.ready()


def test_offsets_are_told_but_wait_for_records(scene: Scene) -> None:
    scene.partitions[0].log.update_high_watermark(2)
    scene.partitions[1].log.update_high_watermark(2)
    scene.partitions[1].log.maybe_increment_log_start_offset(1, "a test")
    scene.wanted[1].sent_high_watermark = 2
    assert kinds(scene) == [ChangeKind.OFFSETS] * 2
    assert told_of(scene) == scene.wanted
    assert not scene.wait.ready()


def test_whoever_has_not_reached_the_present_epoch_yet_goes_on(scene: Scene) -> None:
    """No record of the epoch that has just begun is there: there is nothing that could part."""
    for index, partition in enumerate(scene.partitions):
        partition.make_leader(
            partition_state(isr=(1, FOLLOWER), leader_epoch=1, partition_epoch=1, partition=index),
            0,
        )
        scene.wanted[index].current_leader_epoch = 1
    assert kinds(scene) == []
    append(scene.partitions[0])
    assert kinds(scene) == [ChangeKind.RECORDS]


def change(scene: Scene, how: str) -> None:
    partition, wanted = scene.partitions[0], scene.wanted[0]
    match how:
        case "another leader epoch":
            wanted.current_leader_epoch = 1
        case "no leader":
            partition.is_leader = False
        case "ahead":
            wanted.fetch_offset = 3
        case "behind what is left":
            partition.log.update_high_watermark(2)
            partition.log.maybe_increment_log_start_offset(2, "a test")
            wanted.fetch_offset = 1
        case "an unknown epoch":
            wanted.last_fetched_epoch = 1
        case "no replica":
            del partition.remote_replicas[FOLLOWER]


@pytest.mark.parametrize(
    "how",
    [
        "another leader epoch",
        "no leader",
        "ahead",
        "behind what is left",
        "an unknown epoch",
        "no replica",
    ],
)
def test_what_does_not_go_on_is_news_and_takes_the_general_path(scene: Scene, how: str) -> None:
    change(scene, how)
    assert kinds(scene) == [ChangeKind.REFUSAL]
    assert told_of(scene) == scene.wanted[:1]
    assert scene.wait.ready_at(0)
    assert not scene.wait.ready_at(1)


def test_logs_that_part_take_the_general_path(scene: Scene) -> None:
    partition = scene.partitions[0]
    partition.log.truncate_to(1)
    partition.make_leader(partition_state(isr=(1, FOLLOWER), leader_epoch=1, partition_epoch=1), 0)
    append(partition, 2)
    scene.wanted[0].current_leader_epoch = 1
    assert kinds(scene) == [ChangeKind.REFUSAL]


def test_the_leader_calls_its_follower(scene: Scene) -> None:
    assert scene.wait.ready_at(len(scene.partitions))
    scene.wait.on_complete()
    assert scene.answers == 1


def test_a_session_with_other_partitions_is_another(scene: Scene) -> None:
    assert scene.wait.belongs_to(scene.session)
    assert not scene.wait.belongs_to(FetchSession(7, True, True, 0))
    scene.session.partitions[Uuid(bytes(16)), 0] = scene.wanted[0]
    scene.session.change_count += 1
    assert not scene.wait.belongs_to(scene.session)


def test_news_take_turns_as_the_session_has_them(scene: Scene) -> None:
    for partition in scene.partitions:
        append(partition)
    scene.session.move_to_end(scene.wanted[0])
    assert told_of(scene) == scene.wanted
    assert scene.wait.in_session_order(scene.wait.changes()) == scene.wanted[::-1]
    assert scene.wait.in_session_order(scene.wait.changes()[:1]) == scene.wanted[:1]


def test_a_follower_that_was_there_before_has_caught_up_again(scene: Scene) -> None:
    assert scene.wait.record_positions(50) == [(partition, 0) for partition in scene.partitions]
    assert [partition.log.high_watermark for partition in scene.partitions] == [2, 2]
    assert scene.wait.record_positions(60) == []
    replica = scene.partitions[0].remote_replicas[FOLLOWER]
    assert (replica.last_caught_up_ms, replica.last_fetch_ms) == (60, 60)
    assert replica.last_fetch_leader_end_offset == 2


@pytest.mark.parametrize("what", ["records", "log start", "out of sync", "not committed"])
def test_what_a_fetch_may_change_is_looked_at(scene: Scene, what: str) -> None:
    scene.wait.record_positions(50)
    partition, wanted = scene.partitions[0], scene.wanted[0]
    match what:
        case "records":
            append(partition)
            wanted.fetch_offset = 3
        case "log start":
            wanted.follower_log_start_offset = 1
        case "out of sync":
            partition.in_sync.commit((1,))
        case "not committed":
            append(partition)
    [(found, before)] = scene.wait.record_positions(60)
    assert found is partition
    assert before == 2
    assert partition.log.high_watermark == {"records": 3}.get(what, 2)
    assert partition.remote_replicas[FOLLOWER].log_start_offset == wanted.follower_log_start_offset
