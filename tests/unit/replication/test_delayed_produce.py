"""acks=all answers when the high watermark has passed the batch, or when it never will."""

from __future__ import annotations

from pathlib import Path

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.replication.delayed_produce import DelayedProduce, ProduceWait
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import Purgatory
from tests.harness.storage.partitions import batch, log_manager, make_partition, partition_state

NOW = 1_000_000


def replicated_up_to(partition: Partition, offset: int) -> None:
    row = FetchPartition("t", ZERO_UUID, 0, offset, 1 << 20, follower_log_start_offset=0)
    partition.read(row, 2, 0, 1 << 20, True, NOW)


def park(tmp_path: Path, **overrides: str) -> tuple[Partition, ProduceWait, Purgatory, list[str]]:
    partition = make_partition(
        log_manager(tmp_path), overrides={k.replace("_", "."): v for k, v in overrides.items()}
    )
    partition.make_leader(partition_state(isr=(1, 2)), NOW)
    partition.append_as_leader(batch(3), -1, NOW, NOW, 11)
    wait = ProduceWait(partition, 3)
    answers: list[str] = []
    purgatory = Purgatory("Produce")
    operation = DelayedProduce(NOW + 100, [wait], lambda: answers.append(wait.error.name))
    assert not purgatory.try_complete_else_watch(operation, ["t-0"])
    return partition, wait, purgatory, answers


def test_it_answers_when_the_last_record_is_replicated(tmp_path: Path) -> None:
    partition, _, purgatory, answers = park(tmp_path)
    replicated_up_to(partition, 2)
    purgatory.check("t-0")
    assert answers == []
    replicated_up_to(partition, 3)
    purgatory.check("t-0")
    assert answers == ["NONE"]


def test_a_timeout_is_said_as_such(tmp_path: Path) -> None:
    _, _, purgatory, answers = park(tmp_path)
    purgatory.expire(NOW + 100)
    assert answers == ["REQUEST_TIMED_OUT"]


def test_losing_the_leadership_ends_the_wait(tmp_path: Path) -> None:
    partition, _, purgatory, answers = park(tmp_path)
    partition.make_follower(
        partition_state(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    )
    purgatory.check("t-0")
    assert answers == ["NOT_LEADER_OR_FOLLOWER"]


def test_leading_again_does_not_make_up_for_records_that_following_has_cut(tmp_path: Path) -> None:
    """Before it is watched, a wait may miss both changes: another row takes long to prepare."""
    partition, wait, _, _ = park(tmp_path)
    partition.make_follower(
        partition_state(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    )
    partition.log.truncate_to(0)
    partition.make_leader(partition_state(isr=(1,), leader_epoch=2, partition_epoch=2), NOW)
    partition.append_as_leader(batch(3), 1, NOW, NOW, 11)
    assert partition.log.high_watermark == 3
    wait.update_status()
    assert wait.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_later_epoch_of_the_same_leader_goes_on_waiting(tmp_path: Path) -> None:
    """The controller elects the leader again whenever it takes a dead broker out of the ISR."""
    partition, _, purgatory, answers = park(tmp_path)
    partition.make_leader(partition_state(isr=(1, 2), leader_epoch=2, partition_epoch=2), NOW)
    purgatory.check("t-0")
    assert answers == []
    replicated_up_to(partition, 3)
    purgatory.check("t-0")
    assert answers == ["NONE"]


def test_an_isr_that_shrank_meanwhile_is_said_after_the_append(tmp_path: Path) -> None:
    partition, wait, _, _ = park(tmp_path, min_insync_replicas="2")
    replicated_up_to(partition, 3)
    partition.in_sync.commit((1,))
    wait.update_status()
    assert wait.error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
