"""Limits that administrators set for features (`/kafkapy/feature_limits`).

Apache Kafka 3.9 has no such node. In its own node `/feature`, limits would prevent 3.9 brokers from
starting.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from kafkapy.zk.stores import paths
from kafkapy.zk.stores.fencing import create_recursive
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import BadVersion, NodeExists, NoNode, Watch, ZooKeeper

_VERSION = 1
_MISSING = -1


class FeatureLimits(NamedTuple):
    """The highest level that each feature may have; 0 disables it. `zxid` is the transaction of the
    last change. `version` is the node's version, for conditional changes.
    """

    levels: dict[str, int]
    zxid: int = 0
    version: int = _MISSING


class FeatureStore:
    """The limits, and the zxid of the last change of registrations."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk

    async def limits(self, watch: Watch | None = None) -> FeatureLimits:
        """The present limits. The watch fires at changes."""
        if await self._zk.exists(paths.FEATURE_LIMITS, watch) is None:
            return FeatureLimits({})
        try:
            node = await self._zk.get(paths.FEATURE_LIMITS)
        except NoNode:
            return FeatureLimits({})
        return FeatureLimits(_decode(node.data), node.stat.mzxid, node.stat.version)

    async def set_limits(self, levels: dict[str, int], version: int) -> None:
        """Replace the limits, if they still have this version.

        Raises:
            BadVersion, NodeExists: they were changed meanwhile.
        """
        data = orjson.dumps({"version": _VERSION, "levels": levels})
        try:
            if version == _MISSING:
                await create_recursive(self._zk, paths.FEATURE_LIMITS, data)
            else:
                await self._zk.set(paths.FEATURE_LIMITS, data, version)
        except (BadVersion, NodeExists):
            # After a lost answer the write is sent again; the first attempt changed the version.
            node = await self._zk.get(paths.FEATURE_LIMITS)
            if (node.data, node.stat.version) != (data, version + 1):
                raise

    async def registrations_zxid(self) -> int:
        """The transaction in which a broker last registered or left."""
        stat = await self._zk.exists(paths.BROKER_IDS)
        return 0 if stat is None else stat.children_zxid


def _decode(data: bytes) -> dict[str, int]:
    try:
        levels = orjson.loads(data)["levels"]
        return {str(name): int(level) for name, level in levels.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ZnodeError(paths.FEATURE_LIMITS, repr(error)) from error
