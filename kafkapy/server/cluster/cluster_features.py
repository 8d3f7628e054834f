"""The features that all registered brokers support. The cluster uses only these, since every broker
must be able to read the records.

A broker registers its supported features in the format of Kafka's registrations. Each broker reads
all registrations whenever a broker comes or goes. A feature that one of them lacks, as every Apache
Kafka 3.9 broker does, is off. Until the first read, all features are off. Administrators may limit
the level of a feature.

Clients adopt the features with the highest epoch that any broker has sent. The epoch is the
ZooKeeper transaction of the last change, so it is the same on all brokers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.common.cluster_state import Feature
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.changes.change_follower import ChangeNotificationListener
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import BadVersion, NodeExists

logger = logging.getLogger("kafka.server.KafkaServer")

GROUP_VERSION: Final = Feature("group.version", 1, 1)
"""Level 1: consumer groups (KIP-848)."""
TRANSACTION_VERSION: Final = Feature("transaction.version", 1, 2)
"""Level 1: records with tagged fields. Level 2: each end of a transaction bumps the epoch
(KIP-890)."""

SHARE_VERSION: Final = Feature("share.version", 1, 1)
"""Level 1: share groups (KIP-932)."""
_FEATURES_BY_PROTOCOL: Final = {"consumer": GROUP_VERSION, "share": SHARE_VERSION}


def supported_features(config: KafkaConfig) -> tuple[Feature, ...]:
    """The features that a broker of this configuration supports."""
    protocols = config.get_list("group.coordinator.rebalance.protocols")
    groups = (feature for name, feature in _FEATURES_BY_PROTOCOL.items() if name in protocols)
    return (*groups, TRANSACTION_VERSION)


class FeatureUpdate(NamedTuple):
    """A level that an administrator sets; 0 disables the feature."""

    name: str
    level: int
    allow_downgrade: bool


class ClusterFeatures:
    """Follows registrations and limits. The supported features of this broker are fixed."""

    def __init__(self, supported: tuple[Feature, ...]) -> None:
        self.supported = supported
        self.epoch = 0
        self._levels: dict[str, int] = {}
        self._broker_features: dict[int, tuple[Feature, ...]] = {}
        self._store: ZkStore | None = None
        self._follower = ChangeNotificationListener("the features of brokers", self.reload, logger)

    @property
    def levels(self) -> dict[str, int]:
        """The level of each feature that is on."""
        return dict(self._levels)

    @property
    def has_consumer_groups(self) -> bool:
        """Whether consumer groups are served."""
        return GROUP_VERSION.name in self._levels

    @property
    def has_share_groups(self) -> bool:
        """Whether share groups are served."""
        return SHARE_VERSION.name in self._levels

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version`, 0 if it is off."""
        return self._levels.get(TRANSACTION_VERSION.name, 0)

    async def start(self, store: ZkStore) -> None:
        """Read the registrations, this broker's among them, and follow them."""
        self._store = store
        await self.reload()
        self._follower.start()

    async def stop(self) -> None:
        """End following."""
        await self._follower.stop()

    async def reload(self) -> None:
        """Read all registrations, and the limits."""
        if self._store is None:
            return
        zxid = -1
        while zxid != (now := await self._store.features.registrations_zxid()):
            zxid = now  # a broker that comes meanwhile must not be counted at an old epoch
            registrations = await self._store.brokers.get_all(self._follower.on_watch)
        if not registrations:
            return  # this broker's session has expired, and it registers again
        limits = await self._store.features.limits(self._follower.on_watch)
        before = self._levels
        self._broker_features = {n: each.broker.features for n, each in registrations.items()}
        self._levels = levels(self.supported, [*self._broker_features.values()], limits.levels)
        self.epoch = max(zxid, limits.zxid)
        if self._levels != before:
            enabled = ", ".join(f"{name}={level}" for name, level in self._levels.items())
            logger.info("Features of all %d brokers: %s", len(registrations), enabled or "none")

    async def update(self, updates: Sequence[FeatureUpdate], *, validate_only: bool) -> None:
        """Limit the level of features: all, or none after an error.

        Raises:
            ApiError: INVALID_UPDATE_VERSION.
        """
        assert self._store is not None
        limits = await self._store.features.limits()
        await self.reload()
        for each in updates:
            problem = _problem(each, self._levels.get(each.name, 0), self._broker_features)
            if problem:
                raise ApiError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    "The update failed for all features since the following feature had an error:"
                    f" Invalid update version {each.level} for feature {each.name}. {problem}",
                )
        if validate_only:
            return
        changed = limits.levels | {each.name: each.level for each in updates}
        try:
            await self._store.features.set_limits(changed, limits.version)
        except (BadVersion, NodeExists):
            # Another client has changed the limits meanwhile, which may make an update invalid.
            await self.update(updates, validate_only=False)
            return
        await self.reload()


def _problem(
    update: FeatureUpdate, current_level: int, broker_features: Mapping[int, tuple[Feature, ...]]
) -> str | None:
    """The reason why a feature may not get this level, in Kafka's words."""
    if update.level < 0:
        return "A feature version cannot be less than 0."
    for broker_id, features in broker_features.items():
        found = next((each for each in features if each.name == update.name), None)
        if found is None:
            return f"Broker {broker_id} does not support this feature."
        if update.level > found.max_version:
            return f"Broker {broker_id} only supports versions 0-{found.max_version}."
    if update.level < current_level and not update.allow_downgrade:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to"
            " either safe or unsafe downgrade."
        )
    if update.level > current_level and update.allow_downgrade:
        return "Can't downgrade to a newer version."
    return None


def levels(
    supported: tuple[Feature, ...],
    broker_features: list[tuple[Feature, ...]],
    limits: Mapping[str, int],
) -> dict[str, int]:
    """The highest level of each feature that all brokers support, and its limit allows."""
    found = {}
    for feature in supported:
        registered = [
            [f for f in features if f.name == feature.name] for features in broker_features
        ]
        if registered and all(registered):
            limit = limits.get(feature.name, feature.max_version)
            level = min([limit, feature.max_version, *(each[0].max_version for each in registered)])
            if level >= max([feature.min_version, *(each[0].min_version for each in registered)]):
                found[feature.name] = level
    return found
