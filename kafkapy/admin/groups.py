"""Consumer groups: list, describe, delete (AdminClient's part of `ConsumerGroupCommand`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafkapy.admin.all_coordinators import request_all_brokers
from kafkapy.admin.errors import api_error, check
from kafkapy.client.cluster import MOVED_ERRORS, Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.client.metadata import Broker
from kafkapy.common.consumer_protocol import CONSUMER_PROTOCOL_TYPE, read_assignment
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkapy.protocol.messages.delete_groups import DeleteGroupsRequest
from kafkapy.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest

CLASSIC: Final = "Classic"
CONSUMER: Final = "Consumer"
GROUP_TYPES: Final = (CONSUMER, CLASSIC)

# The versions of ListGroups that filter by state (KIP-518) and by type (KIP-848).
_STATES_VERSION: Final = 4
_TYPES_VERSION: Final = 5
# The errors for a group that does not use the new protocol, or a broker that does not have it.
_CLASSIC_GROUP_ERRORS: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}
)


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group in a list. `state` and `type` are empty if a broker is too old to return them."""

    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member. `host` is the broker's text, such as `/127.0.0.1`. Only members of groups of the
    consumer protocol have an epoch and a target."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None
    target: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group. The state of an unknown one is Dead, as in brokers' responses. `assignor` may be
    empty. Only groups of the consumer protocol have epochs.
    """

    group_id: str
    state: str
    type: str
    assignor: str
    coordinator: Broker
    members: tuple[GroupMember, ...]
    epoch: int | None = None
    target_epoch: int | None = None


def list_groups(
    cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[GroupListing]:
    """The consumer groups of every broker, sorted by id. See `list_all_groups`."""
    found = list_all_groups(cluster, states, types)
    return [each for each in found if each.protocol_type in (CONSUMER_PROTOCOL_TYPE, "")]


def list_all_groups(
    cluster: Cluster, states: Sequence[str] = (), types: Sequence[str] = ()
) -> list[GroupListing]:
    """The groups of every broker and of all kinds, sorted by id. An empty filter matches all.

    Raises:
        ApiError: a broker refused, or is too old for a filter.
    """
    min_version = _TYPES_VERSION if types else _STATES_VERSION if states else None
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    found: dict[str, GroupListing] = {}
    for _, response in request_all_brokers(cluster, request, min_version):
        for group in response.groups:
            found[group.group_id] = GroupListing(
                group.group_id,
                group.protocol_type,
                group.group_state,
                # Brokers write it in upper or lower case (`GroupType.parse`).
                group.group_type.capitalize(),
            )
    return [found[group_id] for group_id in sorted(found)]


def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """One group, of either protocol.

    Raises:
        ApiError: its coordinator refused, or it is not a consumer group.
    """

    def describe() -> GroupDescription:
        coordinator = find_coordinator(cluster, group_id)
        broker = cluster.broker(coordinator)
        if ApiKey.CONSUMER_GROUP_DESCRIBE in cluster.channel(coordinator).api_versions:
            request = ConsumerGroupDescribeRequest(group_ids=[group_id])
            found = cluster.request(request, broker_id=coordinator).groups[0]
            if found.error_code not in _CLASSIC_GROUP_ERRORS:
                check(found.error_code, found.error_message)
                return _consumer_group(found, broker)
        classic = DescribeGroupsRequest(groups=[group_id])
        found = cluster.request(classic, broker_id=coordinator).groups[0]
        check(found.error_code)
        return _classic_group(found, broker)

    described: GroupDescription = cluster.retry(describe, is_repeatable=True)
    return described


def delete_groups(cluster: Cluster, group_ids: Sequence[str]) -> dict[str, ApiError | None]:
    """Delete groups, each at its coordinator. Returns None or the error, by group."""
    results: dict[str, ApiError | None] = {}
    for group_id in dict.fromkeys(group_ids):
        request = DeleteGroupsRequest(groups_names=[group_id])
        try:
            result = cluster.coordinator_request(group_id, request).results[0]
        except ApiError as error:
            results[group_id] = error
            continue
        results[group_id] = api_error(result.error_code) if result.error_code else None
    return results


def _classic_group(found: Any, coordinator: Broker) -> GroupDescription:
    if found.protocol_type not in (CONSUMER_PROTOCOL_TYPE, ""):
        raise ApiError(
            ErrorCode.INVALID_GROUP_ID,
            f"GroupId {found.group_id} is not a consumer group ({found.protocol_type}).",
        )
    members = tuple(
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            _partitions(member.member_assignment),
        )
        for member in found.members
    )
    return GroupDescription(
        found.group_id, found.group_state, CLASSIC, found.protocol_data, coordinator, members
    )


def _partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    try:
        return read_assignment(assignment).partitions
    except ValueError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def _consumer_group(found: Any, coordinator: Broker) -> GroupDescription:
    members = tuple(
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            _named_partitions(member.assignment),
            member.member_epoch,
            _named_partitions(member.target_assignment),
        )
        for member in found.members
    )
    return GroupDescription(
        found.group_id,
        found.group_state,
        CONSUMER,
        found.assignor_name,
        coordinator,
        members,
        found.group_epoch,
        found.assignment_epoch,
    )


def _named_partitions(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def raise_if_moved(code: int) -> None:
    """Raise the exception for a code, if the caller must retry.

    Raises:
        ApiError: the group has another coordinator now.
    """
    if code in MOVED_ERRORS:
        raise ApiError(ErrorCode(code))
