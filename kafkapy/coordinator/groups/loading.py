"""Loading of partitions of `__consumer_offsets`, by replay of the log, and unloading."""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TopicPartition
from kafkapy.coordinator.groups import rebalance
from kafkapy.coordinator.groups.consumer import deadlines, log_writes
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    read_consumer_key,
    read_value,
)
from kafkapy.coordinator.groups.core import Core
from kafkapy.coordinator.groups.group import DEAD, Group
from kafkapy.coordinator.groups.group_offsets import NO_PRODUCER_ID
from kafkapy.coordinator.groups.record_codec import (
    GroupValue,
    OffsetKey,
    read_group_value,
    read_key,
    read_offset_value,
)
from kafkapy.coordinator.groups.registry import OffsetsPartition
from kafkapy.coordinator.groups.share.records import read_share_key, read_share_value
from kafkapy.coordinator.groups.share.share_group import ShareGroup
from kafkapy.coordinator.replayed_records import replayed_records
from kafkapy.record.batch_header import Buffer
from kafkapy.record.control import ControlRecordType, control_type_id
from kafkapy.record.records import Record


def start_loading(core: Core, partition: int, leader_epoch: int) -> bool:
    """Start to lead a partition at `leader_epoch`. False if it is led already: nothing to load."""
    offsets_partition = core.registry.partitions.get(partition)
    if offsets_partition is not None:
        offsets_partition.leader_epoch = max(offsets_partition.leader_epoch, leader_epoch)
        return False
    core.registry.partitions[partition] = OffsetsPartition(leader_epoch)
    core.log.info("Loading group metadata from %s-%d", GROUP_METADATA_TOPIC, partition)
    return True


def replay_batches(core: Core, partition: int, records: Buffer) -> None:
    """Apply the whole batches of a buffer, transactional and control batches included.

    Unreadable records are logged and skipped (`replayed_records`).

    Raises:
        ApiError: CORRUPT_MESSAGE on reaching bytes that cannot begin a batch.
    """
    topic_partition = TopicPartition(GROUP_METADATA_TOPIC, partition)
    for header, record in replayed_records(core.log, topic_partition, records):
        if header.is_control:
            _replay_marker(core, partition, header.producer_id, record)
        else:
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            _replay(core, partition, record, producer_id)


def _replay_marker(core: Core, partition: int, producer_id: int, record: Record) -> None:
    try:
        control = control_type_id(record.key)
    except ApiError as error:
        _log_skipped(core, partition, record.offset, error)
        return
    if control in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
        committed = control == ControlRecordType.COMMIT
        _end_transaction(core.registry.partitions[partition], producer_id, committed=committed)


def _replay(core: Core, partition: int, record: Record, producer_id: int) -> None:
    """Apply one record; the later of two wins. `producer_id`: of a transactional batch.

    A record that cannot be decoded is logged and skipped, so that the others are loaded.
    """
    offsets_partition = core.registry.partitions[partition]
    assert offsets_partition.loading, (
        f"replay into {GROUP_METADATA_TOPIC}-{partition}, which is loaded"
    )
    try:
        share_key = read_share_key(record.key or b"")
        if share_key is not None:
            _replay_share(offsets_partition, partition, share_key, record.value)
            return
        consumer_key = read_consumer_key(record.key or b"")
        if consumer_key is not None:
            _replay_consumer(offsets_partition, partition, consumer_key, record.value)
            return
        key = read_key(record.key or b"")
        if key is None:
            core.log.warning(
                "Unknown message key at offset %d of %s-%d: skipped, a later Kafka wrote it",
                record.offset,
                GROUP_METADATA_TOPIC,
                partition,
            )
        elif isinstance(key, OffsetKey):
            _replay_offset(core, partition, key, record.offset, record.value, producer_id)
        else:
            _replay_group(offsets_partition, partition, key.group_id, record.value)
    except ApiError as error:
        _log_skipped(core, partition, record.offset, error)


