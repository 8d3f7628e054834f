"""A partition leads or follows as told, and lets nobody read or acknowledge what is not
replicated."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.record.batch_header import iter_headers
from kafkapy.replication.fetch_session import FetchPartition, FetchResult
from kafkapy.replication.partition import CONSUMER, READ_UNCOMMITTED, Partition
from kafkapy.storage.log_manager import LogManager
from tests.harness.storage.partitions import batch, log_manager, make_partition, told

NOW = 1_000_000


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    return log_manager(tmp_path)


@pytest.fixture
def partition(manager: LogManager) -> Partition:
    return make_partition(manager)


def wanted(offset: int = 0, epoch: int = -1, last_epoch: int = -1) -> FetchPartition:
    return FetchPartition("t", ZERO_UUID, 0, offset, 1 << 20, epoch, last_epoch, 0)


def produce(partition: Partition, count: int = 1, acks: int = -1) -> int:
    return partition.append_as_leader(batch(count), acks, NOW, NOW, 11).last_offset


def read(
    partition: Partition, replica_id: int = CONSUMER, row: FetchPartition | None = None
) -> FetchResult:
    return partition.read(row or wanted(), replica_id, READ_UNCOMMITTED, 1 << 20, True, NOW)


def refusal(code: ErrorCode):  # type: ignore[no-untyped-def]
    return pytest.raises(ApiError, match=code.name)


def test_a_lone_leaders_records_are_committed_at_once(partition: Partition) -> None:
    assert partition.make_leader(told(), NOW)
    assert produce(partition, 3) == 2
    assert partition.log.high_watermark == 3
    assert read(partition).size_bytes > 0


def test_a_partition_that_does_not_lead_refuses_both(partition: Partition) -> None:
    partition.make_follower(told(leader=2, isr=(1, 2)))
    with pytest.raises(ApiError) as produced:
        produce(partition)
    with pytest.raises(ApiError) as fetched:
        read(partition)
    assert produced.value.code is fetched.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_reads_to_the_log_end(partition: Partition) -> None:
    partition.make_leader(told(isr=(1, 2)), NOW)
    produce(partition, 2)
    assert read(partition, 2).size_bytes > 0


def test_a_broker_that_is_no_replica_may_not_fetch_as_one(partition: Partition) -> None:
    partition.make_leader(told(isr=(1, 2)), NOW)
    with refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        read(partition, 9)
    with refusal(ErrorCode.UNKNOWN_LEADER_EPOCH):
        read(partition, 9, wanted(epoch=0))


def test_acks_all_needs_min_insync_replicas_before_it_appends(manager: LogManager) -> None:
    partition = make_partition(manager, overrides={"min.insync.replicas": "2"})
    partition.make_leader(told(isr=(1,), replicas=(1, 2, 3)), NOW)
    with pytest.raises(ApiError) as refused:
        produce(partition)
    assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    assert "t-0" in refused.value.message
    assert partition.log.log_end_offset == 0
    assert produce(partition, acks=1) == 0


def test_the_minimum_is_never_more_than_there_are_replicas(manager: LogManager) -> None:
    partition = make_partition(manager, overrides={"min.insync.replicas": "2"})
    partition.make_leader(told(), NOW)
    assert produce(partition) == 0
    assert partition.log.high_watermark == 1


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_another_leader_epoch_is_fenced(partition: Partition, epoch: int, code: ErrorCode) -> None:
    partition.make_leader(told(leader_epoch=2), NOW)
    with refusal(code):
        read(partition, row=wanted(epoch=epoch))
    assert read(partition, row=wanted(epoch=2)).error == 0


def test_a_follower_of_a_shorter_epoch_is_told_where_its_log_parts(partition: Partition) -> None:
    partition.make_leader(told(isr=(1, 2), leader_epoch=0), NOW)
    produce(partition, 5)
    partition.make_leader(told(isr=(1, 2), leader_epoch=2, partition_epoch=1), NOW)
    produce(partition, 5)
    result = read(partition, 2, wanted(8, epoch=2, last_epoch=1))
    assert result.diverging_epoch == (0, 5)
    assert result.size_bytes == 0
    # A follower that must truncate says nothing yet of what it has.
    assert partition.remote_replicas[2].log_end_offset == -1


def test_offsets_outside_the_log_are_out_of_range(partition: Partition) -> None:
    partition.make_leader(told(), NOW)
    produce(partition, 2)
    for offset in (-5, 3):
        with pytest.raises(ApiError) as refused:
            read(partition, row=wanted(offset))
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_deleting_records_moves_the_log_start(partition: Partition) -> None:
    partition.make_leader(told(), NOW)
    for _ in range(3):
        produce(partition)
    assert partition.delete_records(2) == 2
    assert partition.delete_records(-1) == 3
    with pytest.raises(ApiError) as refused:
        partition.delete_records(4)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(ApiError):
        read(partition)


def test_records_of_a_compacted_topic_are_not_deleted(manager: LogManager) -> None:
    partition = make_partition(manager, overrides={"cleanup.policy": "compact"})
    partition.make_leader(told(), NOW)
    with pytest.raises(ApiError) as refused:
        partition.delete_records(-1)
    assert refused.value.code is ErrorCode.POLICY_VIOLATION


def test_consumers_that_know_how_may_read_a_followers_committed_records(
    partition: Partition,
) -> None:
    partition.make_leader(told(isr=(1, 2)), NOW)
    produce(partition, 2)
    produce(partition, 1)
    read(partition, 2, wanted(2))
    partition.make_follower(told(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1))

    def consume(offset: int, **how: bool) -> FetchResult:
        return partition.read(wanted(offset), CONSUMER, 0, 1 << 20, True, NOW, **how)

    with pytest.raises(ApiError) as refused:
        consume(0)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    result = consume(0, leader_only=False)
    assert [header.base_offset for _, header in iter_headers(result.records)] == [0]
    assert result.high_watermark == 2
    assert consume(3, leader_only=False).size_bytes == 0, "not committed as far as it knows"
    with pytest.raises(ApiError) as refused:
        consume(4, leader_only=False)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_reader_of_a_follower_is_fenced_by_leader_epoch_all_the_same(
    partition: Partition,
) -> None:
    partition.make_follower(told(leader=2, isr=(1, 2), leader_epoch=4))
    for epoch, code in ((3, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        with refusal(code):
            partition.read(wanted(0, epoch), CONSUMER, 0, 100, True, NOW, leader_only=False)


def test_a_completed_fetch_does_not_count_as_another_one(partition: Partition) -> None:
    partition.make_leader(told(isr=(1, 2)), NOW)
    read(partition, 2, wanted(0))
    later = NOW + 500
    partition.read(wanted(0), 2, 0, 100, True, later, updates_follower=False)
    assert partition.remote_replicas[2].last_fetch_ms == NOW


def test_consumers_may_be_sent_to_replicas_in_sync_that_have_the_offset(
    partition: Partition,
) -> None:
    partition.make_leader(told(isr=(1, 2, 3), replicas=(1, 2, 3, 4)), NOW)
    produce(partition, 5)
    for broker_id, end in ((2, 5), (3, 3), (4, 5)):
        read(partition, broker_id, wanted(end))
    assert [r.broker_id for r in partition.read_replicas(5)] == [2]
    assert [r.broker_id for r in partition.read_replicas(3)] == [2, 3]


def test_a_consumer_sees_nothing_that_is_not_committed(partition: Partition) -> None:
    partition.make_leader(told(isr=(1, 2)), NOW)
    produce(partition, 10)
    assert read(partition).size_bytes == 0
