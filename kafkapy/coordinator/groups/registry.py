"""The groups coordinated here: those of the `__consumer_offsets` partitions led here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition, partition_for_key
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.group_offsets import NO_PRODUCER_ID
from kafkapy.coordinator.groups.record_codec import fits_record

_partition_for_key: Final = lru_cache(512)(partition_for_key)
"""Cached, because each call about a group needs it several times. Few entries, because clients may
name groups of 32 KB."""


@dataclass(slots=True)
class OffsetsPartition:
    """One partition of `__consumer_offsets` that this broker leads."""

    leader_epoch: int
    loading: bool = True
    groups: dict[str, Group] = field(default_factory=dict)
    open_transactions: dict[int, set[str]] = field(default_factory=dict)
    """The groups with pending offsets, by producer id."""
    deleted_partitions: dict[TopicPartition, None] = field(default_factory=dict)
    """Partitions that were deleted during the load. Their offsets are removed when it ends."""


class GroupRegistry:
    """Groups by partition and id. A call finds a group only in a loaded partition."""

    __slots__ = ("active", "num_partitions", "partitions")

    def __init__(self, num_partitions: int) -> None:
        self.num_partitions = num_partitions
        self.active = True
        """False once the coordinator is shut down."""
        self.partitions: dict[int, OffsetsPartition] = {}

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        return _partition_for_key(group_id, self.num_partitions)

    def check(self, group_id: str, *, empty_id: bool = False) -> ErrorCode:
        """Check that the group is served here. `empty_id`: the API allows an empty group id."""
        if not (group_id or empty_id) or not fits_record(group_id):
            return ErrorCode.INVALID_GROUP_ID
        if not self.active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = self.partitions.get(self.partition_for(group_id))
        if partition is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if partition.loading else ErrorCode.NONE

    def find(self, group_id: str) -> Group | None:
        """A group of a partition led here."""
        partition = self.partitions.get(self.partition_for(group_id))
        return None if partition is None else partition.groups.get(group_id)

    def get_or_create(self, group_id: str, time_ms: int | None) -> Group:
        """A group of a partition led here. A new group is Empty."""
        index = self.partition_for(group_id)
        groups = self.partitions[index].groups
        group = groups.get(group_id)
        if group is None:
            group = groups[group_id] = Group(group_id, index, time_ms)
        return group

    def replace(self, group: Group) -> None:
        """Register this group under its id, in place of another."""
        self.partitions[group.partition].groups[group.group_id] = group

    def remove(self, group: Group) -> None:
        """Remove a group from the registry."""
        del self.partitions[group.partition].groups[group.group_id]

    def add_open_transaction(self, group: Group, producer_id: int) -> None:
        """Record that the group has offsets in the transaction of the producer, if one is given."""
        offsets_partition = self.partitions.get(group.partition)
        if offsets_partition is not None and producer_id != NO_PRODUCER_ID:
            offsets_partition.open_transactions.setdefault(producer_id, set()).add(group.group_id)

    def leader_epoch(self, group: Group) -> int:
        """The leader epoch at which the group was loaded."""
        return self.partitions[group.partition].leader_epoch

    @property
    def loading(self) -> bool:
        """Whether any partition is being loaded."""
        return any(partition.loading for partition in self.partitions.values())

    def loaded_groups(self) -> Iterator[Group]:
        """The groups of all loaded partitions."""
        for partition in self.partitions.values():
            if not partition.loading:
                yield from partition.groups.values()
