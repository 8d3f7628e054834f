"""Leader and ISR follow the controller; the high watermark follows the ISR."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.cluster_state import RECOVERED, RECOVERING, LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import READ_UNCOMMITTED, Partition
from kafkapy.storage.log_manager import LogManager
from tests.harness.storage.partitions import LAG_MAX_MS, batch, log_manager, make_partition, told

NOW = 1_000_000


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    return log_manager(tmp_path)


@pytest.fixture
def partition(manager: LogManager) -> Partition:
    return make_partition(manager)


def wanted(offset: int = 0, log_start: int = 0) -> FetchPartition:
    return FetchPartition("t", ZERO_UUID, 0, offset, 1 << 20, -1, -1, log_start)


def produce(partition: Partition, count: int = 1, acks: int = -1) -> int:
    return partition.append_as_leader(batch(count), acks, NOW, NOW, 11).last_offset


def read(partition: Partition, replica_id: int, row: FetchPartition) -> None:
    partition.read(row, replica_id, READ_UNCOMMITTED, 1 << 20, True, NOW)


def test_the_high_watermark_waits_for_every_member_of_the_isr(partition: Partition) -> None:
    partition.make_leader(told(isr=(1, 2, 3)), NOW)
    produce(partition, 10)
    assert partition.log.high_watermark == 0
    read(partition, 2, wanted(10))
    assert partition.log.high_watermark == 0
    read(partition, 3, wanted(4))
    assert partition.log.high_watermark == 4
    read(partition, 3, wanted(10))
    assert partition.log.high_watermark == 10


def test_below_the_minimum_the_high_watermark_stands_still(manager: LogManager) -> None:
    partition = make_partition(manager, overrides={"min.insync.replicas": "2"})
    partition.make_leader(told(isr=(1,), replicas=(1, 2)), NOW)
    produce(partition, acks=1)
    assert partition.log.high_watermark == 0


def test_a_new_epoch_is_in_the_epoch_cache_before_its_first_record(partition: Partition) -> None:
    partition.make_leader(told(leader_epoch=0), NOW)
    produce(partition, 5)
    partition.make_leader(told(leader_epoch=3, partition_epoch=1), NOW)
    assert partition.leader_epoch_start_offset == 5
    assert partition.log.end_offset_for_epoch(0) == (0, 5)
    assert partition.log.end_offset_for_epoch(3) == (3, 5)


def test_an_older_partition_epoch_changes_nothing(partition: Partition) -> None:
    partition.make_leader(told(leader_epoch=2, partition_epoch=5), NOW)
    assert not partition.make_leader(told(isr=(1, 2), leader_epoch=3, partition_epoch=4), NOW)
    assert (partition.leader_epoch, partition.isr) == (2, {1})


def test_under_replication_is_what_metrics_say(partition: Partition) -> None:
    partition.make_leader(told(isr=(1,), replicas=(1, 2)), NOW)
    assert partition.is_under_replicated
    partition.make_leader(told(isr=(1, 2), leader_epoch=1, partition_epoch=1), NOW)
    assert not partition.is_under_replicated


def test_a_dead_replica_that_had_caught_up_does_not_hold_the_high_watermark(
    partition: Partition,
) -> None:
    partition.make_leader(told(isr=(1,), replicas=(1, 2)), NOW)
    read(partition, 2, wanted(0))
    produce(partition)
    assert partition.log.high_watermark == 0, "it may join the ISR at any time"
    partition.is_live = lambda broker_id: broker_id != 2
    assert partition.propose_expansion(2) is None
    assert partition.maybe_increment_high_watermark(NOW)
    assert partition.log.high_watermark == 1


def test_a_new_leaders_high_watermark_stays_until_its_followers_have_fetched(
    partition: Partition,
) -> None:
    partition.make_leader(told(isr=(1, 2)), NOW)
    produce(partition, 5)
    read(partition, 2, wanted(3))
    partition.make_follower(told(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1))
    partition.make_leader(told(isr=(1, 2), leader_epoch=2, partition_epoch=2), NOW)
    assert partition.log.high_watermark == 3
    assert partition.remote_replicas[2].log_end_offset == -1
    read(partition, 2, wanted(4))
    assert partition.log.high_watermark == 4


def test_a_late_answer_to_a_former_leader_moves_no_high_watermark(partition: Partition) -> None:
    """Its log may end in records that the new leader does not have (found by the simulator)."""
    partition.make_leader(told(isr=(1, 2)), NOW)
    produce(partition, 5)
    change = partition.propose_shrinking(NOW + LAG_MAX_MS + 1)
    assert change is not None
    partition.make_follower(told(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1))
    partition.on_isr_answer(change, ErrorCode.FENCED_LEADER_EPOCH, None, NOW)
    assert partition.log.high_watermark == 0


def test_a_leader_that_is_elected_again_keeps_what_it_knows_of_its_followers(
    partition: Partition,
) -> None:
    partition.make_leader(told(isr=(1, 2, 3)), NOW)
    produce(partition, 5)
    read(partition, 2, wanted(5))
    partition.make_leader(
        told(isr=(1, 2), replicas=(1, 2, 3), leader_epoch=1, partition_epoch=1), NOW
    )
    assert partition.log.high_watermark == 5, "3 is out of the ISR: nobody is waited for"


def test_the_low_watermark_is_the_least_log_start_of_the_live_replicas(
    partition: Partition,
) -> None:
    partition.make_leader(told(isr=(1, 2, 3)), NOW)
    for _ in range(3):
        produce(partition)
    for broker_id in (2, 3):
        read(partition, broker_id, wanted(3))
    partition.delete_records(2)
    assert partition.low_watermark == 0
    read(partition, 2, wanted(3, log_start=2))
    assert partition.low_watermark == 0
    partition.is_live = lambda broker_id: broker_id != 3
    assert partition.low_watermark == 2


def test_a_replica_that_never_fetched_leaves_the_low_watermark_unknown(
    partition: Partition,
) -> None:
    partition.make_leader(told(isr=(1,), replicas=(1, 2)), NOW)
    assert partition.low_watermark == -1


def test_after_an_unclean_election_the_next_change_of_the_isr_says_recovered(
    partition: Partition,
) -> None:
    row = told(isr=(1,), replicas=(1, 2), leader_epoch=3, partition_epoch=7)
    row.state = LeaderAndIsr(1, 3, (1,), 7, 1, RECOVERING)
    partition.make_leader(row, NOW)
    assert partition.leader_recovery_state == RECOVERED
    read(partition, 2, wanted(0))
    change = partition.propose_expansion(2)
    assert change is not None
    assert (change.isr, change.leader_recovery_state) == ((1, 2), RECOVERED)
    state = LeaderAndIsr(1, 3, (1, 2), 8, 1, RECOVERED)
    partition.on_isr_answer(change, ErrorCode.NONE, state, NOW)
    assert partition.isr == {1, 2}


def test_a_follower_knows_that_its_leader_recovers(partition: Partition) -> None:
    row = told(leader=2, isr=(2,), replicas=(1, 2))
    row.state = LeaderAndIsr(2, 0, (2,), 0, 1, RECOVERING)
    partition.make_follower(row)
    assert partition.leader_recovery_state == RECOVERING


def test_a_follower_below_the_start_of_the_leader_epoch_is_not_taken_in(
    partition: Partition,
) -> None:
    """It may have records of an older epoch that this leader never had (KAFKA-7128)."""
    partition.make_leader(told(isr=(1, 2), replicas=(1, 2, 3)), NOW)
    produce(partition, 4)
    partition.make_leader(
        told(isr=(1, 2), replicas=(1, 2, 3), leader_epoch=1, partition_epoch=1), NOW
    )
    read(partition, 3, wanted(2))
    assert partition.log.high_watermark < 4
    assert partition.propose_expansion(3) is None
    read(partition, 3, wanted(4))
    assert partition.propose_expansion(3) is not None


def test_shrinking_waits_for_the_whole_lag_time(partition: Partition) -> None:
    partition.make_leader(told(isr=(1, 2)), NOW)
    produce(partition)
    assert partition.propose_shrinking(NOW + LAG_MAX_MS) is None
    change = partition.propose_shrinking(NOW + LAG_MAX_MS + 1)
    assert change is not None
    assert change.isr == (1,)
