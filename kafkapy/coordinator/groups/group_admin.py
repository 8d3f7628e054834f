"""DescribeGroups, ListGroups and DeleteGroups: the requests of administrators."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import DEAD, STABLE, Group
from kafkapy.coordinator.groups.messages import (
    DeleteGroups,
    DeleteGroupsResult,
    DescribedGroup,
    DescribedMember,
    DescribeGroups,
    DescribeGroupsResult,
    ListedGroup,
    ListGroups,
    ListGroupsResult,
)
from kafkapy.coordinator.groups.share.share_group import ShareGroup

_UNITS_AT_ONCE: Final = 256


def describe_groups(core: Core, token: Token, request: DescribeGroups) -> None:
    """Kafka: `GroupCoordinator.handleDescribeGroup`, for each."""
    groups = [_describe(core, group_id) for group_id in request.group_ids]
    core.outbox.reply(token, DescribeGroupsResult(groups))


def _describe(core: Core, group_id: str) -> DescribedGroup:
    error = core.registry.check(group_id, empty_id=True)
    if error is not ErrorCode.NONE:
        return DescribedGroup(group_id, error)
    group = core.registry.find(group_id)
    if group is None or group.consumer is not None:  # consumer groups have their own API
        return DescribedGroup(group_id, state=DEAD)
    stable = group.state is STABLE
    described = DescribedGroup(group_id, state=group.state, protocol_type=group.protocol_type or "")
    if stable:
        described.protocol_data = group.protocol_name or ""
    for member in group.members.values():
        described.members.append(
            DescribedMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.metadata(group.protocol_name) if stable else b"",
                member.assignment if stable else b"",
            )
        )
    return described


def list_groups(core: Core, token: Token, request: ListGroups) -> None:
    """Kafka: `GroupCoordinator.handleListGroups` (filters: KIP-518, KIP-848)."""
    if not core.registry.active:
        core.outbox.reply(token, ListGroupsResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    loading = core.registry.loading
    error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
    core.outbox.reply(token, ListGroupsResult(error, _listed(core, request)))


def _listed(core: Core, request: ListGroups) -> Iterator[list[ListedGroup]]:
    """The rows of groups that match. Groups may be replaced or removed between two pieces."""
    states = {state.lower() for state in request.states_filter}
    types = {group_type.lower() for group_type in request.types_filter}
    rows: list[ListedGroup] = []
    units = 0
    for partition in [each for each in core.registry.partitions.values() if not each.loading]:
        for group_id in [*partition.groups]:
            group = partition.groups.get(group_id)
            if group is None or group.state is DEAD:
                continue
            row = _listed_group(group)
            if (not states or row.state.lower() in states) and (
                not types or row.group_type in types
            ):
                rows.append(row)
            # The state of a consumer group depends on all its members.
            units += 1 if group.consumer is None else 1 + len(group.consumer.members)
            if units >= _UNITS_AT_ONCE:
                yield rows
                rows, units = [], 0
    yield rows


def _listed_group(group: Group) -> ListedGroup:
    if group.consumer is None:
        return ListedGroup(group.group_id, group.protocol_type or "", group.state)
    consumer = group.consumer
    return ListedGroup(group.group_id, consumer.protocol_type, consumer.state, consumer.group_type)


def delete_groups(core: Core, token: Token, request: DeleteGroups) -> None:
    """The answer waits until the deletions are replicated.

    Kafka: `GroupCoordinator.handleDeleteGroups`, which does not wait.
    """
    errors = {
        group_id: _deletion_error(core, group_id) for group_id in dict.fromkeys(request.group_ids)
    }
    to_delete = [group_id for group_id, error in errors.items() if error is ErrorCode.NONE]
    ticket = core.outbox.hold(token)
    waiting = set(to_delete)

    def deleted(group_id: str, error: ErrorCode) -> None:
        errors[group_id] = error
        waiting.discard(group_id)
        if not waiting:
            core.outbox.answer(ticket, DeleteGroupsResult(errors))

    for group_id in to_delete:
        group = core.registry.find(group_id)
        assert group is not None, f"{group_id} is not there"
        core.delete_offsets(group, group.offsets.partitions, partial(deleted, group_id))
    if not to_delete:
        core.outbox.answer(ticket, DeleteGroupsResult(errors))


def _deletion_error(core: Core, group_id: str) -> ErrorCode:
    """The reason why the group cannot be deleted, or NONE."""
    error = core.registry.check(group_id, empty_id=True)
    if error is not ErrorCode.NONE:
        return error
    group = core.registry.find(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if not group.is_empty:
        return ErrorCode.NON_EMPTY_GROUP
    if isinstance(group.consumer, ShareGroup) and group.consumer.has_states:
        return ErrorCode.NON_EMPTY_GROUP  # initialized since the deletion of its states
    return ErrorCode.NONE
