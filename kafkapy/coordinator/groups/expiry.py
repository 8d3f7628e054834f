"""Expiry of committed offsets (KIP-211), and of groups that had only those."""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.common.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import EMPTY, STABLE, Group
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata


def expire_offsets(core: Core, time_ms: int) -> int:
    """Remove the offsets that have expired at wall-clock `time_ms`; return their number."""
    removed = 0
    for group in _offset_groups(core):
        due = expired_offsets(group, time_ms, core.config.offsets_retention_ms)
        removed += core.expire_offsets(group, due, time_ms)
    if removed:
        core.log.info("Removed %d expired offsets.", removed)
    return removed


def expired_offsets(group: Group, time_ms: int, retention_ms: int) -> list[TopicPartition]:
    """Expired offsets of a group: the retention starts with their last use.

    In a group without members, it starts when the group became empty. In a group with members, and
    in a consumer group, it starts with the commit, and offsets of subscribed topics do not expire.
    In a group that never had members, it starts with the commit. Kafka: `removeExpiredOffsets`.
    """

    def emptied_ms(commit: OffsetAndMetadata) -> int:
        since_ms = group.state_timestamp_ms
        return commit.commit_timestamp_ms if since_ms is None else since_ms

    def committed_ms(commit: OffsetAndMetadata) -> int:
        return commit.commit_timestamp_ms

    offsets, topics = group.offsets, group.subscribed_topics
    if group.consumer is not None:
        subscribed = group.consumer.subscribed_topics
        return offsets.expired(time_ms, retention_ms, committed_ms, subscribed)
    if group.protocol_type is None:
        return offsets.expired(time_ms, retention_ms, committed_ms)
    if group.state is EMPTY:
        return offsets.expired(time_ms, retention_ms, emptied_ms)
    if (
        group.state is STABLE
        and group.protocol_type == CONSUMER_PROTOCOL_TYPE
        and topics is not None
    ):
        return offsets.expired(time_ms, retention_ms, committed_ms, topics)
    return []


def remove_partitions(core: Core, partitions: Collection[TopicPartition], time_ms: int) -> int:
    """Remove the offsets of deleted partitions from every group; return their number. In groups
    that are being loaded, they are removed at the end of the load."""
    deleted = dict.fromkeys(partitions)
    for offsets_partition in core.registry.partitions.values():
        if offsets_partition.loading:
            offsets_partition.deleted_partitions |= deleted
    removed = 0
    for group in _offset_groups(core):
        removed += core.expire_offsets(group, group.offsets.with_possible_commits(deleted), time_ms)
    return removed


def _offset_groups(core: Core) -> list[Group]:
    """All loaded groups except share groups, which stay until they are deleted."""
    groups = core.registry.loaded_groups()
    return [group for group in groups if group.holds_offsets]
