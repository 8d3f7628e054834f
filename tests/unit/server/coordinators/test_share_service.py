"""The share coordinator over a real log, of which a follower may not have the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.topic_partition import SHARE_GROUP_STATE_TOPIC
from kafkapy.coordinator.config import ShareConfig
from kafkapy.coordinator.shares.messages import (
    InitializeState,
    ReadSummary,
    StateRequest,
    StateResult,
)
from kafkapy.coordinator.shares.share_coordinator import ShareCoordinator
from kafkapy.replication.partition import Partition
from kafkapy.server.coordinators.share_service import ShareService
from tests.harness.cores.consumer_shell import FakeTopics
from tests.harness.cores.server_parts import Parts

CONFIG = ShareConfig(share_coordinator_state_topic_num_partitions=1)


class Broker:
    """Broker 1, which leads the one partition of the topic; broker 2 is in sync."""

    def __init__(self, directory: Path, topics: FakeTopics, leader_epoch: int) -> None:
        self.parts = Parts(directory)
        parts = self.parts
        coordinator = ShareCoordinator(CONFIG, parts.clock, topics)
        self.shares = ShareService(
            coordinator, parts.replicas, parts.clock, parts.config, parts.timers.call_later
        )
        parts.replicas.on_leadership = self.shares.on_leadership
        state: Any = {"leader_epoch": leader_epoch, "partition_epoch": leader_epoch}
        self.partition: Partition = parts.lead(SHARE_GROUP_STATE_TOPIC, isr=(1, 2), **state)

    def ask(self, request: StateRequest) -> list[StateResult]:
        """The answer, now or later."""
        answers: list[StateResult] = []
        self.shares.run_internal(self.shares.coordinator.handle, request, answers.append)
        return answers

    def replicate(self) -> None:
        self.follower_has(self.partition.log.log_end_offset)

    def follower_has(self, end_offset: int) -> None:
        self.parts.fetch_as_follower(self.partition, end_offset)


@pytest.fixture
def topics() -> FakeTopics:
    return FakeTopics()


@pytest.fixture
def key(topics: FakeTopics) -> SharePartitionKey:
    return SharePartitionKey("g", topics.create("t", 2), 0)


@pytest.fixture
def broker(tmp_path: Path, topics: FakeTopics, key: SharePartitionKey) -> Broker:
    """It has loaded two snapshots of a share partition; only the first is replicated."""
    before = Broker(tmp_path, topics, 1)
    before.ask(InitializeState(key, 1, 0))
    before.replicate()
    assert not before.ask(InitializeState(key, 2, 7)), "it waits for broker 2"
    before.parts.logs.shutdown(1)
    broker = Broker(tmp_path, topics, 2)
    broker.follower_has(1)
    return broker


def test_what_was_loaded_is_answered_when_it_is_replicated(
    broker: Broker, key: SharePartitionKey
) -> None:
    begun = broker.ask(InitializeState(key, 2, 7))
    assert not begun, "broker 2 might lead next, and not know of it"
    broker.replicate()
    assert [result.error for result in begun] == [ErrorCode.NONE]
    [summary] = broker.ask(ReadSummary(key))
    assert (summary.state_epoch, summary.start_offset) == (2, 7)


def test_what_was_loaded_is_answered_at_once_after_it_was_replicated(
    broker: Broker, key: SharePartitionKey
) -> None:
    broker.replicate()
    end = broker.partition.log.log_end_offset
    [begun] = broker.ask(InitializeState(key, 2, 7))
    assert begun.error is ErrorCode.NONE
    assert broker.partition.log.log_end_offset == end


def test_nothing_is_pruned_for_a_snapshot_that_was_loaded_and_is_not_replicated(
    broker: Broker,
) -> None:
    asyncio.run(broker.shares.maintain())
    assert broker.partition.log.log_start_offset == 0, "broker 2 has the first one alone"
    broker.replicate()
    asyncio.run(broker.shares.maintain())
    assert broker.partition.log.log_start_offset == 1
