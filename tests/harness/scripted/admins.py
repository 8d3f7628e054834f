"""A metadata cache and a store with topics and brokers, for tests of the admin parts."""

from __future__ import annotations

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.uuid import Uuid
from kafkapy.metadata.cache import MetadataCache
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.znodes import run, server


def broker(broker_id: int, rack: str | None = None) -> BrokerInfo:
    return BrokerInfo(broker_id, (Endpoint("PLAINTEXT", "h", 9000 + broker_id),), rack)


def metadata(
    topics: tuple[str, ...] = (), brokers: tuple[int, ...] = (1, 2, 3), leader: int = 1
) -> MetadataCache:
    """A cache with these topics, of one partition each, and live brokers."""
    rows = [
        UpdateMetadataPartition(
            topic, Uuid(bytes(15) + b"\1"), 0, LeaderAndIsr(leader, 0, (leader,), 0, 1), (leader,)
        )
        for topic in topics
    ]
    cache = MetadataCache()
    cache.apply(UpdateMetadataCommand(1, 1, 1, rows, [broker(b) for b in brokers]))
    return cache


def store(brokers: tuple[int, ...] = (1, 2, 3), controller: bool = True) -> ZkStore:
    """A store with these brokers registered and, usually, a controller."""
    ensemble = server()
    made = ZkStore(ensemble.connect())
    run(made.create_persistent_paths())
    for broker_id in brokers:
        run(ZkStore(ensemble.connect()).brokers.register(broker(broker_id), 0))
    if controller:
        run(made.election.elect(1, 0))
    return made