def _log_skipped(core: Core, partition: int, offset: int, error: ApiError) -> None:
    core.log.error(
        "Skipped the record at offset %d of %s-%d: %s",
        offset,
        GROUP_METADATA_TOPIC,
        partition,
        error.message,
    )


def _replay_offset(
    core: Core,
    partition: int,
    key: OffsetKey,
    offset: int,
    value: bytes | None,
    producer_id: int,
) -> None:
    commit = None if value is None else read_offset_value(value)
    offsets_partition = core.registry.partitions[partition]
    group_id = key.group_id
    group = offsets_partition.groups.get(group_id)
    if group is None:
        if commit is None:
            return
        group = offsets_partition.groups[group_id] = Group(group_id, partition, None)
    group.offsets.replay(key.topic_partition, commit, offset, producer_id)
    core.registry.add_open_transaction(group, producer_id)


def _replay_group(
    offsets_partition: OffsetsPartition, partition: int, group_id: str, value: bytes | None
) -> None:
    """Replace the group by the one in the record. Its offsets have their own records, and stay.

    Kafka 3.9 does not delete the records of a consumer group that it continues as a classic group.
    The next batch deletes them, because they would count again after a compaction."""
    group = Group(group_id, partition, None)
    if value is not None:
        found = read_group_value(value)
        _check_members(found)
        group.restore(found)
    before = offsets_partition.groups.get(group_id)
    if before is not None:
        group.offsets = before.offsets
        group.consumer_keys = before.consumer_keys
        if value is not None and before.consumer is not None and not before.consumer.is_blank:
            group.consumer_keys = tuple(before.consumer.record_keys())
        if value is None:  # tombstone of a classic group that became a consumer group
            group.consumer = before.consumer
    offsets_partition.groups[group_id] = group


def _replay_consumer(
    offsets_partition: OffsetsPartition, partition: int, key: ConsumerKey, value: bytes | None
) -> None:
    """Apply one record of a consumer group."""
    found = None if value is None else read_value(key, value)
    group = offsets_partition.groups.get(key.group_id)
    if group is None:
        if found is None:
            return
        group = offsets_partition.groups[key.group_id] = Group(key.group_id, partition, None)
    if group.consumer is None or not group.consumer.holds_offsets:
        group.consumer = ConsumerGroup(key.group_id)
    group.consumer.apply(key, found)
    if found is None:
        _remove_consumer_key(group, group.consumer.encode_key(key))


def _remove_consumer_key(group: Group, key: bytes | None) -> None:
    """Remove the key of a deleted record from the keys whose records are still to be deleted."""
    keys = group.consumer_keys
    if key in keys:
        index = keys.index(key)
        group.consumer_keys = keys[:index] + keys[index + 1 :]


def _replay_share(
    offsets_partition: OffsetsPartition, partition: int, key: ConsumerKey, value: bytes | None
) -> None:
    """Apply one record of a share group."""
    found = None if value is None else read_share_value(key, value)
    group = offsets_partition.groups.get(key.group_id)
    if group is None:
        if found is None:
            return
        group = offsets_partition.groups[key.group_id] = Group(key.group_id, partition, None)
    if not isinstance(group.consumer, ShareGroup):
        group.consumer = ShareGroup(key.group_id)
    group.consumer.replay(key, found)
    if found is None:
        _remove_consumer_key(group, group.consumer.encode_key(key))


def _check_members(value: GroupValue) -> None:
    ids = [member.member_id for member in value.members]
    instances = [m.group_instance_id for m in value.members if m.group_instance_id is not None]
    if len({*ids}) < len(ids) or len({*instances}) < len(instances):
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "The group's record names a member twice")


def marker_appended(core: Core, partition: int, producer_id: int, *, committed: bool) -> None:
    """Apply a marker that was just appended, except during a load, which replays it later. Offsets
    that are pending until then may belong to an earlier transaction, which has its own marker."""
    offsets_partition = core.registry.partitions.get(partition)
    if offsets_partition is not None and not offsets_partition.loading:
        _end_transaction(offsets_partition, producer_id, committed=committed)


