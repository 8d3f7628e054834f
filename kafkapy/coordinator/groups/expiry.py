"""Expiry of committed offsets (KIP-211), and of groups that had only those."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from kafkapy.common.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import DEAD, EMPTY, STABLE, Group
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata

_STEP_UNITS: Final = 5_000
"""The work of one step, in units of about a microsecond of processor time."""
_COMMITS_AT_ONCE: Final = 256
_REMOVAL_UNITS: Final = 10
_APPEND_UNITS: Final = 300


def expire_offsets(core: Core, time_ms: int) -> Iterator[None]:
    """Remove the offsets that have expired at wall-clock `time_ms`, in steps. Any call may come
    between two steps, so each step decides anew about a group and its next commits."""
    removed = units = 0
    for group in _offset_groups(core):
        commits = group.offsets.may_expire()
        for start in range(0, len(commits) or 1, _COMMITS_AT_ONCE):
            if _is_gone(group):
                break
            few = commits[start : start + _COMMITS_AT_ONCE]
            due = expired_offsets(group, few, time_ms, core.config.offsets_retention_ms)
            count = core.expire_offsets(group, due, time_ms)
            removed += count
            units += 1 + len(few) + count * _REMOVAL_UNITS
            if count or _is_gone(group):
                units += _APPEND_UNITS
            if units >= _STEP_UNITS:
                yield
                units = 0
    if removed:
        core.log.info("Removed %d expired offsets.", removed)
    yield


def expired_offsets(
    group: Group, partitions: Collection[TopicPartition], time_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """Those of a group's offsets that have expired: the retention starts with their last use.

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
        return offsets.expired(partitions, time_ms, retention_ms, committed_ms, subscribed)
    if group.protocol_type is None:
        return offsets.expired(partitions, time_ms, retention_ms, committed_ms)
    if group.state is EMPTY:
        return offsets.expired(partitions, time_ms, retention_ms, emptied_ms)
    if (
        group.state is STABLE
        and group.protocol_type == CONSUMER_PROTOCOL_TYPE
        and topics is not None
    ):
        return offsets.expired(partitions, time_ms, retention_ms, committed_ms, topics)
    return []


def remove_partitions(core: Core, partitions: Collection[TopicPartition], time_ms: int) -> None:
    """Remove the offsets of deleted partitions from every group. In groups that are being loaded,
    they are removed at the end of the load."""
    deleted = dict.fromkeys(partitions)
    for offsets_partition in core.registry.partitions.values():
        if offsets_partition.loading:
            offsets_partition.deleted_partitions |= deleted
    for group in _offset_groups(core):
        core.expire_offsets(group, group.offsets.with_possible_commits(deleted), time_ms)


def _is_gone(group: Group) -> bool:
    """Whether the group was removed, replaced or unloaded."""
    return group.state is DEAD


def _offset_groups(core: Core) -> list[Group]:
    """All loaded groups except share groups, which stay until they are deleted."""
    groups = core.registry.loaded_groups()
    return [group for group in groups if group.holds_offsets]
