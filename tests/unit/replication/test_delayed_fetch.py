"""A parked fetch answers when there are enough bytes, or when the client must learn of a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.replication.delayed_fetch import DelayedFetch, FetchParams, FetchWait
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import Partition
from kafkapy.storage.log_offset import LogOffsetMetadata
from tests.harness.storage.partitions import batch, log_manager, make_partition, partition_state

NOW = 1_000_000
BATCH_BYTES = len(batch())


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    made = make_partition(log_manager(tmp_path))
    made.make_leader(partition_state(), NOW)
    return made


def park(partition: Partition, min_bytes: int, max_bytes: int = 1 << 20) -> DelayedFetch:
    end = partition.log.log_end_offset
    row = FetchPartition("t", ZERO_UUID, 0, end, max_bytes)
    params = FetchParams(-1, 500, min_bytes, 1 << 20, 0, 17)
    wait = FetchWait(partition, row, partition.log.offset_metadata(end))
    return DelayedFetch(NOW + 500, params, [wait], lambda: None)


def produce(partition: Partition) -> None:
    partition.append_as_leader(batch(), -1, NOW, NOW, 11)


def test_it_waits_for_min_bytes(partition: Partition) -> None:
    produce(partition)
    fetch = park(partition, 2 * BATCH_BYTES)
    assert not fetch.ready()
    produce(partition)
    assert not fetch.ready()
    produce(partition)
    assert fetch.ready()


def test_no_more_than_the_partitions_limit_counts(partition: Partition) -> None:
    fetch = park(partition, 2 * BATCH_BYTES, max_bytes=BATCH_BYTES)
    for _ in range(5):
        produce(partition)
    assert not fetch.ready()


def test_records_that_are_not_committed_do_not_count(partition: Partition) -> None:
    partition.make_leader(partition_state(isr=(1, 2), leader_epoch=1, partition_epoch=1), NOW)
    fetch = park(partition, 1)
    produce(partition)
    assert not fetch.ready()


def test_a_new_segment_answers_at_once(partition: Partition) -> None:
    produce(partition)
    fetch = park(partition, 1 << 20)
    partition.log.roll(NOW)
    produce(partition)
    assert fetch.ready()


def test_losing_the_leadership_answers_at_once(partition: Partition) -> None:
    fetch = park(partition, 1)
    partition.make_follower(
        partition_state(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    )
    assert fetch.ready()


def test_a_new_leader_epoch_answers_at_once(partition: Partition) -> None:
    fetch = park(partition, 1)
    partition.make_leader(partition_state(leader_epoch=1, partition_epoch=1), NOW)
    assert fetch.ready()


@pytest.mark.parametrize(
    ("replica_id", "version", "leader_only"),
    [(2, 17, True), (-1, 10, True), (-1, 11, False), (-2, 4, False)],
)
def test_who_may_read_a_follower(replica_id: int, version: int, leader_only: bool) -> None:
    assert FetchParams(replica_id, 0, 1, 1, 0, version).leader_only is leader_only


def test_on_a_follower_it_waits_for_what_becomes_committed(partition: Partition) -> None:
    partition.make_leader(partition_state(isr=(1, 2), leader_epoch=1, partition_epoch=1), NOW)
    produce(partition)
    partition.make_follower(
        partition_state(leader=2, isr=(1, 2), leader_epoch=2, partition_epoch=2)
    )
    row = FetchPartition("t", ZERO_UUID, 0, 0, 1 << 20)
    wait = FetchWait(partition, row, partition.log.offset_metadata(0))
    new, old = (
        DelayedFetch(NOW, FetchParams(-1, 500, 1, 1 << 20, 0, v), [wait], lambda: None)
        for v in (11, 10)
    )
    assert old.ready(), "it must look for the leader"
    assert not new.ready()
    partition.log.update_high_watermark(1)
    assert new.ready()


def test_a_throttled_follower_is_not_woken_by_what_it_may_not_have(partition: Partition) -> None:
    partition.make_leader(partition_state(isr=(1, 2), leader_epoch=1, partition_epoch=1), NOW)
    row = FetchPartition("t", ZERO_UUID, 0, 0, 1 << 20)
    wait = FetchWait(partition, row, partition.log.offset_metadata(0))
    held = [partition]
    fetch = DelayedFetch(
        NOW, FetchParams(2, 500, 1, 1 << 20, 0, 17), [wait], lambda: None, held.__contains__
    )
    produce(partition)
    assert not fetch.ready()
    partition.log.roll(NOW)
    produce(partition)
    assert not fetch.ready()
    held.clear()
    assert fetch.ready()


def test_a_replica_that_is_gone_answers_at_once_without_a_look_at_its_log(
    partition: Partition,
) -> None:
    produce(partition)
    fetch = park(partition, 1)
    assert partition.take_out_of_service()
    assert fetch.ready()


@pytest.mark.parametrize(
    "failure",
    [LogDirFailure("d", "gone"), ApiError(ErrorCode.CORRUPT_MESSAGE, "no valid batch")],
)
def test_a_disk_that_fails_meanwhile_answers_at_once(tmp_path: Path, failure: Exception) -> None:
    """Otherwise the failure ends the fetcher or the request that completes waiting fetches."""

    class Failing(Partition):
        __slots__ = ()

        def upper_bound_metadata(self, replica_id: int, isolation: int) -> LogOffsetMetadata:
            raise failure

    log = make_partition(log_manager(tmp_path)).log
    failing = Failing(TopicPartition("t", 0), ZERO_UUID, log, 1, 1000)
    failing.make_leader(partition_state(), NOW)
    assert park(failing, 1).ready()
