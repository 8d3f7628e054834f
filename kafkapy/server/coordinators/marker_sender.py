"""Decided transactions to the leaders of their partitions
(`kafka.coordinator.transaction.TransactionMarkerChannelManager`).

What is to be sent to a broker in one turn of the event loop goes in one request. Nothing is kept or
repeated here: the coordinator is told what became of each partition, and asks again.
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

Marked = Callable[[Markers, Mapping[TopicPartition, ErrorCode]], None]


class MarkerSender:
    """Fixed: this broker's id, its writer, and the way to the others. `knows_metadata()`: the
    metadata is that of the cluster, not of a broker that has just started."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        writer: MarkerWriter,
        nodes: NodeClients,
        call_later: CallLater,
        knows_metadata: Callable[[], bool],
    ) -> None:
        self._knows_metadata = knows_metadata
        self._call_later = call_later
        self._broker_id = broker_id
        self._metadata = metadata
        self._writer = writer
        self._nodes = nodes
        self._queued: dict[int, list[tuple[Markers, Marked]]] = {}

    def send(self, markers: Markers, marked: Marked) -> None:
        """Send a decision's markers; `marked` is told of each partition once, later."""
        by_leader: dict[int, list[TopicPartition]] = {}
        unsent: dict[TopicPartition, ErrorCode] = {}
        image = self._metadata.image
        for partition in markers.partitions:
            known = image.partition(*partition)
            if known is None and self._knows_metadata():
                unsent[partition] = ErrorCode.NONE  # deleted: nobody reads it any more
            elif known is None or known.leader < 0:
                unsent[partition] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                by_leader.setdefault(known.leader, []).append(partition)
        if unsent:
            self._call_later(0, partial(marked, markers, unsent))
        for leader, partitions in by_leader.items():
            if leader not in self._queued:
                self._queued[leader] = []
                self._call_later(0, partial(self._flush, leader))
            part = markers._replace(partitions=tuple(partitions))
            self._queued[leader].append((part, marked))

    def _flush(self, leader: int) -> None:
        queued = self._queued.pop(leader, [])
        if leader == self._broker_id:
            for markers, marked in queued:
                self._writer.write(markers, partial(marked, markers))
            return
        request = WriteTxnMarkersRequest(markers=[_wire(markers) for markers, _ in queued])
        try:
            self._nodes.of(leader).call(request, _VERSION, partial(_answered, queued))
        except NodeUnavailable:
            _report(queued, {})

    def close(self) -> None:
        """Send nothing any more."""
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


def _answered(queued: Iterable[tuple[Markers, Marked]], answer: Any) -> None:
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
    queued: Iterable[tuple[Markers, Marked]],
    errors: Mapping[int, Mapping[TopicPartition, ErrorCode]],
) -> None:
    """Tell of each partition; one that the answer does not name may not have been reached."""
    for markers, marked in queued:
        found = errors.get(markers.producer.producer_id, {})
        marked(
            markers,
            {p: found.get(p, ErrorCode.NETWORK_EXCEPTION) for p in markers.partitions},
        )
