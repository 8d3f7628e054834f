"""The dynamic configs of a broker, at its start and with other listeners."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

from kafkapy.common.cluster_state import NO_LEADER, LeaderAndIsr, TopicDescription
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.server.broker import Broker
from kafkapy.server.cluster.metadata_connection import MetadataConnection
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.system import Machine
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores import znodes
from tests.harness.cores.server_parts import Parts
from tests.harness.processes.broker_process import free_port

LISTENERS = {
    "listeners": "PLAINTEXT://:1,B://:2",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
}


def test_new_listeners_do_not_bring_back_older_limits(tmp_path: Path) -> None:
    """They wait for their turn, while newer configs take effect."""
    parts = Parts(tmp_path)
    applier = parts.config_applier()
    applier.apply("brokers", "1", {"max.connection.creation.rate": "9", "max.connections": "8"})
    waited = KafkaConfig({"log.dirs": "/d", "max.connection.creation.rate": "5", **LISTENERS})
    broker: Any = SimpleNamespace(
        _configs=parts.configs,
        _quotas=parts.client_quotas,
        _connection_limits=parts.connection_limits,
        _member=SimpleNamespace(update_endpoints=AsyncMock()),
    )
    asyncio.run(Broker._update_listeners(broker, waited, ()))
    creations = parts.client_quotas.creations
    assert {name: usage.limit for name, usage in creations.listeners.items()} == {
        "PLAINTEXT": 9,
        "B": 9,
    }
    assert parts.connection_limits._max == 8


def test_no_record_is_lost_when_a_dynamic_config_forbids_the_unclean_election_of_properties(
    tmp_path: Path,
) -> None:
    """The broker is elected as the controller before it follows the configs."""
    ensemble = znodes.server()
    store, partition = ZkStore(ensemble.connect()), TopicPartition("t", 0)
    config = KafkaConfig(
        {
            "broker.id": "1",
            "log.dirs": str(tmp_path),
            "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            "unclean.leader.election.enable": "true",
        }
    )

    async def connect(*_: object) -> MetadataConnection:
        return MetadataConnection(ensemble.connect(), AsyncMock(), AsyncMock(), lambda _: None)

    async def leader_after_start() -> int:
        await store.create_persistent_paths()
        await store.topics.create(TopicDescription("t", Uuid(bytes(15) + b"1"), {0: (1, 2)}))
        fence = await store.election.elect(2, 0)
        await store.topics.create_states(
            {partition: LeaderAndIsr(NO_LEADER, 1, (2,), 0, fence.controller_epoch)}, fence
        )
        await store.election.delete_controller(fence)
        await store.configs.set_before_start(
            "<default>", {"unclean.leader.election.enable": "false"}
        )
        broker = Broker(config, Machine(connect=connect))
        await broker.start()
        await broker.stop()
        return (await store.topics.states([partition]))[partition].leader

    assert asyncio.run(leader_after_start()) == NO_LEADER
