"""Positions of followers count once and in their epoch; readers keep those of a later leader."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.follower_fetcher import FollowerFetcher
from kafkapy.replication.partition import CONSUMER, READ_UNCOMMITTED
from tests.harness.cores.replicas import BACKOFF_MS, ReplicaSet
from tests.harness.storage.partitions import log_manager, make_partition, partition_state

NOW = 1_000_000
ALL = (1, 2, 3)


def test_a_completed_fetch_does_not_count_as_another_one(tmp_path: Path) -> None:
    partition = make_partition(log_manager(tmp_path))
    partition.make_leader(partition_state(isr=(1, 2)), NOW)
    wanted = FetchPartition("t", ZERO_UUID, 0, 0, 1 << 20, -1, -1, 0)
    for now_ms, is_first in ((NOW, True), (NOW + 500, False)):
        partition.read(wanted, 2, READ_UNCOMMITTED, 100, True, now_ms, updates_follower=is_first)
    assert partition.remote_replicas[2].last_fetch_ms == NOW


def test_positions_from_before_another_led_commit_nothing(tmp_path: Path) -> None:
    """A leader did not hear that another led, and leads again. A follower has cut the records that
    it had from it: they were committed and acknowledged, and lost with the leader's disk."""
    three = ReplicaSet(tmp_path, 3)
    first, second, third = (three.brokers[i] for i in ALL)
    three.elect(1, 0, 2, 3)
    three.produce(1, "a")
    three.settle(2, 3)
    three.produce(1, "b")
    three.fetch(3)
    three.fetch(3)
    assert first.partition.log.high_watermark == 1  # broker 2 is slow
    elected = partition_state(2, ALL, ALL, 1, 10)
    second.partition.make_leader(elected, three.now_ms)
    third.partition.make_follower(elected)
    third.fetcher = FollowerFetcher(2, 1 << 20, BACKOFF_MS, third.quota, three.failures.append)
    third.fetcher.follow(third.partition)
    three.fetch(3)
    assert third.values == ["a"]
    elected = partition_state(1, (1, 3), ALL, 2, 11)
    assert first.partition.make_leader(elected, three.now_ms)
    assert first.partition.log.high_watermark == 1


def test_positions_in_the_epoch_before_go_on_to_count(tmp_path: Path) -> None:
    three = ReplicaSet(tmp_path, 3)
    three.elect(1, 0, 2, 3)
    three.produce(1, "a")
    for follower in (2, 3, 3):
        three.fetch(follower)
    partition = three.brokers[1].partition
    assert partition.log.high_watermark == 0
    assert partition.make_leader(partition_state(1, (1, 3), ALL, 1, 10), three.now_ms)
    assert partition.log.high_watermark == 1


def test_a_leader_without_zookeeper_answers_a_later_offset_with_not_leader(
    tmp_path: Path,
) -> None:
    """OFFSET_OUT_OF_RANGE from a former leader resets the position of a consumer before KIP-320."""
    partition = make_partition(log_manager(tmp_path))
    partition.make_leader(partition_state(), NOW)

    def read(offset: int) -> ErrorCode:
        wanted = FetchPartition("t", ZERO_UUID, 0, offset, 1 << 20)
        with pytest.raises(ApiError) as refused:
            partition.read(wanted, CONSUMER, READ_UNCOMMITTED, 100, True, NOW)
        return refused.value.code

    assert read(1) is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.may_be_replaced = lambda: True
    assert read(1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert read(-1) is ErrorCode.OFFSET_OUT_OF_RANGE  # no leader has that
