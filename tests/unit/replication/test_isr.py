"""The ISR changes only with the controller's word; until then both old and new members count."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.isr import Answered, IsrChange
from kafkapy.replication.partition import Partition
from tests.harness.storage.partitions import (
    LAG_MAX_MS,
    TOPIC_ID,
    batch,
    log_manager,
    make_partition,
    told,
)

NOW = 1_000_000


def leader(tmp_path: Path, isr: tuple[int, ...]) -> Partition:
    partition = make_partition(log_manager(tmp_path))
    partition.make_leader(told(isr=isr, replicas=(1, 2, 3), partition_epoch=4), NOW)
    return partition


def follower_at(partition: Partition, broker_id: int, offset: int, now_ms: int = NOW) -> None:
    row = FetchPartition("t", ZERO_UUID, 0, offset, 1 << 20, follower_log_start_offset=0)
    partition.read(row, broker_id, 0, 1 << 20, True, now_ms)


def answer(
    partition: Partition,
    change: IsrChange,
    error: ErrorCode = ErrorCode.NONE,
    epoch: int = 5,
    leader_epoch: int = 0,
) -> Answered:
    state = None
    if error is ErrorCode.NONE:
        state = LeaderAndIsr(1, leader_epoch, change.isr, epoch, 1)
    return partition.on_isr_answer(change, error, state, NOW)


def produce(partition: Partition) -> None:
    partition.append_as_leader(batch(), 1, NOW, NOW, 11)


def test_a_caught_up_follower_is_proposed_with_both_epochs_in_assignment_order(
    tmp_path: Path,
) -> None:
    partition = leader(tmp_path, (3, 1))
    follower_at(partition, 2, 0)
    change = partition.propose_expansion(2)
    assert change == IsrChange(partition.topic_partition, TOPIC_ID, 0, 4, (1, 2, 3))
    assert partition.isr == {1, 3}
    assert answer(partition, change) is Answered.COMMITTED
    assert (partition.isr, partition.partition_epoch) == ({1, 2, 3}, 5)


def test_a_follower_below_the_high_watermark_is_not_proposed(tmp_path: Path) -> None:
    partition = leader(tmp_path, (1,))
    produce(partition)
    follower_at(partition, 2, 0, NOW - 10 * LAG_MAX_MS)
    assert partition.log.high_watermark == 1
    assert partition.propose_expansion(2) is None
    follower_at(partition, 2, 1)
    assert partition.propose_expansion(2) is not None


def test_a_pending_addition_already_counts_for_the_high_watermark(tmp_path: Path) -> None:
    partition = leader(tmp_path, (1,))
    follower_at(partition, 2, 0, NOW - 10 * LAG_MAX_MS)
    partition.remote_replicas[2].last_caught_up_ms = 0
    assert partition.propose_expansion(2) is not None
    produce(partition)
    assert partition.log.high_watermark == 0
    follower_at(partition, 2, 1)
    assert partition.log.high_watermark == 1


def test_a_pending_removal_still_counts_for_the_high_watermark(tmp_path: Path) -> None:
    partition = leader(tmp_path, (1, 2))
    produce(partition)
    change = partition.propose_shrinking(NOW + LAG_MAX_MS + 1)
    assert change is not None
    assert change.isr == (1,)
    partition.maybe_increment_high_watermark(NOW + LAG_MAX_MS + 1)
    assert partition.log.high_watermark == 0
    state = LeaderAndIsr(1, 0, (1,), 5, 1)
    partition.on_isr_answer(change, ErrorCode.NONE, state, NOW + LAG_MAX_MS + 1)
    assert partition.log.high_watermark == 1


def test_members_that_keep_up_are_not_left_out(tmp_path: Path) -> None:
    partition = leader(tmp_path, (1, 2, 3))
    produce(partition)
    late = NOW + LAG_MAX_MS + 1
    follower_at(partition, 2, 1, late)
    change = partition.propose_shrinking(late)
    assert change is not None
    assert change.isr == (1, 2)


def test_one_change_at_a_time(tmp_path: Path) -> None:
    partition = leader(tmp_path, (1,))
    follower_at(partition, 2, 0)
    follower_at(partition, 3, 0)
    assert partition.propose_expansion(2) is not None
    assert partition.propose_expansion(3) is None
    assert partition.propose_shrinking(NOW + 10 * LAG_MAX_MS) is None


@pytest.mark.parametrize(
    ("error", "outcome", "still_pending"),
    [
        (ErrorCode.OPERATION_NOT_ATTEMPTED, Answered.DROPPED, False),
        (ErrorCode.INELIGIBLE_REPLICA, Answered.DROPPED, False),
        (ErrorCode.FENCED_LEADER_EPOCH, Answered.WAITS_FOR_CONTROLLER, True),
        (ErrorCode.INVALID_UPDATE_VERSION, Answered.WAITS_FOR_CONTROLLER, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, Answered.WAITS_FOR_CONTROLLER, True),
        (ErrorCode.NOT_CONTROLLER, Answered.AGAIN, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Answered.AGAIN, True),
    ],
)
def test_each_refusal_has_its_consequence(
    tmp_path: Path, error: ErrorCode, outcome: Answered, still_pending: bool
) -> None:
    partition = leader(tmp_path, (1,))
    follower_at(partition, 2, 0)
    change = partition.propose_expansion(2)
    assert change is not None
    assert answer(partition, change, error) is outcome
    assert partition.isr == {1}
    assert (partition.in_sync.pending is change) is still_pending
    assert partition.in_sync.maximal == ({1, 2} if still_pending else {1})


def test_an_answer_of_another_time_is_not_applied(tmp_path: Path) -> None:
    partition = leader(tmp_path, (1,))
    follower_at(partition, 2, 0)
    change = partition.propose_expansion(2)
    assert change is not None
    assert answer(partition, change, epoch=3) is Answered.WAITS_FOR_CONTROLLER
    assert answer(partition, change, leader_epoch=1) is Answered.WAITS_FOR_CONTROLLER
    partition.make_leader(told(isr=(1, 3), replicas=(1, 2, 3), partition_epoch=6), NOW)
    assert partition.in_sync.pending is None
    assert answer(partition, change) is Answered.DROPPED
    assert partition.isr == {1, 3}
