"""DescribeProducers (key 61), version 0 (KIP-664).

Behaviour: the state of each partition's producers at its leader, and the start offsets of their
open transactions.
"""

from __future__ import annotations

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.turns import ROW_UNITS, Work
from kafkapy.storage.producer_state import ProducerEntry


def handle(
    replicas: ReplicaManager, context: RequestContext, request: DescribeProducersRequest
) -> Work[DescribeProducersResponse]:
    """Describe the producers of each partition, once."""
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        yield 1 + len(topic.partition_indexes) // ROW_UNITS
    topics = []
    for name, indexes in wanted.items():
        rows = []
        for index in indexes:
            row = _describe(replicas, name, index)
            rows.append(row)
            yield ROW_UNITS + len(row.active_producers)
        topics.append(TopicResponse(name=name, partitions=rows))
        yield 1
    return DescribeProducersResponse(topics=topics)


def _describe(replicas: ReplicaManager, topic: str, index: int) -> PartitionResponse:
    try:
        partition = replicas.get(topic, index)
    except ApiError as error:
        return _refusal(index, error.code)
    entries = partition.log.producers.state
    return PartitionResponse(
        partition_index=index, active_producers=[_producer(entry) for entry in entries]
    )


def _refusal(index: int, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=code.name)


def _producer(entry: ProducerEntry) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.transaction_first_offset,
    )


def refuse(
    request: DescribeProducersRequest, error: ApiError, version: int
) -> DescribeProducersResponse:
    """The error for each partition."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_refusal(index, error.code) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )
