"""A scripted cluster with consumer groups: one with a member, one empty, the rest unknown."""

from __future__ import annotations

import struct
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kafkapy.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafkapy.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkapy.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafkapy.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

# A broker without the new protocol (KIP-848), as Kafka 3.9's are in ZooKeeper mode: clients send it
# DescribeGroups only. kafkapy's brokers have CONSUMER_GROUP_DESCRIBE, which is not scripted here.
VERSIONS = {
    key: (each.first, each.last)
    for key, each in API_VERSIONS.items()
    if key is not ApiKey.CONSUMER_GROUP_DESCRIBE
}
TOPICS = {"t": {0: (1, [1], [1]), 1: (1, [1], [1]), 2: (1, [1], [1])}}
# partition: (log start, log end)
LOGS = {0: (0, 10), 1: (5, 20), 2: (0, 0)}
COMMITTED = {"busy": {0: 4, 2: 0}, "idle": {0: 7, 1: 9}}
ASSIGNMENT = struct.pack(">hih1si2ii", 0, 1, 1, b"t", 2, 1, 0, -1)
MEMBER = DescribedGroupMember(
    member_id="reader-1", client_id="reader", client_host="/1.2.3.4", member_assignment=ASSIGNMENT
)
IDLE_MEMBER = DescribedGroupMember(member_id="spare-1", client_id="spare", client_host="/1.2.3.5")


def _find_coordinator(request: Any, port: int) -> FindCoordinatorResponse:
    key = request.coordinator_keys[0]
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key=key, node_id=1, host="b", port=9092)]
    )


def _describe_groups(request: Any, port: int) -> DescribeGroupsResponse:
    name = request.groups[0]
    known = {
        "busy": DescribedGroup(
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=[IDLE_MEMBER, MEMBER],
        ),
        "idle": DescribedGroup(group_state="Empty", protocol_type="consumer"),
        "connect": DescribedGroup(group_state="Stable", protocol_type="connect"),
    }
    found = known.get(name) or DescribedGroup(group_state="Dead")
    found.group_id = name
    return DescribeGroupsResponse(groups=[found])


def _list_groups(request: Any, port: int) -> ListGroupsResponse:
    groups = [
        ListedGroup(group_id=name, protocol_type=protocol, group_state=state, group_type="classic")
        for name, protocol, state in (
            ("idle", "consumer", "Empty"),
            ("connect", "connect", "Stable"),
            ("busy", "consumer", "Stable"),
        )
        if not request.states_filter or state in request.states_filter
    ]
    return ListGroupsResponse(groups=groups)


def _fetch_offsets(request: Any, port: int) -> OffsetFetchResponse:
    name = request.groups[0].group_id
    offsets = COMMITTED.get(name, {})
    partitions = [
        OffsetFetchResponsePartitions(partition_index=p, committed_offset=offset)
        for p, offset in offsets.items()
    ]
    topics = [OffsetFetchResponseTopics(name="t", partitions=partitions)] if offsets else []
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=name, topics=topics)])


def _list_offsets(request: Any, port: int) -> ListOffsetsResponse:
    def answer(index: int, timestamp: int) -> int:
        start, end = LOGS[index]
        if timestamp == -2:
            return start
        # A record a second from the epoch on.
        at = max(start, (timestamp + 999) // 1000)
        return end if timestamp == -1 else at if at < end else -1

    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(
                    partition_index=p.partition_index,
                    offset=answer(p.partition_index, p.timestamp),
                )
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def _commit_offsets(request: Any, port: int) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                OffsetCommitResponsePartition(partition_index=p.partition_index)
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return OffsetCommitResponse(topics=topics)


def _delete_groups(request: Any, port: int) -> DeleteGroupsResponse:
    codes = {"busy": ErrorCode.NON_EMPTY_GROUP, "idle": ErrorCode.NONE}
    name = request.groups_names[0]
    code = codes.get(name, ErrorCode.GROUP_ID_NOT_FOUND)
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name, error_code=code)])


def _delete_offsets(request: Any, port: int) -> OffsetDeleteResponse:
    if request.group_id not in COMMITTED:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if request.group_id == "busy" else ErrorCode.NONE
    topics = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=code)
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return OffsetDeleteResponse(topics=topics)


def group_cluster(**script: Any) -> ScriptedCluster:
    """A new cluster; `script` replaces answers, by the name of the API."""
    answers: dict[ApiKey, Any] = {
        ApiKey.METADATA: metadata(TOPICS),
        ApiKey.FIND_COORDINATOR: _find_coordinator,
        ApiKey.DESCRIBE_GROUPS: _describe_groups,
        ApiKey.LIST_GROUPS: _list_groups,
        ApiKey.OFFSET_FETCH: _fetch_offsets,
        ApiKey.LIST_OFFSETS: _list_offsets,
        ApiKey.OFFSET_COMMIT: _commit_offsets,
        ApiKey.DELETE_GROUPS: _delete_groups,
        ApiKey.OFFSET_DELETE: _delete_offsets,
    }
    named = {ApiKey[name]: answer for name, answer in script.items()}
    return ScriptedCluster(answers | named, VERSIONS)
