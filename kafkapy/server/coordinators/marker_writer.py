"""Writes transaction markers to the partitions that this broker leads (WriteTxnMarkers)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.transactions.messages import Markers
from kafkapy.coordinator.transactions.state import EPOCH_BUMP_VERSION
from kafkapy.record.control import end_transaction_marker
from kafkapy.server.coordinators.coordinator_log import append_and_wait

if TYPE_CHECKING:
    from kafkapy.server.coordinators.group_service import GroupService
    from kafkapy.server.replicas.replica_manager import ReplicaManager

OnWritten = Callable[[dict[TopicPartition, ErrorCode]], None]
"""Called with the result of each partition's marker."""


class MarkerWriter:
    """Appends markers with acks=all. In `__consumer_offsets` they commit or abort pending
    offsets."""

    def __init__(
        self, replicas: ReplicaManager, groups: GroupService, clock: Clock, timeout_ms: int
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock
        self._timeout_ms = timeout_ms

    def write(self, markers: Markers, on_written: OnWritten) -> None:
        """Append to each partition, then call `on_written` once, possibly before this returns."""
        errors: dict[TopicPartition, ErrorCode] = {}
        batch = end_transaction_marker(
            commit=markers.commit,
            producer_id=markers.producer.producer_id,
            producer_epoch=markers.producer.producer_epoch,
            coordinator_epoch=markers.coordinator_epoch,
            timestamp=self._clock.time_ms(),
        )

        def on_append(partition: TopicPartition, error: ErrorCode, _offset: int) -> None:
            errors[partition] = error
            if error is ErrorCode.NONE and partition.topic == GROUP_METADATA_TOPIC:
                self._groups.coordinator.end_transaction(
                    partition.partition, markers.producer.producer_id, committed=markers.commit
                )
            if len(errors) == len(markers.partitions):
                on_written(errors)

        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        for partition in markers.partitions:
            if self._is_duplicate(markers, partition):
                on_append(partition, ErrorCode.INVALID_PRODUCER_EPOCH, -1)
                continue
            append_and_wait(
                self._replicas, partition, batch, -1, deadline_ms, partial(on_append, partition)
            )
        if not markers.partitions:
            on_written(errors)

    def _is_duplicate(self, markers: Markers, partition: TopicPartition) -> bool:
        """Whether the producer's open transaction has the epoch of this marker: the marker was sent
        twice, and has ended the previous transaction (KIP-1228).
        """
        if markers.transaction_version < EPOCH_BUMP_VERSION:
            return False
        hosted = self._replicas.partitions.get(partition.topic, {}).get(partition.partition)
        return hosted is not None and hosted.log.producers.state.has_open_transaction(
            *markers.producer
        )
