"""Automatic creation of topics that requests name (`kafka.server.AutoTopicCreationManager`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kafkapy.server.admin.topic_admin import Charge, no_charge
from kafkapy.server.requests.turns import CHANGE_UNITS, SliceScheduler
from kafkapy.zk.zookeeper import ZooKeeperError

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.server.admin.topic_admin import TopicAdmin
    from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
    from kafkapy.server.config.kafka_config import KafkaConfig

logger = logging.getLogger("kafka.server.AutoTopicCreationManager")

CREATION_WAIT_MS: Final = 1000
"""The time for which a request waits for the leaders of a topic that it creates."""

# Prefixes of the configs of internal topics.
_INTERNAL_PREFIX: Final = {
    GROUP_METADATA_TOPIC: "offsets.topic",
    TRANSACTION_STATE_TOPIC: "transaction.state.log",
    SHARE_GROUP_STATE_TOPIC: "share.coordinator.state.topic",
}


def _always() -> bool:
    return True


class AutoCreator:
    """Creates topics with the broker's defaults. Concurrent requests for a name share one creation
    and its outcome.
    """

    def __init__(
        self,
        config: KafkaConfig,
        topics: TopicAdmin,
        metadata: MetadataCache,
        waiter: MetadataWaiter,
        slices: SliceScheduler,
    ) -> None:
        self._config = config
        self._topics = topics
        self._metadata = metadata
        self._waiter = waiter
        self._slices = slices
        self._in_flight: dict[str, asyncio.Future[ErrorCode]] = {}

    async def create(
        self,
        names: list[str],
        wait_ms: int,
        charge: Charge = no_charge,
        is_wanted: Callable[[], bool] = _always,
    ) -> dict[str, ErrorCode]:
        """Create the missing topics of `names` while `is_wanted`. Then wait up to `wait_ms` for the
        leaders of all topics that were not refused. Returns the refusals by name. A topic that
        exists but is not in the metadata, because it is new or being deleted, gets
        LEADER_NOT_AVAILABLE; other refusals are logged.
        """
        pace = self._slices.pace()
        started: list[str] = []
        refusals: dict[str, ErrorCode] = {}
        try:
            for name in names:
                await pace.charge(CHANGE_UNITS)  # a refusal does not await anything else
                if not is_wanted():
                    return refusals
                if name in self._metadata.image.topics:
                    continue
                # A refused name is not in `started`: it is in flight no longer, or for another
                # request.
                starts_creation = name not in self._in_flight
                code = await self._create_once(name, charge)
                if code is not ErrorCode.NONE:
                    refusals[name] = code
                elif starts_creation:
                    started.append(name)
            created = [name for name in names if name not in refusals]
            if created:
                await self._waiter.wait_until_topics_ready(created, wait_ms)
        finally:
            for name in started:
                self._in_flight.pop(name, None)
        return refusals

    async def _create_once(self, name: str, charge: Charge) -> ErrorCode:
        """The outcome of the creation that is in flight, or else of a new one. A creation stays in
        flight until its topic is in the metadata, because another creation would be refused before
        that.
        """
        creation = self._in_flight.get(name)
        if creation is not None:
            return await asyncio.shield(creation)
        creation = self._in_flight[name] = asyncio.get_running_loop().create_future()
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            code = await self._try_create(name, charge)
        finally:
            creation.set_result(code)
            if code is not ErrorCode.NONE:
                del self._in_flight[name]
        return code

    async def _try_create(self, name: str, charge: Charge) -> ErrorCode:
        try:
            await self._create(name, charge)
        except ApiError as error:
            if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                return ErrorCode.LEADER_NOT_AVAILABLE
            code, reason = error.code, error.message
        except ZooKeeperError as error:
            # The topic may exist nevertheless. Clients retry after this code.
            code, reason = ErrorCode.LEADER_NOT_AVAILABLE, str(error)
        else:
            return ErrorCode.NONE
        logger.warning("Auto topic creation of %s failed: %s", name, reason)
        return code

    async def _create(self, name: str, charge: Charge) -> None:
        get = self._config.get_int
        prefix = _INTERNAL_PREFIX.get(name)
        await self._topics.create_topic(
            name,
            get(f"{prefix}.num.partitions" if prefix else "num.partitions"),
            get(f"{prefix}.replication.factor" if prefix else "default.replication.factor"),
            None,
            self._internal_configs(name),
            False,
            charge,
        )

    def _internal_configs(self, name: str) -> dict[str, str]:
        get = self._config.get_int
        if name == GROUP_METADATA_TOPIC:
            return {
                "cleanup.policy": "compact",
                "segment.bytes": str(get("offsets.topic.segment.bytes")),
                "compression.type": "producer",
            }
        if name == TRANSACTION_STATE_TOPIC:
            return {
                "cleanup.policy": "compact",
                "segment.bytes": str(get("transaction.state.log.segment.bytes")),
                "compression.type": "uncompressed",
                "unclean.leader.election.enable": "false",
                "min.insync.replicas": str(get("transaction.state.log.min.isr")),
            }
        if name == SHARE_GROUP_STATE_TOPIC:
            return {
                "cleanup.policy": "delete",
                "retention.ms": "-1",
                "segment.bytes": str(get("share.coordinator.state.topic.segment.bytes")),
                "compression.type": "producer",
                "min.insync.replicas": str(get("share.coordinator.state.topic.min.isr")),
            }
        return {}
