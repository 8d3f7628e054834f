"""Sends the markers of decided transactions to the leaders of their partitions
(`kafka.coordinator.transaction.TransactionMarkerChannelManager`).

The markers for one broker in one turn of the event loop go in one request. Nothing is kept or
retried here: the coordinator gets the outcome of each partition, and sends markers again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition, by_topic
from kafkapy.coordinator.transactions.messages import Markers
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafkapy.server.coordinators.coordinator_log import CallLater
from kafkapy.server.coordinators.marker_writer import MarkerWriter
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients

_VERSION = 1

OnMarked = Callable[[Markers, Mapping[TopicPartition, ErrorCode]], None]


class MarkerSender:
    """Fixed: this broker's id, its writer, and the clients of the other brokers.
    `is_metadata_complete()` returns whether the metadata is the cluster's, not that of a broker
    that has just started."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        writer: MarkerWriter,
        nodes: NodeClients,
        call_later: CallLater,
        is_metadata_complete: Callable[[], bool],
    ) -> None:
        self._is_metadata_complete = is_metadata_complete
        self._call_later = call_later
        self._broker_id = broker_id
        self._metadata = metadata
        self._writer = writer
        self._nodes = nodes
        self._queued: dict[int, list[tuple[Markers, OnMarked]]] = {}

    def send(self, markers: Markers, on_marked: OnMarked) -> None:
        """Send the markers of a decision. `on_marked` gets the outcome of each partition once,
        later."""
        by_leader: dict[int, list[TopicPartition]] = {}
        unsent: dict[TopicPartition, ErrorCode] = {}
        image = self._metadata.image
        for partition in markers.partitions:
            known = image.partition(*partition)
            if known is None and self._is_metadata_complete():
                unsent[partition] = ErrorCode.NONE  # deleted: no client reads it any more
            elif known is None or known.leader < 0:
                unsent[partition] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                by_leader.setdefault(known.leader, []).append(partition)
        if unsent:
            self._call_later(0, partial(on_marked, markers, unsent))
        for leader, partitions in by_leader.items():
            if leader not in self._queued:
                self._queued[leader] = []
                self._call_later(0, partial(self._flush, leader))
            part = markers._replace(partitions=tuple(partitions))
            self._queued[leader].append((part, on_marked))

    def _flush(self, leader: int) -> None:
        queued = self._queued.pop(leader, [])
        if leader == self._broker_id:
            for markers, on_marked in queued:
                self._writer.write(markers, partial(on_marked, markers))
            return
        request = WriteTxnMarkersRequest(markers=[_wire(markers) for markers, _ in queued])
        try:
            self._nodes.client_for(leader).call(request, _VERSION, partial(_on_response, queued))
        except NodeUnavailable:
            _report(queued, {})

    def close(self) -> None:
        """Drop the queued markers and the connections."""
        self._queued.clear()
        self._nodes.close()


def _wire(markers: Markers) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=markers.producer.producer_id,
        producer_epoch=markers.producer.producer_epoch,
        transaction_result=markers.commit,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic(markers.partitions).items()
        ],
        coordinator_epoch=markers.coordinator_epoch,
        transaction_version=markers.transaction_version,
    )


def _on_response(queued: Iterable[tuple[Markers, OnMarked]], answer: Any) -> None:
    errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
    if not isinstance(answer, NodeUnavailable):
        for row in answer.markers:
            found = errors.setdefault(row.producer_id, {})
            for topic in row.topics:
                for partition in topic.partitions:
                    code = ErrorCode(partition.error_code)
                    found[TopicPartition(topic.name, partition.partition_index)] = code
    _report(queued, errors)


def _report(
    queued: Iterable[tuple[Markers, OnMarked]],
    errors: Mapping[int, Mapping[TopicPartition, ErrorCode]],
) -> None:
    """Report each partition. One that is not in the response gets NETWORK_EXCEPTION: its marker may
    not have been written."""
    for markers, on_marked in queued:
        found = errors.get(markers.producer.producer_id, {})
        on_marked(
            markers,
            {p: found.get(p, ErrorCode.NETWORK_EXCEPTION) for p in markers.partitions},
        )
