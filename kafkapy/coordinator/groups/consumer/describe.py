"""ConsumerGroupDescribe: descriptions of consumer groups for administrators."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups.consumer.assignment import Assignment, assignment_of, partitions_of
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.group_epoch import assignor_name
from kafkapy.coordinator.groups.consumer.messages import (
    CONSUMER_GROUP_TYPE,
    DescribeConsumerGroups,
    DescribeConsumerGroupsResult,
    DescribedConsumer,
    DescribedConsumerGroup,
    NamedPartitions,
)
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.share.messages import (
    SHARE_GROUP_TYPE,
    SIMPLE_ASSIGNOR,
    DescribeShareGroups,
)


def describe_consumer_groups(core: Core, token: Token, request: DescribeConsumerGroups) -> None:
    """Kafka: `GroupMetadataManager.consumerGroupDescribe`."""
    groups = [_describe(core, group_id, CONSUMER_GROUP_TYPE) for group_id in request.group_ids]
    core.outbox.reply(token, DescribeConsumerGroupsResult(groups))


def describe_share_groups(core: Core, token: Token, request: DescribeShareGroups) -> None:
    """Kafka: `GroupMetadataManager.shareGroupDescribe`."""
    groups = [_describe(core, group_id, SHARE_GROUP_TYPE) for group_id in request.group_ids]
    core.outbox.reply(token, DescribeConsumerGroupsResult(groups))


def _describe(core: Core, group_id: str, group_type: str) -> DescribedConsumerGroup:
    error = core.registry.check(group_id)
    if error is not ErrorCode.NONE:
        return DescribedConsumerGroup(group_id, error)
    group = core.registry.find(group_id)
    if group is None or group.consumer is None or group.consumer.group_type != group_type:
        reason = "not found" if group is None else f"is not a {group_type} group"
        message = f"Group {group_id} {reason}."
        return DescribedConsumerGroup(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)
    consumer = group.consumer
    return DescribedConsumerGroup(
        group_id,
        state=consumer.state,
        epoch=consumer.epoch,
        target_epoch=consumer.target_epoch,
        assignor=(
            assignor_name(consumer, core.config.assignors)
            if group_type == CONSUMER_GROUP_TYPE
            else SIMPLE_ASSIGNOR
        ),
        members=[_member(core, consumer, member_id) for member_id in consumer.members],
    )


def _member(core: Core, group: ConsumerGroup, member_id: str) -> DescribedConsumer:
    member, current = group.members[member_id], group.current_of(member_id)
    return DescribedConsumer(
        member_id,
        member.instance_id,
        member.rack_id,
        current.member_epoch,
        member.client_id,
        member.client_host,
        member.subscribed_names,
        member.subscribed_regex,
        member.classic is not None,
        _named_partitions(
            core,
            assignment_of({*partitions_of(current.assigned), *partitions_of(current.revoking)}),
        ),
        _named_partitions(core, group.target_of(member_id).assignment),
    )


def _named_partitions(core: Core, assignment: Assignment) -> list[NamedPartitions]:
    """The partitions with topic names, without deleted topics."""
    rows = []
    for topic_id, indexes in assignment.items():
        name = core.topics.name_of(topic_id)
        if name is not None:
            rows.append(NamedPartitions(topic_id, name, sorted(indexes)))
    return sorted(rows, key=lambda row: row.topic)
