"""Eligible leader replicas (KIP-966): replicas outside the ISR with all committed records.

Only brokers in KRaft mode have them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafkapy.client.cluster import Cluster
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)

# The number of partitions in a response (`--partition-size-limit-per-response`).
PAGE_SIZE: Final = 2000


class EligibleLeaders(NamedTuple):
    """Eligible leaders outside the ISR, and those last known."""

    replicas: tuple[int, ...]
    last_known: tuple[int, ...]


def eligible_leaders(
    cluster: Cluster, topics: Iterable[str], page_size: int = PAGE_SIZE
) -> dict[TopicPartition, EligibleLeaders]:
    """Eligible leaders by partition, as far as known; empty if the broker does not have the API.

    Raises:
        ApiError: no response.
    """
    served = cluster.channel().api_versions
    # Brokers in ZooKeeper mode have no eligible leaders, although kafkapy's serve the API.
    if ApiKey.DESCRIBE_TOPIC_PARTITIONS not in served or ApiKey.LEADER_AND_ISR in served:
        return {}
    found: dict[TopicPartition, EligibleLeaders] = {}
    rows = [TopicRequest(name=name) for name in sorted(topics)]
    request = DescribeTopicPartitionsRequest(topics=rows, response_partition_limit=page_size)
    while True:
        response = cluster.request(request)
        for topic in response.topics:
            for each in topic.partitions:
                if each.eligible_leader_replicas is not None:
                    found[TopicPartition(topic.name, each.partition_index)] = EligibleLeaders(
                        tuple(each.eligible_leader_replicas), tuple(each.last_known_elr or ())
                    )
        cursor = response.next_cursor
        if cursor is None:
            return found
        request.cursor = Cursor(
            topic_name=cursor.topic_name, partition_index=cursor.partition_index
        )
