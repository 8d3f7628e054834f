"""A feature is on while every registered broker has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint, Feature
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.cluster.cluster_features import (
    GROUP_VERSION,
    SHARE_VERSION,
    TRANSACTION_VERSION,
    ClusterFeatures,
    FeatureUpdate,
    levels,
    supported_features,
)
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.zk.stores.feature_store import FeatureLimits
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import Watch
from tests.harness.cores.znodes import server

OURS = (GROUP_VERSION,)


def test_the_level_of_a_feature_is_one_that_all_brokers_have() -> None:
    wide = Feature(GROUP_VERSION.name, 1, 3)
    assert levels(OURS, [OURS, OURS], {}) == {"group.version": 1}
    assert levels((wide,), [(wide,), (Feature("group.version", 1, 2),)], {}) == {"group.version": 2}
    assert levels(OURS, [OURS, ()], {}) == {}
    assert levels(OURS, [OURS, (Feature("group.version", 2, 3),)], {}) == {}
    assert levels(OURS, [OURS, (Feature("other.version", 1, 1),)], {}) == {}
    assert levels(OURS, [], {}) == {}
    assert levels((), [OURS], {}) == {}


def test_a_limit_lowers_the_level_or_turns_the_feature_off() -> None:
    wide = (Feature("group.version", 1, 3),)
    assert levels(wide, [wide], {"group.version": 2}) == {"group.version": 2}
    assert levels(wide, [wide], {"group.version": 9}) == {"group.version": 3}
    assert levels(wide, [wide], {"group.version": 0}) == {}
    assert levels(wide, [wide], {"other.version": 0}) == {"group.version": 3}


def test_the_configuration_can_do_without() -> None:
    key = "group.coordinator.rebalance.protocols"
    groups = (GROUP_VERSION, SHARE_VERSION)
    assert supported_features(KafkaConfig({})) == (*groups, TRANSACTION_VERSION)
    shares = (SHARE_VERSION, TRANSACTION_VERSION)
    assert supported_features(KafkaConfig({key: "classic,share"})) == shares
    assert supported_features(KafkaConfig({key: "classic"})) == (TRANSACTION_VERSION,)


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
        await features.start(store)
        assert features.has_consumer_groups
        on = features.epoch
        await ZkStore(apache).brokers.register(info(2, ()), 0)
        await becomes(lambda: not features.has_consumer_groups)
        off = features.epoch
        ensemble.expire(apache.session_id)
        await becomes(lambda: features.has_consumer_groups)
        assert features.levels == {"group.version": 1}
        assert features.epoch > off > on > 0, "clients adopt the highest epoch"
        await features.stop()

    asyncio.run(story())


def test_a_limit_is_followed() -> None:
    async def story() -> None:
        ensemble = server()
        store = ZkStore(ensemble.connect())
        await store.create_persistent_paths()
        await store.brokers.register(info(1, (TRANSACTION_VERSION,)), 0)
        features = ClusterFeatures((TRANSACTION_VERSION,))
        await features.start(store)
        assert features.transaction_version == 2
        before = features.epoch
        limits = await store.features.limits()
        await store.features.set_limits({"transaction.version": 1}, limits.version)
        await becomes(lambda: features.transaction_version == 1)
        assert features.epoch > before
        limits = await store.features.limits()
        await store.features.set_limits({"transaction.version": 0}, limits.version)
        await becomes(lambda: features.transaction_version == 0)
        await features.stop()

    asyncio.run(story())


def test_levels_are_set_within_what_all_brokers_support() -> None:
    async def story() -> None:
        ensemble = server()
        store = ZkStore(ensemble.connect())
        await store.create_persistent_paths()
        await store.brokers.register(info(1, (TRANSACTION_VERSION,)), 0)
        features = ClusterFeatures((TRANSACTION_VERSION,))
        await features.start(store)

        async def refused(level: int, allow_downgrade: bool = False, name: str = "") -> str:
            update = FeatureUpdate(name or TRANSACTION_VERSION.name, level, allow_downgrade)
            with pytest.raises(ApiError) as caught:
                await features.update([update], validate_only=False)
            assert caught.value.code is ErrorCode.INVALID_UPDATE_VERSION
            return caught.value.message

        assert "cannot be less than 0" in await refused(-1)
        assert "Broker 1 only supports versions 0-2." in await refused(3)
        assert "Broker 1 does not support this feature." in await refused(1, name="x")
        assert "Can't downgrade the version" in await refused(1)
        lower = FeatureUpdate(TRANSACTION_VERSION.name, 1, allow_downgrade=True)
        await features.update([lower], validate_only=True)
        assert features.transaction_version == 2
        await features.update([lower], validate_only=False)
        assert features.transaction_version == 1
        assert "downgrade to a newer version" in await refused(2, allow_downgrade=True)
        other = ZkStore(ensemble.connect())
        await other.brokers.register(info(2, ()), 0)
        assert "Broker 2 does not support this feature." in await refused(2)
        await features.stop()

    asyncio.run(story())


def test_updates_at_the_same_time_keep_each_other() -> None:
    async def story() -> None:
        store = ZkStore(server().connect())
        await store.create_persistent_paths()
        await store.brokers.register(info(1, (TRANSACTION_VERSION, GROUP_VERSION)), 0)
        features = ClusterFeatures((TRANSACTION_VERSION, GROUP_VERSION))
        await features.start(store)
        limits = store.features.limits

        async def overtaken(watch: Watch | None = None) -> FeatureLimits:
            found = await limits(watch)
            if watch is not None:
                return found
            store.features.limits = limits  # type: ignore[method-assign]
            await store.features.set_limits({GROUP_VERSION.name: 0}, found.version)
            return found

        store.features.limits = overtaken  # type: ignore[method-assign]
        lower = FeatureUpdate(TRANSACTION_VERSION.name, 1, allow_downgrade=True)
        await features.update([lower], validate_only=False)
        assert features.levels == {TRANSACTION_VERSION.name: 1}
        await features.stop()

    asyncio.run(story())
