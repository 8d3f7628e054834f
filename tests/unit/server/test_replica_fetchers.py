"""Which fetcher follows a partition, and that a leader which is known only later is followed
then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.replica_fetchers import ReplicaFetchers, fetcher_id
from tests.support.broker_process import free_port
from tests.support.partitions import told
from tests.support.server_parts import Parts

LEADER = 2


@pytest.mark.parametrize(
    ("topic", "partition", "fetchers", "expected"),
    [("t", 0, 1, 0), ("t", 0, 4, 0), ("t", 3, 4, 3), ("orders", 7, 3, 1)],
)
def test_the_fetcher_is_kafkas_choice(
    topic: str, partition: int, fetchers: int, expected: int
) -> None:
    assert fetcher_id(TopicPartition(topic, partition), fetchers) == expected


def followed(partition: Partition, fetchers: ReplicaFetchers) -> bool:
    return any(partition in task.fetcher.partitions for task in fetchers._fetchers.values())


def test_a_leader_that_becomes_known_later_is_followed_then(tmp_path: Path) -> None:
    async def scene() -> None:
        parts = Parts(tmp_path)
        known: dict[int, Endpoint] = {}
        fetchers = ReplicaFetchers(
            KafkaConfig({}), parts.replicas, parts.clock, lambda: 1, known.get
        )
        parts.tell(told(leader=LEADER, isr=(LEADER, 1)))
        partition = parts.replicas.partitions["t"][0]
        fetchers.follow(partition)
        fetchers.metadata_changed()
        assert not followed(partition, fetchers)
        known[LEADER] = Endpoint("PLAINTEXT", "127.0.0.1", free_port())
        fetchers.metadata_changed()
        assert followed(partition, fetchers)
        fetchers.unfollow(partition.topic_partition)
        fetchers.metadata_changed()
        assert not followed(partition, fetchers)
        fetchers.stop()

    asyncio.run(scene())
