"""Allocates producer ids for brokers (KIP-730), which Apache Kafka's brokers request from 3.0
on.
"""

from __future__ import annotations

import logging

from kafkapy.common.errors import ErrorCode
from kafkapy.controller.events import AllocateProducerIds
from kafkapy.controller.parts import ControllerParts

_log = logging.getLogger("kafka.controller.KafkaController")


async def on_allocate_producer_ids(parts: ControllerParts, event: AllocateProducerIds) -> None:
    """Answer with the next block of ids, if the broker is registered with this epoch.

    Brokers of this project allocate their blocks in ZooKeeper, from the same counter.
    """
    known_epoch = parts.context.broker_epochs.get(event.broker_id)
    if known_epoch is None:
        _log.warning("Ignoring AllocateProducerIds due to unknown broker %d", event.broker_id)
        event.reply(ErrorCode.BROKER_ID_NOT_REGISTERED)
    elif event.broker_epoch < known_epoch:
        _log.warning(
            "Ignoring AllocateProducerIds due to stale broker epoch %d for broker %d",
            event.broker_epoch,
            event.broker_id,
        )
        event.reply(ErrorCode.STALE_BROKER_EPOCH)
    else:
        event.reply(await parts.store.allocate_producer_id_block(event.broker_id))
