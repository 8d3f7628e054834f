"""Fetches from one replica, leader or follower, as a debugging consumer (replica id -2).

The broker returns records up to the replica's high watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

DEBUGGING_CONSUMER: Final = -2
_LAST_VERSION_BY_NAME: Final = 12
_FIRST_VERSION: Final = 4


class ReplicaRecords(NamedTuple):
    """Records of a replica from an offset on. The last batch may be incomplete."""

    error: ErrorCode
    high_watermark: int
    records: memoryview


def fetch_from_replica(
    cluster: Cluster,
    broker_id: int,
    offsets: Mapping[TopicPartition, int],
    *,
    partition_bytes: int,
    max_wait_ms: int,
) -> dict[TopicPartition, ReplicaRecords]:
    """Send one Fetch for all these partitions. Returns a result for each partition in the response.

    Raises:
        ApiError: no connection or no response, or an error of the whole response.
    """
    names = sorted({tp.topic for tp in offsets})
    ids = {name: topic.topic_id for name, topic in cluster.metadata(names).topics.items()}
    topics = {name: FetchTopic(topic=name, topic_id=ids[name]) for name in names}
    for tp, offset in offsets.items():
        topics[tp.topic].partitions.append(
            FetchPartition(
                partition=tp.partition,
                fetch_offset=offset,
                partition_max_bytes=partition_bytes,
                log_start_offset=-1,
            )
        )
    request = FetchRequest(
        replica_id=DEBUGGING_CONSUMER,
        replica_state=ReplicaState(replica_id=DEBUGGING_CONSUMER),
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_epoch=-1,
        topics=list(topics.values()),
    )
    response = cluster.request(
        request,
        broker_id=broker_id,
        timeout_ms=cluster.request_timeout_ms + max_wait_ms,
        min_version=_FIRST_VERSION,
        max_version=_LAST_VERSION_BY_NAME if ZERO_UUID in ids.values() else None,
    )
    if response.error_code:
        raise ApiError(ErrorCode(response.error_code), f"Broker {broker_id} refused the fetch")
    by_id = {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(topic.topic or by_id[topic.topic_id], p.partition_index): ReplicaRecords(
            ErrorCode(p.error_code), p.high_watermark, memoryview(p.records or b"")
        )
        for topic in response.responses
        for p in topic.partitions
    }
