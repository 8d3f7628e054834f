"""Committed offsets of consumer groups: fetch, commit, delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafkapy.admin.errors import api_error, check
from kafkapy.admin.groups import raise_if_moved
from kafkapy.client.cluster import Cluster
from kafkapy.client.group_offsets import LAST_VERSION_BY_NAME, commit_request
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkapy.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

_NO_OFFSET: Final = -1
# The first version of OffsetFetch that can request all topics (null topics).
_ALL_TOPICS_VERSION: Final = 2


class CommittedOffset(NamedTuple):
    """A group's committed offset of a partition; a leader epoch of -1 is unknown."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def committed_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, CommittedOffset]:
    """Every committed offset of a group, by topic and partition; empty for an unknown group.

    Raises:
        ApiError: the coordinator refused.
    """
    request = OffsetFetchRequest(
        group_id=group_id,
        topics=None,
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)],
    )
    response = cluster.coordinator_request(
        group_id,
        request,
        min_version=_ALL_TOPICS_VERSION,
        max_version=LAST_VERSION_BY_NAME,
        is_repeatable=True,
    )
    answer = response.groups[0] if response.groups else response
    check(answer.error_code)
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            check(partition.error_code)
            if partition.committed_offset != _NO_OFFSET:
                found[TopicPartition(topic.name, partition.partition_index)] = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.metadata or "",
                )
    return dict(sorted(found.items()))


def commit_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set committed offsets of a group without members, with empty metadata.

    Raises:
        ApiError: the first refusal, with all partitions that were refused; others may be committed.
    """
    request = commit_request(group_id, offsets)

    def commit() -> None:
        response = cluster.coordinator_request(
            group_id, request, max_version=LAST_VERSION_BY_NAME, is_repeatable=True
        )
        codes = {
            TopicPartition(topic.name, p.partition_index): p.error_code
            for topic in response.topics
            for p in topic.partitions
        }
        for code in codes.values():
            raise_if_moved(code)
        refused = [tp for tp, code in codes.items() if code]
        if refused:
            error = api_error(codes[refused[0]])
            names = ", ".join(map(str, refused))
            raise ApiError(
                error.code,
                "Failed altering consumer group offsets for the following partitions:"
                f" [{names}]: {error.message}",
            )

    cluster.retry(commit, is_repeatable=True)


def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ApiError | None]:
    """Delete committed offsets. Returns None or the error, by partition.

    Raises:
        ApiError: the group as a whole was refused.
    """
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for name, index in partitions:
        topic = topics.setdefault(name, OffsetDeleteRequestTopic(name=name))
        topic.partitions.append(OffsetDeleteRequestPartition(partition_index=index))
    request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
    response = cluster.coordinator_request(group_id, request)
    check(response.error_code)
    return {
        TopicPartition(topic.name, p.partition_index): (
            api_error(p.error_code) if p.error_code else None
        )
        for topic in response.topics
        for p in topic.partitions
    }
