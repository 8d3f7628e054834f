"""Reassignments of partitions (KIP-455): list, start, cancel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafkapy.admin.batches import batches
from kafkapy.admin.errors import api_error, check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.common.topic_partition import TopicPartition, by_topic
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


class ReassignmentFailed(KafkapyError):
    """A reassignment failed. Kafka's tool prints the message without "Error: "."""


class Reassignment(NamedTuple):
    """The replicas that a partition adds and removes, and all that it has meanwhile."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]
    replicas: tuple[int, ...] = ()

    def before(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """The replicas without the added ones; `replicas` are those of Metadata."""
        return self._without(self.adding, replicas)

    def after(self, replicas: Sequence[int]) -> tuple[int, ...]:
        """The replicas without the removed ones; `replicas` are those of Metadata."""
        return self._without(self.removing, replicas)

    def _without(self, leaving: Sequence[int], replicas: Sequence[int]) -> tuple[int, ...]:
        # Other replicas are from before or after this reassignment, and complete.
        is_moving = set(replicas) == set(self.replicas)
        return tuple(b for b in replicas if not (is_moving and b in leaving))


def list_reassignments(cluster: Cluster) -> dict[TopicPartition, Reassignment]:
    """Every running reassignment. The result is empty if the broker does not support or allow the
    request, because `topics --describe` must not fail then.

    Raises:
        ApiError: any other error.
    """
    try:
        return running_reassignments(cluster)
    except ApiError as error:
        if error.code in (
            ErrorCode.UNSUPPORTED_VERSION,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ):
            return {}
        raise


def running_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """The running reassignments: all of them, or those of `partitions`.

    Raises:
        ApiError: the controller refused, or does not have the API (before Kafka 2.4).
    """
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(
        timeout_ms=cluster.request_timeout_ms, topics=topics
    )
    response = cluster.controller_request(request)
    check(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, p.partition_index): Reassignment(
            tuple(p.adding_replicas), tuple(p.removing_replicas), tuple(p.replicas)
        )
        for topic in response.topics
        for p in topic.partitions
    }


def alter_reassignments(
    cluster: Cluster, targets: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, ApiError]:
    """Move partitions to their target replicas; None cancels. Returns the refusals.

    Raises:
        ApiError: a request was refused, or not answered. Moves of earlier requests have begun.
    """
    refused: dict[TopicPartition, ApiError] = {}
    for partitions in batches(list(targets)):
        refused |= _alter(cluster, {tp: targets[tp] for tp in partitions})
    return refused


def _alter(
    cluster: Cluster, targets: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, ApiError]:
    topics = [
        ReassignableTopic(
            name=name,
            partitions=[
                ReassignablePartition(
                    partition_index=index,
                    replicas=None
                    if (to := targets[TopicPartition(name, index)]) is None
                    else [*to],
                )
                for index in indexes
            ],
        )
        for name, indexes in by_topic(targets).items()
    ]
    response = cluster.controller_request(
        AlterPartitionReassignmentsRequest(timeout_ms=cluster.request_timeout_ms, topics=topics)
    )
    check(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, p.partition_index): api_error(p.error_code, p.error_message)
        for topic in response.responses
        for p in topic.partitions
        if p.error_code != ErrorCode.NONE
    }
