"""Topics that come into being because somebody asked for them
(`kafka.server.AutoTopicCreationManager`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.server.topic_admin import Charge, free

if TYPE_CHECKING:
    from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.AutoTopicCreationManager")

# Where the sizes of internal topics are configured.
_INTERNAL_PREFIX: Final = {
    GROUP_METADATA_TOPIC: "offsets.topic",
    TRANSACTION_STATE_TOPIC: "transaction.state.log",
}


class AutoCreator:
    """Creates topics with the broker's defaults; one creation of a name at a time."""

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        self._in_flight: set[str] = set()

    async def create(self, names: list[str], wait_ms: int, charge: Charge = free) -> None:
        """Create what is missing of `names`, then give their leaders `wait_ms` to appear.

        A refusal is logged, not raised: the caller answers from the metadata as it then is.
        """
        for name in names:
            if name in self._in_flight or name in self._broker.metadata.image.topics:
                continue
            self._in_flight.add(name)
            try:
                await self._create(name, charge)
            except ApiError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    logger.warning("Auto topic creation of %s failed: %s", name, error.message)
            finally:
                self._in_flight.discard(name)
        await self._broker.topics_ready(names, wait_ms)

    async def _create(self, name: str, charge: Charge) -> None:
        get = self._broker.config.get_int
        prefix = _INTERNAL_PREFIX.get(name)
        await self._broker.topic_admin.create_topic(
            name,
            get(f"{prefix}.num.partitions" if prefix else "num.partitions"),
            get(f"{prefix}.replication.factor" if prefix else "default.replication.factor"),
            None,
            self._internal_configs(name),
            False,
            charge,
        )

    def _internal_configs(self, name: str) -> dict[str, str]:
        get = self._broker.config.get_int
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
        return {}
