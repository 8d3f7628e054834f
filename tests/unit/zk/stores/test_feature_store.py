"""Limits of features: kept with a version, so that no change is lost."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.zk.stores import paths
from kafkapy.zk.stores.feature_store import FeatureLimits, FeatureStore
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import BadVersion, NodeExists
from tests.harness.cores.znodes import AnswerLosingZooKeeper, run, server


def test_a_change_that_another_has_overtaken_is_refused() -> None:
    async def story() -> None:
        features = ZkStore(server().connect()).features
        assert await features.limits() == FeatureLimits({})
        await features.set_limits({"a": 1}, -1)
        with pytest.raises(NodeExists):
            await features.set_limits({"b": 1}, -1)
        first = await features.limits()
        assert (first.levels, first.version) == ({"a": 1}, 0)
        await features.set_limits({"a": 2}, 0)
        with pytest.raises(BadVersion):
            await features.set_limits({"a": 3}, 0)
        second = await features.limits()
        assert second.levels == {"a": 2}
        assert second.zxid > first.zxid

    asyncio.run(story())


def test_a_write_whose_answer_was_lost_counts_as_written() -> None:
    """The session sends it again after a lost connection, and meets its own version."""
    zk = AnswerLosingZooKeeper(server())
    features = FeatureStore(zk)
    for version in (-1, 0):
        zk.lost_path = paths.FEATURE_LIMITS
        run(features.set_limits({"a": version}, version))
        assert run(features.limits()).levels == {"a": version}
    assert run(features.limits()).version == 1


@pytest.mark.parametrize("data", [b"", b"[]", b'{"levels": {"a": "x"}}'])
def test_limits_that_cannot_be_read_say_so(data: bytes) -> None:
    async def story() -> None:
        store = ZkStore(server().connect())
        await store.features.set_limits({}, -1)
        await store.zookeeper.set(paths.FEATURE_LIMITS, data)
        with pytest.raises(ZnodeError, match="feature_limits"):
            await store.features.limits()

    asyncio.run(story())