def _end_transaction(
    offsets_partition: OffsetsPartition, producer_id: int, *, committed: bool
) -> None:
    """Commit or drop the pending offsets of the producer."""
    for group_id in offsets_partition.open_transactions.pop(producer_id, ()):
        group = offsets_partition.groups.get(group_id)
        if group is not None:
            group.offsets.end_transaction(producer_id, committed=committed)


def finish_loading(core: Core, now_ms: int, partition: int) -> None:
    """Start to serve the partition's groups, and restart every member's session."""
    offsets_partition = core.registry.partitions[partition]
    for group in offsets_partition.groups.values():
        if group.consumer is not None and group.consumer.is_blank:
            group.consumer = None
    offsets_partition.groups = {
        name: group for name, group in offsets_partition.groups.items() if not group.is_blank
    }
    offsets_partition.loading = False
    for group in (
        list(offsets_partition.groups.values()) if offsets_partition.deleted_partitions else ()
    ):
        if group.holds_offsets:
            deleted = group.offsets.with_possible_commits(offsets_partition.deleted_partitions)
            core.expire_offsets(group, deleted, core.clock.time_ms())
    offsets_partition.deleted_partitions.clear()
    core.log.info(
        "Finished loading %d groups from %s-%d",
        len(offsets_partition.groups),
        GROUP_METADATA_TOPIC,
        partition,
    )
    limit = core.config.group_max_size
    for group in offsets_partition.groups.values():
        if group.consumer is not None:
            deadlines.start_timers(core, now_ms, group.consumer)
        for member in group.members.values():
            rebalance.reset_session(core, now_ms, group, member)
        if len(group.members) > limit:
            reason = f"Freshly-loaded group is over capacity ({limit})"
            rebalance.prepare(core, now_ms, group, reason)


def loaded_is_unreplicated(core: Core, partition: int) -> None:
    """Mark the loaded records as unreplicated: a new leader may not have the end of the log."""
    offsets_partition = core.registry.partitions.get(partition)
    if offsets_partition is not None:  # not unloaded since
        for consumer in _consumer_groups(offsets_partition):
            log_writes.mark_loaded_unreplicated(consumer)


def loaded_is_replicated(core: Core, partition: int, leader_epoch: int) -> None:
    """Mark the loaded records as replicated: every new leader has the end of the loaded log."""
    offsets_partition = core.registry.partitions.get(partition)
    if (
        offsets_partition is not None
        and offsets_partition.leader_epoch == leader_epoch
        and not offsets_partition.loading
    ):
        for consumer in _consumer_groups(offsets_partition):
            log_writes.mark_loaded_replicated(consumer)


def _consumer_groups(offsets_partition: OffsetsPartition) -> Iterator[ConsumerGroup]:
    return (
        group.consumer for group in offsets_partition.groups.values() if group.consumer is not None
    )


def unload(core: Core, partition: int, leader_epoch: int | None) -> None:
    """Drop a partition that another broker leads since `leader_epoch` (None: in any case)."""
    offsets_partition = core.registry.partitions.get(partition)
    if offsets_partition is None or (
        leader_epoch is not None and leader_epoch < offsets_partition.leader_epoch
    ):
        return
    del core.registry.partitions[partition]
    for group in offsets_partition.groups.values():
        _unload_group(core, group)
    core.log.info(
        "Unloaded %d groups of %s-%d",
        len(offsets_partition.groups),
        GROUP_METADATA_TOPIC,
        partition,
    )


def _unload_group(core: Core, group: Group) -> None:
    """Answer waiting requests NOT_COORDINATOR. The group is Dead when pending appends complete."""
    rebalance.refuse_waiting(core, group, ErrorCode.NOT_COORDINATOR)
    if group.consumer is not None:
        deadlines.cancel_all(core, group.consumer)
    group.transition_to(DEAD, core.clock.time_ms())
