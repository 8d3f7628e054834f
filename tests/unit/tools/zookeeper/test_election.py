"""Preferred elections by the znode, on a real ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.zookeeper.election import ElectionRefused, request_preferred_election
from kafkapy.tools.zookeeper.session import with_zookeeper
from kafkapy.zk.stores.store import ZkStore
from tests.harness.processes.zookeeper_server import ZooKeeperServer

T0, T1, NONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("no", 0)


async def make_topic(store: ZkStore) -> None:
    await store.create_persistent_paths()
    await store.topics.create(TopicDescription("t", assignment={0: (1,), 1: (1,)}))


async def take_wish(store: ZkStore) -> list[TopicPartition] | None:
    wish = await store.requests.preferred_elections()
    await store.zookeeper.delete("/admin/preferred_replica_election")
    return wish


def test_the_controller_finds_the_wish(tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        connect = server.connect("/kafka")
        with_zookeeper(connect, make_topic)
        assert request_preferred_election(connect, None) == ([T0, T1], [])
        with pytest.raises(ElectionRefused, match="currently in progress for t-0, t-1"):
            request_preferred_election(connect, None)
        assert with_zookeeper(connect, take_wish) == [T0, T1]
        assert request_preferred_election(connect, [T1, NONE]) == ([T1], [NONE])
        assert with_zookeeper(connect, take_wish) == [T1]
