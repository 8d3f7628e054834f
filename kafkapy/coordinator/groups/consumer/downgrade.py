"""Downgrades: a consumer group in which only classic members remain becomes a classic group.

Its generation is the group's epoch. One batch deletes the old records and writes the new one.
Members keep the partitions that they have not revoked yet. Kafka assigns the targets. But the group
may become a consumer group again before its rebalance, and then a partition would have two members.

Kafka: `GroupMetadataManager.convertToClassicGroup`.
"""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.common.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    encode_assignment,
    version_of,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import deadlines
from kafkapy.coordinator.groups.consumer.assignment import (
    Assignment,
    assignment_of,
    by_topic_name,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.log_writes import Answer
from kafkapy.coordinator.groups.consumer.records import MemberMetadata
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.member import Member


def may_downgrade(
    core: Core, group: ConsumerGroup, removed_members: Collection[str], size: int
) -> bool:
    """Whether the group becomes a classic group when `removed_members` leave or are replaced.
    It then has `size` members."""
    if not size or not group.holds_offsets or not group.all_classic(removed_members):
        return False
    reason = None
    if not core.config.may_downgrade_groups:
        reason = "the online downgrade is disabled"
    elif size > core.config.group_max_size:
        reason = "its group size is greater than classic group max size"
    if reason is not None:
        core.log.info(
            "Cannot downgrade consumer group %s to classic group because %s.",
            group.group_id,
            reason,
        )
    return reason is None


def replace_by_empty_classic(core: Core, group: Group, consumer: ConsumerGroup) -> Group:
    """Replace a consumer group by an Empty classic group, whose next batch deletes the old
    records."""
    new = core.replace_group(group)
    new.consumer_keys = tuple(consumer.record_keys())
    return new


def downgrade(
    core: Core,
    now_ms: int,
    group: Group,
    members: dict[str, MemberMetadata],
    answer: Answer | None = None,
) -> Group:
    """Replace the consumer group by a Stable classic group with these members. The answer waits
    until the change is in the log. If the append fails, the next generation's batch includes the
    change."""
    consumer = group.consumer
    assert consumer is not None, f"{group.group_id} is a classic group"
    deadlines.cancel_all(core, consumer)
    new = replace_by_empty_classic(core, group, consumer)
    for member_id, described in members.items():
        new.add(_member(member_id, described), CONSUMER_PROTOCOL_TYPE)
    new.adopt_generation(consumer.epoch, new.select_protocol())
    for member_id, member in new.members.items():
        partitions = by_topic_name(core.topics, _assignment(consumer, member_id))
        version = version_of(member.metadata(new.protocol_name))
        member.assignment = encode_assignment(partitions, version)
        rebalance.reset_session(core, now_ms, new, member)
    ticket = None if answer is None else core.outbox.hold(answer.token)

    def stored(_now_ms: int, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            core.log.warning("Failed to downgrade group %s: %s", group.group_id, error.name)
        if answer is not None and ticket is not None:
            refused = error is not ErrorCode.NONE
            core.outbox.answer(ticket, answer.refusal(error) if refused else answer.result)

    core.store_group(new, {m.member_id: m.assignment for m in new.members.values()}, stored)
    core.log.info("[GroupId %s] Converted the consumer group to a classic group.", group.group_id)
    return new


def _assignment(group: ConsumerGroup, member_id: str) -> Assignment:
    """The partitions that the member has or must still revoke, and the free ones of its target."""
    current = group.current_of(member_id)
    target = partitions_of(group.target_of(member_id).assignment)
    free = {partition for partition in target if group.is_free(member_id, partition)}
    return assignment_of(
        {*free, *partitions_of(current.assigned), *partitions_of(current.revoking)}
    )


def _member(member_id: str, described: MemberMetadata) -> Member:
    classic = described.classic
    assert classic is not None, f"{member_id} is of the consumer protocol"
    return Member(
        member_id,
        described.instance_id,
        described.client_id,
        described.client_host,
        described.rebalance_timeout_ms,
        classic.session_timeout_ms,
        classic.protocols,
        is_new=False,
    )
