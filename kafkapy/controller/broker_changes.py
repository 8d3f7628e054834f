"""Handles brokers that join, leave, restart, or lose log directories."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafkapy.common.errors import ErrorCode
from kafkapy.controller.context import PartitionReplica
from kafkapy.controller.events import (
    BrokerChange,
    BrokerModification,
    LeaderAndIsrResponse,
    LogDirChange,
)
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.reassignment import resume
from kafkapy.controller.replica_states import ReplicaState
from kafkapy.controller.state_change_log import StateChangeLog

_log = logging.getLogger("kafka.controller.KafkaController")


async def on_broker_change(parts: ControllerParts) -> None:
    """Compare `/brokers/ids` with the context: new, dead, and bounced brokers (another broker
    epoch).
    """
    context, sender = parts.context, parts.sender
    zxid = await parts.store.brokers.zxid()
    found = await parts.store.brokers.get_all(parts.watch(BrokerChange()))
    known = context.broker_epochs
    new = {b for b in found if b not in known}
    dead = {b for b in known if b not in found}
    bounced = {b for b in found if b in known and found[b].broker_epoch > known[b]}
    _log.info(
        "[Controller id=%d] Newly added brokers: %s, deleted brokers: %s, bounced brokers: %s,"
        " all live brokers: %s",
        parts.config.broker_id,
        *(",".join(map(str, sorted(ids))) for ids in (new, dead, bounced, found)),
    )
    for broker_id in sorted(dead | bounced):
        sender.remove_broker(broker_id)
    for broker_id in sorted(new | bounced):
        sender.add_broker(*found[broker_id])

    def add_brokers(broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            context.add_broker(*found[broker_id])

    if not bounced:
        context.set_brokers_zxid(zxid)
    if new:
        add_brokers(new)
        await _on_startup(parts, new)
    for broker_id in dead | bounced:
        context.remove_broker(broker_id)
    context.set_brokers_zxid(zxid)
    if bounced:
        await _on_failure(parts, bounced)
        add_brokers(bounced)
        await _on_startup(parts, bounced)
    if dead:
        await _on_failure(parts, dead)


async def on_broker_modification(parts: ControllerParts, broker_id: int) -> None:
    """Handle a live broker's change of its advertised endpoints."""
    context = parts.context
    watch = parts.watch(BrokerModification(broker_id))
    found = await parts.store.brokers.get(broker_id, watch)
    known = context.live_brokers.get(broker_id)
    if found is None or known is None or found.broker.endpoints == known.endpoints:
        return
    context.add_broker(found.broker, context.broker_epochs[broker_id])
    parts.send_update_metadata(context.broker_ids)


async def on_log_dir_change(parts: ControllerParts) -> None:
    """Send LeaderAndIsr to brokers that lost a directory. Their responses name its replicas."""
    watch = parts.watch(LogDirChange())
    brokers = await parts.store.requests.take_log_dir_events(parts.context.fence, watch)
    replicas = parts.context.replicas_on(set(brokers))
    await parts.replicas.handle(replicas, ReplicaState.ONLINE)


async def on_leader_and_isr_response(parts: ControllerParts, event: LeaderAndIsrResponse) -> None:
    """Mark replicas with storage errors offline, and those with success online. Ignore other rows,
    and replicas that were removed.

    A response of an earlier broker epoch is ignored. It may be in the queue behind the BrokerChange
    of the restarted broker, whose disks may be sound again.
    """
    context = parts.context
    broker_id, result = event.broker_id, event.result
    if event.broker_epoch != context.broker_epochs.get(broker_id):
        return
    if result.error is not ErrorCode.NONE:
        return
    rows = {
        partition: error
        for partition, error in result.partition_errors.items()
        if context.has_partition(partition) and broker_id in context.assignment(partition).replicas
    }
    failed = {p for p, error in rows.items() if error is ErrorCode.KAFKA_STORAGE_ERROR}
    successful = {p for p, error in rows.items() if error is ErrorCode.NONE}
    before = context.offline_dirs.get(broker_id, set())
    context.offline_dirs[broker_id] = (before | failed) - successful
    newly_failed = sorted(failed - before)
    if newly_failed:
        log = StateChangeLog(parts.config.broker_id, context.epoch)
        log.marked_offline(broker_id, newly_failed)
        offline = [PartitionReplica(p, broker_id) for p in newly_failed]
        await _on_replicas_offline(parts, offline)
    if before & successful:
        # The broker lacked file descriptors; its disk is sound. Kafka elects and deletes only at
        # the next change of a broker.
        await parts.partitions.trigger_online()
        await parts.deletion.resume({partition.topic for partition in before & successful})


async def _on_startup(parts: ControllerParts, new: set[int]) -> None:
    context = parts.context
    for broker_id in new:
        context.offline_dirs.pop(broker_id, None)
    parts.send_update_metadata([b for b in context.broker_ids if b not in new])
    parts.send_update_metadata(sorted(new), sorted(context.leadership))
    replicas = [
        replica
        for replica in context.replicas_on(new)
        if context.replica_states.get(replica) is not ReplicaState.DELETION_SUCCESSFUL
    ]
    await parts.replicas.handle(replicas, ReplicaState.ONLINE)
    await parts.partitions.trigger_online()
    reassigning_to_new = [
        partition
        for partition in context.reassigning_partitions()
        if new.intersection(context.assignment(partition).target)
    ]
    await resume(parts, reassigning_to_new)
    await parts.deletion.resume({replica.topic for replica in replicas})
    for broker_id in sorted(new):
        # Sets the watch. The endpoints may have changed since they were read.
        await on_broker_modification(parts, broker_id)


async def _on_failure(parts: ControllerParts, dead: set[int]) -> None:
    context = parts.context
    for broker_id in dead:
        context.offline_dirs.pop(broker_id, None)
        context.shutting_down.discard(broker_id)
    await _on_replicas_offline(parts, context.replicas_on(dead))


async def _on_replicas_offline(
    parts: ControllerParts, replicas: Iterable[PartitionReplica]
) -> None:
    """Elect new leaders, then shrink ISRs. Send the live brokers to all brokers, unless an election
    has done so.
    """
    context = parts.context
    deleting: list[PartitionReplica] = []
    others: list[PartitionReplica] = []
    for replica in replicas:
        queue = deleting if context.is_queued_for_deletion(replica.topic) else others
        queue.append(replica)
    leaderless = context.partitions_with_offline_leader()
    await parts.partitions.handle(leaderless, PartitionState.OFFLINE)
    await parts.partitions.trigger_online()
    await parts.replicas.handle(others, ReplicaState.OFFLINE)
    await parts.deletion.fail_replicas(deleting)
    if not leaderless:
        parts.send_update_metadata(context.broker_ids)
