"""Runs the transaction coordinator, over `__transaction_state`, and adds producer ids and
markers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.transactions.messages import (
    EndTransaction,
    EndTransactionResult,
    InitProducerId,
    InitProducerIdResult,
    Markers,
    TransactionEffects,
)
from kafkapy.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kafkapy.record.codec import Codec
from kafkapy.server.coordinators.coordinator_log import CallLater, CoordinatorLog
from kafkapy.server.coordinators.coordinator_service import CoordinatorService

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition
    from kafkapy.server.cluster.producer_ids import ProducerIdManager
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.coordinators.marker_sender import MarkerSender
    from kafkapy.server.replicas.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.coordinator.transaction.TransactionCoordinator")

Spawn = Callable[[Coroutine[Any, Any, None]], None]


class TransactionService(CoordinatorService[TransactionCoordinator, TransactionEffects]):
    """Drives one `TransactionCoordinator` on the event loop."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        replicas: ReplicaManager,
        clock: Clock,
        config: KafkaConfig,
        call_later: CallLater,
        *,
        producer_ids: ProducerIdManager,
        markers: MarkerSender,
        spawn: Spawn,
    ) -> None:
        log = CoordinatorLog(
            TRANSACTION_STATE_TOPIC,
            replicas,
            clock,
            call_later,
            codec=Codec.NONE,
            timeout_ms=config.get_int("request.timeout.ms"),
            load_buffer_bytes=config.get_int("transaction.state.log.load.buffer.size"),
            logger=logger,
        )
        super().__init__(coordinator, log, clock, call_later)
        self._producer_ids = producer_ids
        self._markers = markers
        self._spawn = spawn

    def _finish_loading(self, partition: Partition, end_offset: int) -> None:
        super()._finish_loading(partition, end_offset)
        index, epoch = partition.topic_partition.partition, partition.leader_epoch
        resume = self.coordinator.loaded_is_replicated
        self._log.when_replicated(
            partition, end_offset, lambda: self.run(lambda now_ms: resume(now_ms, index, epoch))
        )

    def _perform(self, effects: TransactionEffects) -> None:
        super()._perform(effects)
        for token, request in effects.awaiting_producer_id:
            self._spawn(self._with_producer_id(token, request))
        for decision in effects.markers:
            self._markers.send(decision, self._marked)

    async def _with_producer_id(
        self, token: Token, request: InitProducerId | EndTransaction
    ) -> None:
        is_end = isinstance(request, EndTransaction)
        try:
            producer_id = await self._producer_ids.next_id()
        except ApiError as error:
            result = EndTransactionResult if is_end else InitProducerIdResult
            token.answer(result(error.code))  # type: ignore[attr-defined]
            return
        retry = replace(request, new_producer_id=producer_id)
        self.run(lambda now_ms: self.coordinator.repeat_with_producer_id(now_ms, token, retry))

    def _marked(self, decision: Markers, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        self.run(lambda now_ms: self.coordinator.markers_written(now_ms, decision, errors))

    def stop(self) -> None:
        super().stop()
        self._markers.close()
