"""A feature is on while every registered broker has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafkapy.common.cluster_state import BrokerInfo, Endpoint, Feature
from kafkapy.server.cluster.cluster_features import (
    GROUP_VERSION,
    ClusterFeatures,
    levels,
    supported_features,
)
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.zk.stores.store import ZkStore
from tests.harness.cores.znodes import server

OURS = (GROUP_VERSION,)


def test_the_level_of_a_feature_is_one_that_all_brokers_have() -> None:
    wide = Feature(GROUP_VERSION.name, 1, 3)
    assert levels(OURS, [OURS, OURS]) == {"group.version": 1}
    assert levels((wide,), [(wide,), (Feature("group.version", 1, 2),)]) == {"group.version": 2}
    assert levels(OURS, [OURS, ()]) == {}
    assert levels(OURS, [OURS, (Feature("group.version", 2, 3),)]) == {}
    assert levels(OURS, [OURS, (Feature("other.version", 1, 1),)]) == {}
    assert levels(OURS, []) == {}
    assert levels((), [OURS]) == {}


def test_the_configuration_can_do_without() -> None:
    key = "group.coordinator.rebalance.protocols"
    assert supported_features(KafkaConfig({})) == OURS
    assert supported_features(KafkaConfig({key: "classic"})) == ()


def info(broker_id: int, features: tuple[Feature, ...]) -> BrokerInfo:
    endpoint = Endpoint("PLAINTEXT", "h", 9000 + broker_id)
    return BrokerInfo(broker_id, (endpoint,), None, features)


async def becomes(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0)


def test_a_broker_that_comes_without_it_turns_it_off_until_it_goes() -> None:
    async def story() -> None:
        ensemble = server()
        mine, apache = ensemble.connect(), ensemble.connect()
        store = ZkStore(mine)
        await store.create_persistent_paths()
        await store.brokers.register(info(1, OURS), 0)
        features = ClusterFeatures(OURS)
        await features.reload()
        assert not features.has_consumer_groups  # nothing has been read yet
        await features.start(store.brokers)
        assert features.has_consumer_groups
        await ZkStore(apache).brokers.register(info(2, ()), 0)
        await becomes(lambda: not features.has_consumer_groups)
        ensemble.expire(apache.session_id)
        await becomes(lambda: features.has_consumer_groups)
        assert features.levels == {"group.version": 1}
        await features.stop()

    asyncio.run(story())
