"""Shared state of the group coordinator, and how groups and offsets are written to the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kafkapy.common.config_def import ConfigValue
from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock, Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.group import DEAD, Group
from kafkapy.coordinator.groups.group_offsets import NO_PRODUCER_ID, UNKNOWN_LOG_OFFSET
from kafkapy.coordinator.groups.messages import Result
from kafkapy.coordinator.groups.record_codec import (
    OffsetAndMetadata,
    group_key,
    group_value,
    offset_key,
    offset_value,
)
from kafkapy.coordinator.groups.registry import GroupRegistry
from kafkapy.coordinator.groups.share.messages import StateRequest
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind, Timers
from kafkapy.coordinator.groups.topic_source import NO_TOPICS, TopicSource
from kafkapy.coordinator.outbox import AppendCallback, Outbox
from kafkapy.record.builder import RecordData

GROUP_STORE_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""The error code for members of a group that could not be stored. Other codes are unchanged."""

OFFSET_STORE_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
"""The error code for the rows of a commit that could not be stored. Other codes are unchanged."""

DELETION_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""The error code for a request that deletes offsets. After other errors it is REQUEST_TIMED_OUT,
because the offsets may still be deleted."""


@dataclass(slots=True)
class Core:
    """The coordinator's state; the modules of the coordinator are functions on it.

    `clock` is the wall clock, for the timestamps of records. Deadlines use the `now_ms` of each
    call.
    """

    config: GroupConfig
    random: Random
    clock: Clock
    log: logging.Logger
    registry: GroupRegistry
    timers: Timers
    outbox: Outbox[Result]
    topics: TopicSource = NO_TOPICS
    state_requests: list[StateRequest] = field(default_factory=list)
    """Requests for the share coordinator. The caller takes them and sends them."""
    own_configs: dict[str, Mapping[str, ConfigValue]] = field(default_factory=dict)
    """Configs by group, of groups that have their own. Their names lack the prefix `group.` of
    broker configs."""

    def own_config(self, group_id: str, name: str, default: int) -> int:
        """The group's own value of a config, or `default`, the broker's value."""
        value = self.own_configs.get(group_id, {}).get(name)
        return value if isinstance(value, int) else default

    def store_group(
        self,
        group: Group,
        assignments: Mapping[str, bytes],
        on_stored: Callable[[int, ErrorCode], None],
    ) -> None:
        """Append the group's record, then call `on_stored` with the error for its members. The same
        batch deletes the records of the consumer group that it was before."""

        def appended(now_ms: int, error: ErrorCode, _base_offset: int) -> None:
            if error is ErrorCode.NONE:
                group.consumer_keys = ()
            on_stored(now_ms, GROUP_STORE_ERRORS.get(error, error))

        time_ms = self.clock.time_ms()
        records = [RecordData(key, None, time_ms) for key in group.consumer_keys]
        value = group_value(group.value(assignments))
        records.append(RecordData(group_key(group.group_id), value, time_ms))
        self._append(group, records, appended)

    def store_offsets(
        self,
        group: Group,
        commits: Mapping[TopicPartition, OffsetAndMetadata],
        producer: Producer | None,
        on_stored: Callable[[ErrorCode], None],
    ) -> None:
        """Append these commits as one batch. They take effect when the append succeeds or, in a
        transaction of `producer`, with its marker."""
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id

        def appended(_now_ms: int, error: ErrorCode, base_offset: int) -> None:
            if error is ErrorCode.NONE:
                group.offsets.succeed(commits, base_offset, producer_id)
                # Not earlier: the marker of an earlier transaction may come until now.
                self.registry.add_open_transaction(group, producer_id)
            else:
                group.offsets.fail(commits, is_in_log=base_offset != UNKNOWN_LOG_OFFSET)
            on_stored(OFFSET_STORE_ERRORS.get(error, error))

        time_ms = self.clock.time_ms()
        records = [
            RecordData(offset_key(group.group_id, partition), offset_value(commit), time_ms)
            for partition, commit in commits.items()
        ]
        group.offsets.begin(commits)
        self._append(group, records, appended, producer)

    def expire_offsets(
        self, group: Group, partitions: Iterable[TopicPartition], time_ms: int
    ) -> int:
        """Remove these commits, and the group if it has no members and no other offsets. Returns
        the number of commits.

        The tombstones are appended with acks=0. If they are lost, the next coordinator expires the
        same commits.
        """
        leader_epoch = self.registry.leader_epoch(group)
        removed, records = self._remove_offsets(group, partitions, time_ms)
        if records:
            self.outbox.append_without_acks(group.partition, leader_epoch, records)
        return removed

    def delete_offsets(
        self,
        group: Group,
        partitions: Iterable[TopicPartition],
        on_deleted: Callable[[ErrorCode], None],
    ) -> None:
        """Remove these commits, and the group if it has no members and no other offsets.
        `on_deleted` is called when the deletion is replicated, or with an error; after an error a
        failover may restore them."""
        leader_epoch = self.registry.leader_epoch(group)
        records = self._remove_offsets(group, partitions, self.clock.time_ms())[1]
        if not records:
            on_deleted(ErrorCode.NONE)
            return

        def appended(_now_ms: int, error: ErrorCode, _base_offset: int) -> None:
            if error is ErrorCode.NOT_ENOUGH_REPLICAS:  # it is not in the log
                self.outbox.append_without_acks(group.partition, leader_epoch, records)
            on_deleted(DELETION_ERRORS.get(error, ErrorCode.REQUEST_TIMED_OUT))

        self.outbox.append(group.partition, leader_epoch, records, appended)

    def _remove_offsets(
        self, group: Group, partitions: Iterable[TopicPartition], time_ms: int
    ) -> tuple[int, list[RecordData]]:
        """Remove these commits, and the group if it has no members and no other offsets. Returns
        the number of commits and the tombstones."""
        removed = group.offsets.remove(partitions)
        records = [RecordData(offset_key(group.group_id, p), None, time_ms) for p in removed]
        if group.is_empty and not group.offsets.any:
            self._remove_group(group, time_ms)
            keys = group.consumer_keys if group.consumer is None else group.consumer.record_keys()
            records += [RecordData(key, None, time_ms) for key in keys]
            # A group of generation 0 never had a record: it only stored offsets.
            if group.generation_id > 0:
                records.append(RecordData(group_key(group.group_id), None, time_ms))
        return len(removed), records

    def replace_group(self, old: Group) -> Group:
        """Replace a group that changes its protocol by an Empty group with the same offsets. The
        old group is Dead when its pending appends complete."""
        time_ms = self.clock.time_ms()
        new = Group(old.group_id, old.partition, time_ms)
        new.offsets = old.offsets
        old.transition_to(DEAD, time_ms)
        self.registry.replace(new)
        return new

    def _remove_group(self, group: Group, time_ms: int) -> None:
        group.transition_to(DEAD, time_ms)
        self.registry.remove(group)
        for member_id in group.pending_members:
            self.timers.cancel(TimerKey(TimerKind.PENDING, group.group_id, member_id))
        self.log.info(
            "Group %s transitioned to Dead in generation %d", group.group_id, group.generation_id
        )

    def _append(
        self,
        group: Group,
        records: list[RecordData],
        appended: AppendCallback,
        producer: Producer | None = None,
    ) -> None:
        leader_epoch = self.registry.leader_epoch(group)
        self.outbox.append(group.partition, leader_epoch, records, appended, producer)
