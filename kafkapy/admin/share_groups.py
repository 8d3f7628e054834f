"""Share groups: list, describe, and their offsets (AdminClient's part of `ShareGroupCommand`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kafkapy.admin.errors import api_error, check
from kafkapy.admin.groups import GroupListing, list_all_groups
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.client.metadata import Broker
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import TopicPartition, by_topic
from kafkapy.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kafkapy.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kafkapy.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kafkapy.protocol.messages.share_group_describe import ShareGroupDescribeRequest

SHARE: Final = "Share"
STATES: Final = ("Stable", "Empty", "Dead")


@dataclass(frozen=True, slots=True)
class ShareMember:
    """One member. `host` is the broker's text, such as `/127.0.0.1`."""

    member_id: str
    client_id: str
    host: str
    epoch: int
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ShareGroupDescription:
    """One group."""

    group_id: str
    state: str
    coordinator: Broker
    epoch: int
    assignment_epoch: int
    members: tuple[ShareMember, ...]


class ShareOffset(NamedTuple):
    """The first offset that is left to deliver, and the lag; None if unknown."""

    leader_epoch: int
    start_offset: int | None
    lag: int | None


def list_share_groups(cluster: Cluster, states: Sequence[str] = ()) -> list[GroupListing]:
    """The share groups of every broker, sorted by id.

    Raises:
        ApiError: a broker refused, or is too old.
    """
    return list_all_groups(cluster, states, [SHARE])


def describe_share_group(cluster: Cluster, group_id: str) -> ShareGroupDescription:
    """One group.

    Raises:
        ApiError: its coordinator refused, or the group does not exist.
    """
    request = ShareGroupDescribeRequest(group_ids=[group_id])
    found = cluster.coordinator_request(group_id, request, is_repeatable=True).groups[0]
    check(found.error_code, found.error_message)
    return ShareGroupDescription(
        found.group_id,
        found.group_state,
        cluster.broker(find_coordinator(cluster, group_id)),
        found.group_epoch,
        found.assignment_epoch,
        tuple(_member(member) for member in found.members),
    )


def _member(member: Any) -> ShareMember:
    assignment = tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    )
    return ShareMember(
        member.member_id, member.client_id, member.client_host, member.member_epoch, assignment
    )


def share_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, ShareOffset]:
    """The offsets of all share partitions of a group.

    Raises:
        ApiError: the coordinator refused.
    """
    group = DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[group])
    answer = cluster.coordinator_request(group_id, request, is_repeatable=True).groups[0]
    check(answer.error_code, answer.error_message)
    found = {}
    for topic in answer.topics:
        for row in topic.partitions:
            check(row.error_code, row.error_message)
            found[TopicPartition(topic.topic_name, row.partition_index)] = ShareOffset(
                row.leader_epoch, _none_if_negative(row.start_offset), _none_if_negative(row.lag)
            )
    return dict(sorted(found.items()))


def _none_if_negative(value: int) -> int | None:
    return None if value < 0 else value


def alter_share_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, ApiError | None]:
    """Set the start offsets of share partitions. Returns None or the error, by partition.

    Raises:
        ApiError: the group has members, or its coordinator refused.
    """
    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=topic,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=index, start_offset=offsets[TopicPartition(topic, index)]
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
    answer = cluster.coordinator_request(group_id, request)
    check(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.topic_name, row.partition_index): _error(row)
        for topic in answer.responses
        for row in topic.partitions
    }


def delete_share_offsets(
    cluster: Cluster, group_id: str, topics: Sequence[str]
) -> dict[str, ApiError | None]:
    """Delete a group's offsets of topics. Returns None or the error, by topic.

    Raises:
        ApiError: the group has members, or its coordinator refused.
    """
    rows = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=rows)
    answer = cluster.coordinator_request(group_id, request)
    check(answer.error_code, answer.error_message)
    return {topic.topic_name: _error(topic) for topic in answer.responses}


def _error(row: Any) -> ApiError | None:
    return api_error(row.error_code, row.error_message) if row.error_code else None
