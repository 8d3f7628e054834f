"""Commits offsets for a group, without membership in it (OffsetCommit)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

LAST_VERSION_BY_NAME: Final = 9
"""OffsetCommit and OffsetFetch have topic ids in later versions."""


def commit_request(
    group: str, offsets: Mapping[TopicPartition, int], metadata: str = ""
) -> OffsetCommitRequest:
    """An OffsetCommit without a generation, which requires a group without members."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for (name, index), offset in offsets.items():
        topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=metadata
            )
        )
    return OffsetCommitRequest(group_id=group, topics=list(topics.values()))


def commit_offsets(
    cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int], metadata: str = ""
) -> None:
    """Set the group's next offsets. The group must have no members, as in Kafka.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID if the group has members; or the coordinator's error for a
          partition, with its name.
    """
    request = commit_request(group, offsets, metadata)

    def commit() -> None:
        response = cluster.coordinator_request(
            group, request, max_version=LAST_VERSION_BY_NAME, is_repeatable=True
        )
        for topic in response.topics:
            for partition in topic.partitions:
                code = ErrorCode(partition.error_code)
                if code is not ErrorCode.NONE:
                    topic_partition = TopicPartition(topic.name, partition.partition_index)
                    raise ApiError(code, f"Group {group}, {topic_partition}: {code.name}")

    # The errors of a moved coordinator are in the partitions, which `coordinator_request` ignores.
    cluster.retry(commit, is_repeatable=True)
