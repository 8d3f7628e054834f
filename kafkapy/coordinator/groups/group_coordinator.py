"""The group coordinator of one broker: calls in, effects out. It never waits.

Every call that does something returns `Effects`: replies (token, result) to send and batches to
append, in order. A token is any hashable value that identifies a request to the caller. Each token
gets one reply, in the effects of this call or of a later one. The caller (`GroupService`)
    1. sends the replies and makes the appends, and reports each append with `append_completed`;
    2. calls `on_time` when `next_deadline_ms` has come;
    3. for a partition of `__consumer_offsets` that it leads calls `start_loading`, `replay_batches`
       over the whole log, `finish_loading`; then, if not all of that is replicated,
       `loaded_is_unreplicated`, and `loaded_is_replicated` when it is; and
       `unload` when it no longer leads it;
    4. calls `expire_offsets` every `offsets.retention.check.interval.ms`, and
       `on_partitions_deleted` when partitions are deleted.

`now_ms` is monotonic milliseconds, for deadlines. `time_ms` and `clock` are wall-clock time, as in
records. Kafka: `kafka.coordinator.group.GroupCoordinator` with `GroupMetadataManager`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from kafkapy.common.config_def import ConfigValue
from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock, Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Token
from kafkapy.coordinator.groups import (
    expiry,
    group_admin,
    join,
    loading,
    membership,
    offsets,
    rebalance,
    sync,
)
from kafkapy.coordinator.groups.consumer import departure, describe, heartbeat
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroupState
from kafkapy.coordinator.groups.consumer.messages import (
    CONSUMER_GROUP_TYPE,
    ConsumerHeartbeat,
    DescribeConsumerGroups,
)
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import GroupState
from kafkapy.coordinator.groups.group_offsets import UNKNOWN_LOG_OFFSET
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    FetchOffsets,
    GroupEffects,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    SyncGroup,
)
from kafkapy.coordinator.groups.registry import GroupRegistry
from kafkapy.coordinator.groups.share import states
from kafkapy.coordinator.groups.share.heartbeat import share_heartbeat
from kafkapy.coordinator.groups.share.messages import (
    AlterShareOffsets,
    DeleteShareOffsets,
    DescribeShareGroups,
    ListShareStates,
    ShareHeartbeat,
    ShareStatesDeleted,
    StateRequest,
)
from kafkapy.coordinator.groups.share.share_group import ShareGroup
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind, Timers
from kafkapy.coordinator.groups.topic_source import NO_TOPICS, TopicSource
from kafkapy.coordinator.outbox import Outbox
from kafkapy.record.batch_header import Buffer


class GroupCoordinator:
    """All groups whose partition of `__consumer_offsets` this broker leads."""

    def __init__(
        self,
        config: GroupConfig,
        random: Random,
        clock: Clock,
        *,
        topics: TopicSource = NO_TOPICS,
        logger: logging.Logger | None = None,
    ) -> None:
        log = logging.getLogger(__name__) if logger is None else logger
        registry = GroupRegistry(config.offsets_topic_num_partitions)
        self._core = Core(config, random, clock, log, registry, Timers(), Outbox(), topics)

    def configure_group(self, group_id: str, configs: Mapping[str, ConfigValue]) -> None:
        """Replace a group's own configs. Members get them with their next heartbeat."""
        if configs:
            self._core.own_configs[group_id] = configs
        else:
            self._core.own_configs.pop(group_id, None)

    def own_configs(self, group_id: str) -> Mapping[str, ConfigValue]:
        """A group's own configs."""
        return self._core.own_configs.get(group_id, {})

    # Requests.

    def join_group(self, now_ms: int, token: Token, request: JoinGroup) -> GroupEffects:
        """The reply waits for the other members or, in a consumer group, for the log."""
        join.join_group(self._core, now_ms, token, request)
        return self._core.outbox.take()

    def sync_group(self, now_ms: int, token: Token, request: SyncGroup) -> GroupEffects:
        """The reply waits for the leader's assignment to be in the log."""
        sync.sync_group(self._core, now_ms, token, request)
        return self._core.outbox.take()

    def heartbeat(self, now_ms: int, token: Token, request: Heartbeat) -> GroupEffects:
        """Replied at once."""
        membership.heartbeat(self._core, now_ms, token, request)
        return self._core.outbox.take()

    def leave_group(self, now_ms: int, token: Token, request: LeaveGroup) -> GroupEffects:
        """Replied at once or, in a consumer group, when the changes are in the log."""
        membership.leave_group(self._core, now_ms, token, request)
        return self._core.outbox.take()

    def commit_offsets(self, now_ms: int, token: Token, request: CommitOffsets) -> GroupEffects:
        """The reply waits for the offsets to be in the log."""
        offsets.commit_offsets(self._core, now_ms, token, request)
        return self._core.outbox.take()

    def fetch_offsets(self, _now_ms: int, token: Token, request: FetchOffsets) -> GroupEffects:
        """Replied at once."""
        offsets.fetch_offsets(self._core, token, request)
        return self._core.outbox.take()

    def delete_offsets(self, _now_ms: int, token: Token, request: DeleteOffsets) -> GroupEffects:
        """The reply waits for the deletions to be in the log."""
        offsets.delete_offsets(self._core, token, request)
        return self._core.outbox.take()

    def describe_groups(self, _now_ms: int, token: Token, request: DescribeGroups) -> GroupEffects:
        """Replied at once."""
        group_admin.describe_groups(self._core, token, request)
        return self._core.outbox.take()

    def list_groups(self, _now_ms: int, token: Token, request: ListGroups) -> GroupEffects:
        """Replied at once."""
        group_admin.list_groups(self._core, token, request)
        return self._core.outbox.take()

    def delete_groups(self, _now_ms: int, token: Token, request: DeleteGroups) -> GroupEffects:
        """The reply waits for the deletions to be in the log."""
        group_admin.delete_groups(self._core, token, request)
        return self._core.outbox.take()

    def consumer_heartbeat(
        self, now_ms: int, token: Token, request: ConsumerHeartbeat
    ) -> GroupEffects:
        """The reply waits for its changes to be in the log."""
        heartbeat.consumer_heartbeat(self._core, now_ms, token, request)
        return self._core.outbox.take()

    def describe_consumer_groups(
        self, _now_ms: int, token: Token, request: DescribeConsumerGroups
    ) -> GroupEffects:
        """Replied at once."""
        describe.describe_consumer_groups(self._core, token, request)
        return self._core.outbox.take()

    # Share groups.

    def share_heartbeat(self, now_ms: int, token: Token, request: ShareHeartbeat) -> GroupEffects:
        """The reply waits for its changes to be in the log."""
        share_heartbeat(self._core, now_ms, token, request)
        return self._core.outbox.take()

    def describe_share_groups(
        self, _now_ms: int, token: Token, request: DescribeShareGroups
    ) -> GroupEffects:
        """Replied at once."""
        describe.describe_share_groups(self._core, token, request)
        return self._core.outbox.take()

    def list_share_states(
        self, _now_ms: int, token: Token, request: ListShareStates
    ) -> GroupEffects:
        """Replied at once."""
        states.list_states(self._core, token, request)
        return self._core.outbox.take()

    def alter_share_offsets(
        self, _now_ms: int, token: Token, request: AlterShareOffsets
    ) -> GroupEffects:
        """The reply waits for the log; then the share coordinator must initialize the
        partitions."""
        states.alter_offsets(self._core, token, request)
        return self._core.outbox.take()

    def share_states_altered(
        self, _now_ms: int, token: Token, request: StateRequest
    ) -> GroupEffects:
        """The reply waits for the log."""
        states.states_altered(self._core, token, request)
        return self._core.outbox.take()

    def delete_share_offsets(
        self, _now_ms: int, token: Token, request: DeleteShareOffsets
    ) -> GroupEffects:
        """The reply waits for the log; then the share coordinator must delete the partitions."""
        states.delete_offsets(self._core, token, request)
        return self._core.outbox.take()

    def share_states_deleted(
        self, _now_ms: int, token: Token, request: ShareStatesDeleted
    ) -> GroupEffects:
        """The reply waits for the log."""
        states.states_deleted(self._core, token, request)
        return self._core.outbox.take()

    def is_share_group(self, group_id: str) -> bool:
        """Whether a share group of this name is coordinated here."""
        group = self._core.registry.find(group_id)
        return group is not None and isinstance(group.consumer, ShareGroup)

    def take_state_requests(self) -> list[StateRequest]:
        """Take the share partitions that the share coordinator must initialize since the last call.
        They are in the log. Each request is reported with `share_states_initialized`."""
        requests, self._core.state_requests = self._core.state_requests, []
        return requests

    def share_states_initialized(
        self, _now_ms: int, request: StateRequest, error: ErrorCode, known_epoch: int = 0
    ) -> GroupEffects:
        """Report that the share coordinator has initialized share partitions, or its error. With
        FENCED_STATE_EPOCH, it has all of them, the latest of `known_epoch`."""
        states.states_initialized(self._core, request, error, known_epoch)
        return self._core.outbox.take()

    def drop_token(self, token: Token) -> None:
        """Drop a token whose connection is closed. Its request still takes effect."""
        self._core.outbox.drop_token(token)

    # The log and the clock.

    def append_completed(
        self,
        now_ms: int,
        append_id: int,
        error: ErrorCode,
        base_offset: int = UNKNOWN_LOG_OFFSET,
    ) -> GroupEffects:
        """Report an append: acknowledged, with its batch at `base_offset`, or failed with
        `error`."""
        self._core.outbox.append_completed(now_ms, append_id, error, base_offset)
        return self._core.outbox.take()

    def next_deadline_ms(self) -> int | None:
        """The time for the next call of `on_time`; any call may change it."""
        return self._core.timers.next_deadline_ms()

    def on_time(self, now_ms: int) -> GroupEffects:
        """Handle all deadlines that are due."""
        while (key := self._core.timers.pop_due(now_ms)) is not None:
            self._on_deadline(now_ms, key)
        return self._core.outbox.take()

    def _on_deadline(self, now_ms: int, key: TimerKey) -> None:
        group = self._core.registry.find(key.group_id)
        assert group is not None, f"{key} has outlived its group"
        if key.kind is TimerKind.JOIN:
            rebalance.on_join_deadline(self._core, now_ms, group)
        elif key.kind is TimerKind.SYNC:
            rebalance.on_sync_deadline(self._core, now_ms, group)
        elif key.kind is TimerKind.SESSION:
            rebalance.on_session_deadline(self._core, now_ms, group, key.member_id)
        elif key.kind is TimerKind.PENDING:
            rebalance.on_pending_deadline(self._core, now_ms, group, key.member_id)
        else:
            departure.on_deadline(self._core, now_ms, group, key)

    def expire_offsets(self, time_ms: int) -> Iterator[GroupEffects]:
        """Remove offsets past their retention, and groups that are empty and hold none, in steps.
        Other calls may come between two steps."""
        for _ in expiry.expire_offsets(self._core, time_ms):
            yield self._core.outbox.take()

    def on_partitions_deleted(
        self, partitions: Collection[TopicPartition], time_ms: int
    ) -> GroupEffects:
        """Remove the offsets of deleted partitions."""
        expiry.remove_partitions(self._core, partitions, time_ms)
        return self._core.outbox.take()

    # Leading partitions of `__consumer_offsets`.

    def set_num_partitions(self, num_partitions: int) -> None:
        """Set the actual number of partitions of `__consumer_offsets`, before any is led."""
        registry = self._core.registry
        same = num_partitions == registry.num_partitions
        assert same or not registry.partitions, "groups would move while partitions are led"
        registry.num_partitions = num_partitions

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` whose leader coordinates the group."""
        return self._core.registry.partition_for(group_id)

    def start_loading(self, partition: int, leader_epoch: int) -> bool:
        """Start to lead a partition. Returns whether its log must be replayed: not if it is led."""
        return loading.start_loading(self._core, partition, leader_epoch)

    def replay_batches(self, partition: int, records: Buffer) -> None:
        """Apply every record and marker in whole raw batches.

        Unreadable records are logged and skipped.

        Raises:
            ApiError: CORRUPT_MESSAGE on reaching bytes that cannot begin a batch.
        """
        loading.replay_batches(self._core, partition, records)

    def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """Apply a marker of the producer that was just appended to the partition's log."""
        loading.marker_appended(self._core, partition, producer_id, committed=committed)

    def finish_loading(self, partition: int, now_ms: int) -> GroupEffects:
        """End the replay of the log and start to serve its groups."""
        loading.finish_loading(self._core, now_ms, partition)
        return self._core.outbox.take()

    def loaded_is_unreplicated(self, partition: int) -> None:
        """Report that the high watermark is before the end of the log that was just loaded."""
        loading.loaded_is_unreplicated(self._core, partition)

    def loaded_is_replicated(self, partition: int, leader_epoch: int) -> None:
        """Report that the high watermark has reached the end of the log that was loaded."""
        loading.loaded_is_replicated(self._core, partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> GroupEffects:
        """Stop serving a partition; waiting requests get NOT_COORDINATOR. An old epoch is
        ignored."""
        loading.unload(self._core, partition, leader_epoch)
        return self._core.outbox.take()

    def shutdown(self) -> GroupEffects:
        """Unload all partitions. Later calls are answered COORDINATOR_NOT_AVAILABLE."""
        for partition in list(self._core.registry.partitions):
            loading.unload(self._core, partition, None)
        self._core.registry.active = False
        return self._core.outbox.take()

    # Values for metrics.

    def groups_by_state(self) -> Counter[GroupState]:
        """Numbers of loaded classic groups by state."""
        groups = self._core.registry.loaded_groups()
        return Counter(group.state for group in groups if group.consumer is None)

    def consumer_groups_by_state(self) -> Counter[ConsumerGroupState]:
        """Numbers of loaded consumer groups by state."""
        groups = self._core.registry.loaded_groups()
        modern = [group.consumer for group in groups if group.consumer is not None]
        return Counter(g.state for g in modern if g.group_type == CONSUMER_GROUP_TYPE)

    def num_offsets(self) -> int:
        """The number of offsets committed in loaded groups."""
        return sum(len(g.offsets.committed) for g in self._core.registry.loaded_groups())
