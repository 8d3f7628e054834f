"""Producer ids for InitProducerId, from blocks of 1000 that no other broker has."""

from __future__ import annotations

import asyncio
import logging

from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.zk.stores.store import ZkStore

_log = logging.getLogger("kafka.coordinator.transaction.ProducerIdManager")


class ProducerIdManager:
    """Allocates ids; every 1000th waits for the next block. A restart loses the rest of a block."""

    def __init__(self, broker_id: int, store: ZkStore) -> None:
        self._broker_id = broker_id
        self._store = store
        self._next = 0
        self._end = -1
        self._lock = asyncio.Lock()

    async def next_id(self) -> int:
        """A producer id that was never allocated before.

        Raises:
            ApiError: COORDINATOR_LOAD_IN_PROGRESS, which clients retry: the block allocation
            failed.
        """
        async with self._lock:
            if self._next > self._end:
                try:
                    block = await self._store.allocate_producer_id_block(self._broker_id)
                except KafkapyError as error:
                    _log.error("Could not allocate a block of producer ids: %s", error)
                    raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from error
                self._next, self._end = block.start, block.end
            producer_id = self._next
            self._next += 1
            return producer_id
