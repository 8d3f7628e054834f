"""AlterPartition: checks a leader's new ISR, and writes it to ZooKeeper (KIP-497)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kafkapy.common.cluster_state import RECOVERED, RECOVERING, LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ControllerContext
from kafkapy.controller.events import (
    AlterPartition,
    AlterPartitionItem,
    AlterPartitionResult,
    IsrChange,
)
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.reassignment import maybe_complete_reassignments


async def on_alter_partition(parts: ControllerParts, event: AlterPartition) -> None:
    """Write the rows that pass the checks, notify all brokers, and answer with the state of each
    row. Then complete the reassignments that waited for the new ISRs.

    Leader epochs stay, and no LeaderAndIsr is sent, because the leader already has the ISR.
    """
    context = parts.context
    if context.broker_epochs.get(event.broker_id) != event.broker_epoch:
        event.reply(AlterPartitionResult(ErrorCode.STALE_BROKER_EPOCH))
        return
    errors: dict[AlterPartitionItem, ErrorCode] = {}
    states: dict[AlterPartitionItem, LeaderAndIsr] = {}
    wanted: dict[TopicPartition, LeaderAndIsr] = {}
    partitions: dict[TopicPartition, AlterPartitionItem] = {}
    for item in event.items:
        partition = _partition(context, item)
        if partition is None:
            errors[item] = ErrorCode.UNKNOWN_TOPIC_ID
            continue
        current = context.leadership.get(partition)
        if current is None or not context.has_partition(partition):
            errors[item] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        if _is_repeated(item, current):
            states[item] = current
            continue
        error = _check(context, partition, item, current)
        if error is not ErrorCode.NONE:
            errors[item] = error
            continue
        partitions[partition] = item
        wanted[partition] = replace(
            current,
            isr=item.new_isr,
            leader_recovery_state=item.leader_recovery_state,
            controller_epoch=context.epoch,
        )
    written, failed = await _write(parts, wanted)
    states |= {partitions[p]: state for p, state in written.items()}
    errors |= {partitions[p]: error for p, error in failed.items()}
    event.reply(
        AlterPartitionResult(
            rows=[(i, errors.get(i, ErrorCode.NONE), states.get(i)) for i in event.items]
        )
    )
    if written:
        parts.send_update_metadata(context.broker_ids, sorted(written))
        await maybe_complete_reassignments(parts, sorted(written))


async def on_isr_change(parts: ControllerParts) -> None:
    """Read states that older leaders (inter.broker.protocol.version below 2.7) wrote themselves."""
    context = parts.context
    changed = await parts.store.requests.take_isr_changes(context.fence, parts.watch(IsrChange()))
    partitions = [partition for partition in changed if context.has_partition(partition)]
    context.leadership.update(await parts.store.topics.states(partitions))
    if partitions:
        parts.send_update_metadata(context.broker_ids, partitions)
        await maybe_complete_reassignments(parts, partitions)


def _partition(context: ControllerContext, item: AlterPartitionItem) -> TopicPartition | None:
    topic = item.topic or context.topic_names.get(item.topic_id)
    return None if topic is None else TopicPartition(topic, item.partition)


def _is_repeated(item: AlterPartitionItem, current: LeaderAndIsr) -> bool:
    """Whether the request matches the present state, as after a lost response."""
    return (
        item.leader_epoch == current.leader_epoch
        and item.partition_epoch <= current.partition_epoch
        and item.new_isr == current.isr
        and item.leader_recovery_state == current.leader_recovery_state
    )


def _check(
    context: ControllerContext,
    partition: TopicPartition,
    item: AlterPartitionItem,
    current: LeaderAndIsr,
) -> ErrorCode:
    is_ahead = item.partition_epoch > current.partition_epoch
    if is_ahead or item.leader_epoch > current.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if item.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if item.partition_epoch < current.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    recovering = item.leader_recovery_state == RECOVERING
    if recovering and (len(item.new_isr) > 1 or current.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not item.new_isr:
        return ErrorCode.INVALID_REQUEST
    if not all(context.is_replica_online(replica, partition) for replica in item.new_isr):
        return ErrorCode.INELIGIBLE_REPLICA
    # A member that has restarted since may have lost the records that it had (KIP-903).
    epochs = zip(item.new_isr, item.isr_epochs, strict=False)
    if any(epoch not in (-1, context.broker_epochs[replica]) for replica, epoch in epochs):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


async def _write(
    parts: ControllerParts, wanted: Mapping[TopicPartition, LeaderAndIsr]
) -> tuple[dict[TopicPartition, LeaderAndIsr], dict[TopicPartition, ErrorCode]]:
    writes = await parts.store.topics.update_states(wanted, parts.context.fence)
    parts.context.leadership.update(writes.written)
    failed: dict[TopicPartition, ErrorCode] = dict.fromkeys(
        writes.retry, ErrorCode.INVALID_UPDATE_VERSION
    )
    for partition in writes.failed:
        failed[partition] = ErrorCode.UNKNOWN_SERVER_ERROR
    return writes.written, failed
