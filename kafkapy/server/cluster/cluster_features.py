"""The features that all registered brokers have. A cluster uses no other: each must be able to read
the records.

A broker registers the features that it supports, as Kafka's registrations have them. Each broker
reads all registrations whenever a broker comes or goes. A feature that one of them lacks, as each
Apache Kafka 3.9 does, is off. Until the first reading all are off.
"""

from __future__ import annotations

import logging
from typing import Final

from kafkapy.common.cluster_state import Feature
from kafkapy.server.changes.change_follower import ChangeFollower
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.zk.stores.broker_store import BrokerStore

logger = logging.getLogger("kafka.server.KafkaServer")

GROUP_VERSION: Final = Feature("group.version", 1, 1)
"""Level 1: consumer groups (KIP-848)."""


def supported_features(config: KafkaConfig) -> tuple[Feature, ...]:
    """The features that a broker of this configuration supports."""
    protocols = config.get_list("group.coordinator.rebalance.protocols")
    return (GROUP_VERSION,) if "consumer" in protocols else ()


class ClusterFeatures:
    """Follows the registrations of brokers. The features of this broker are fixed."""

    def __init__(self, supported: tuple[Feature, ...]) -> None:
        self.supported = supported
        self._levels: dict[str, int] = {}
        self._brokers: BrokerStore | None = None
        self._follower = ChangeFollower("the features of brokers", self.reload, logger)

    @property
    def levels(self) -> dict[str, int]:
        """The level of each feature that is on."""
        return dict(self._levels)

    @property
    def has_consumer_groups(self) -> bool:
        """Whether consumer groups are served."""
        return GROUP_VERSION.name in self._levels

    async def start(self, brokers: BrokerStore) -> None:
        """Read the registrations, this broker's among them, and follow them."""
        self._brokers = brokers
        await self.reload()
        self._follower.start()

    async def stop(self) -> None:
        """End following."""
        await self._follower.stop()

    async def reload(self) -> None:
        """Read all registrations."""
        if self._brokers is None:
            return
        registrations = await self._brokers.get_all(self._follower.on_watch)
        if not registrations:
            return  # this broker's session has expired, and it registers again
        before = self._levels
        self._levels = levels(
            self.supported, [each.broker.features for each in registrations.values()]
        )
        if self._levels != before:
            on = ", ".join(f"{name}={level}" for name, level in self._levels.items())
            logger.info("Features of all %d brokers: %s", len(registrations), on or "none")


def levels(supported: tuple[Feature, ...], of_brokers: list[tuple[Feature, ...]]) -> dict[str, int]:
    """The highest level of each feature that all brokers support."""
    found = {}
    for mine in supported:
        theirs = [[f for f in features if f.name == mine.name] for features in of_brokers]
        if theirs and all(theirs):
            level = min([mine.max_version, *(each[0].max_version for each in theirs)])
            if level >= max([mine.min_version, *(each[0].min_version for each in theirs)]):
                found[mine.name] = level
    return found
