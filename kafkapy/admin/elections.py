"""Leader elections on request (ElectLeaders, KIP-183 and KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from kafkapy.admin.errors import api_error, check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition, by_topic
from kafkapy.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


class ElectionType(IntEnum):
    """`org.apache.kafka.common.ElectionType`."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    cluster: Cluster, kind: ElectionType, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, ApiError | None]:
    """Elect the leaders of `partitions` (None: all). Returns None or the error, by partition.

    With None, the brokers do not return the partitions that need no election.

    Raises:
        ApiError: no election was held.
    """
    topic_partitions = None
    if partitions is not None:
        topic_partitions = [
            TopicPartitions(topic=name, partitions=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=topic_partitions,
        timeout_ms=cluster.request_timeout_ms,
    )
    min_version = 1 if kind is ElectionType.UNCLEAN else None

    def elect() -> ElectLeadersResponse:
        answer: ElectLeadersResponse = cluster.controller_request(request, min_version=min_version)
        # Apache Kafka's former controller refuses the partitions, not the request.
        rows = (p for topic in answer.replica_election_results for p in topic.partition_result)
        if any(row.error_code == ErrorCode.NOT_CONTROLLER for row in rows):
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        return answer

    response = cluster.retry(elect)
    check(response.error_code)
    return {
        TopicPartition(topic.topic, p.partition_id): (
            None if p.error_code == ErrorCode.NONE else api_error(p.error_code, p.error_message)
        )
        for topic in response.replica_election_results
        for p in topic.partition_result
    }
