"""Waits for the previous session's registration to expire.

A killed broker stays registered until its session expires. Until then, Apache Kafka fails to start,
with NodeExists (`KafkaZkClient.registerBroker`), and a supervisor must retry; here the start waits.
A second broker with a used id waits too, and then is refused.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkapy.zk.stores.broker_store import BrokerStore

logger = logging.getLogger("kafka.server.KafkaServer")

# ZooKeeper ends sessions at its next tick, and a session timeout is at least two ticks.
_SESSION_TIMEOUTS_TO_WAIT: Final = 1.5


async def wait_until_expired(brokers: BrokerStore, broker_id: int, session_timeout_ms: int) -> None:
    """Wait until the session that now registers `broker_id`, if any, no longer does.

    Returns after one and a half session timeouts in any case: the registered broker is then alive.
    """
    changed = asyncio.Event()
    owner = await brokers.owner(broker_id, lambda _: changed.set())
    if not owner:
        return
    limit_s = _SESSION_TIMEOUTS_TO_WAIT * session_timeout_ms / 1000
    logger.warning(
        "Broker %d is still registered by session 0x%x, which is its last life's or another"
        " broker's; waiting up to %g s for it to expire",
        broker_id,
        owner,
        limit_s,
    )
    try:
        async with asyncio.timeout(limit_s):
            while await brokers.owner(broker_id, lambda _: changed.set()) == owner:
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return
