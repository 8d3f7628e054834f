"""Moves a partition to other brokers, in steps between which a new controller can take over
(KIP-455, `KafkaController.onPartitionReassignment`).

ORS and TRS are the original and the target replicas. RS = TRS ++ ORS are all replicas during the
reassignment; AR = RS - ORS are added, RR = RS - TRS are removed. The topic's znode holds RS, AR and
RR, from which any controller can continue.

| step  | action                                                                                |
|-------|---------------------------------------------------------------------------------------|
| U1-U3 | write RS, AR, RR to the znode and to memory; remove replicas of only a former target  |
| A1    | increment the leader epoch; LeaderAndIsr to RS, to AR as new replicas                 |
| A2    | AR -> NewReplica; then wait until TRS is in the ISR                                   |
| B1    | AR -> OnlineReplica                                                                   |
| B2    | set RS = TRS, AR and RR empty, in memory                                              |
| B3    | elect a leader in TRS, or increment the epoch of the present one; remove RR from the  |
|       | ISR; LeaderAndIsr to TRS                                                              |
| B4    | RR -> OfflineReplica: StopReplica                                                     |
| B5    | RR -> ReplicaDeletionStarted, ReplicaDeletionSuccessful, NonExistentReplica           |
| B6    | write TRS to the znode                                                                |
| B7    | remove the row from `/admin/reassign_partitions`                                      |
| B8    | UpdateMetadata to all; resume a waiting deletion of the topic                         |

Three differences from Kafka prevent the loss of acknowledged records. U3 comes before the write to
the znode: a controller that fails in between leaves no unknown replica. RR leaves the ISR in B3,
not in B4: the leader no longer waits for its copies, and a controller that takes over between the
two steps could elect it. A change of target that would drop the last in-sync replica is refused, as
in KRaft.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ControllerContext, PartitionReplica, ReplicaAssignment
from kafkapy.controller.partition_state_machine import Strategy
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.replica_states import ReplicaState
from kafkapy.controller.request_batch import RequestBatch
from kafkapy.controller.state_change_log import StateChangeLog

_log = logging.getLogger("kafka.controller.KafkaController")

_REMOVAL_STATES = (
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_STARTED,
    # As in Kafka, without waiting for the answers: an offline broker keeps its copy.
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)


async def reassign(
    parts: ControllerParts, partition: TopicPartition, assignment: ReplicaAssignment
) -> None:
    """Begin, redirect, cancel or resume: phase U, then A or, if TRS is in sync already, B.

    Raises:
        ApiError: INVALID_REPLICA_ASSIGNMENT: no in-sync replica would remain. Nothing changed.
        ControllerMoved: another broker is the controller, and continues.
    """
    await _update_assignment(parts, partition, assignment)
    if await _is_complete(parts, partition, assignment):
        await _complete(parts, partition, assignment)
    else:
        await _begin(parts, partition, assignment)


async def resume(parts: ControllerParts, partitions: Iterable[TopicPartition]) -> None:
    """Resume reassignments after a failover, or after a target broker has returned."""
    for partition in partitions:
        if _is_reassigning(parts.context, partition):
            await reassign(parts, partition, parts.context.assignment(partition))


async def maybe_complete_reassignments(
    parts: ControllerParts, partitions: Iterable[TopicPartition]
) -> None:
    """After a change of ISRs, run phase B where TRS is in sync now."""
    for partition in partitions:
        if not _is_reassigning(parts.context, partition):
            continue
        assignment = parts.context.assignment(partition)
        if await _is_complete(parts, partition, assignment):
            _log.info(
                "[Controller id=%d] Target replicas %s have all caught up with the leader for"
                " reassigning partition %s",
                parts.config.broker_id,
                assignment.target,
                partition,
            )
            await _complete(parts, partition, assignment)


def _is_reassigning(context: ControllerContext, partition: TopicPartition) -> bool:
    """Whether the partition is being reassigned, and its topic not being deleted."""
    return (
        context.has_partition(partition)
        and context.assignment(partition).is_being_reassigned
        and partition.topic not in context.topics_deletion_started
    )


async def _update_assignment(
    parts: ControllerParts, partition: TopicPartition, assignment: ReplicaAssignment
) -> None:
    """Steps U1 to U3."""
    context = parts.context
    current = context.assignment(partition)
    if current == assignment:
        return
    unneeded = [r for r in current.replicas if r not in assignment.replicas]
    if unneeded:
        _check_in_sync_replica_remains(context, partition, assignment, unneeded)
    _log.info(
        "[Controller id=%d] Updating assignment of partition %s from %s to %s",
        parts.config.broker_id,
        partition,
        current,
        assignment,
    )
    context.set_assignment(partition, assignment)
    try:
        if unneeded:
            state = context.leadership.get(partition)
            if state is not None and state.leader in unneeded:
                await parts.partitions.handle([partition], PartitionState.ONLINE)
            await _remove(parts, partition, unneeded)
        await parts.store.topics.reassign(partition, *assignment, context.fence)
    except KafkapyError:
        context.set_assignment(partition, current)
        raise


def _check_in_sync_replica_remains(
    context: ControllerContext,
    partition: TopicPartition,
    assignment: ReplicaAssignment,
    unneeded: list[int],
) -> None:
    state = context.leadership.get(partition)
    if state is None or not set(state.isr).intersection(unneeded):
        return
    remaining = set(state.isr).intersection(assignment.replicas)
    if not any(context.is_replica_online(replica, partition) for replica in remaining):
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to change the reassignment of {partition}: no live replica of its ISR"
            f" ({','.join(map(str, state.isr))}) would remain.",
        )


async def _is_complete(
    parts: ControllerParts, partition: TopicPartition, assignment: ReplicaAssignment
) -> bool:
    """Whether TRS is in the ISR in ZooKeeper."""
    if not assignment.is_being_reassigned:
        return True
    state = (await parts.store.topics.states([partition])).get(partition)
    return state is not None and set(assignment.target) <= set(state.isr)


async def _begin(
    parts: ControllerParts, partition: TopicPartition, assignment: ReplicaAssignment
) -> None:
    """Steps A1 and A2."""
    context = parts.context
    state = context.leadership.get(partition)
    if state is not None:
        if not context.is_replica_online(state.leader, partition):
            # An unclean election may choose an arriving replica, which must exist by then.
            await _add(parts, partition)
            # Topics that wait for deletion get a leader only here. Otherwise they would wait
            # forever.
            await parts.partitions.handle([partition], PartitionState.ONLINE)
        await _increment_leader_epoch_and_send(parts, partition)
    await _add(parts, partition)
    if state is None:
        # The partition never had a leader, so it has no data: any live replica may be the first.
        await parts.partitions.handle([partition], PartitionState.ONLINE)
        if await _is_complete(parts, partition, assignment):
            await _complete(parts, partition, assignment)


async def _add(parts: ControllerParts, partition: TopicPartition) -> None:
    """Step A2, for the replicas of AR that do not exist yet."""
    all_replicas = parts.context.replicas_of_partitions([partition])
    new = [replica for replica in all_replicas if not _exists(parts.context, replica)]
    await parts.replicas.handle(new, ReplicaState.NEW)


async def _complete(
    parts: ControllerParts, partition: TopicPartition, assignment: ReplicaAssignment
) -> None:
    """Steps B1 to B8."""
    context = parts.context
    added = [PartitionReplica(partition, replica) for replica in assignment.adding]
    await parts.replicas.handle(added, ReplicaState.ONLINE)
    target = ReplicaAssignment(assignment.target)
    context.set_assignment(partition, target)
    try:
        if not await _move_leader_to_target(parts, partition) and assignment.removing:
            # The target replicas died while they were in the ISR: keep the present assignment.
            context.set_assignment(partition, assignment)
            return
        await _remove(parts, partition, assignment.removing)
        await parts.store.topics.reassign(partition, *target, context.fence)
    except KafkapyError:
        context.set_assignment(partition, assignment)
        raise
    await parts.store.requests.remove_reassignments(
        lambda row, replicas: row == partition and replicas == target.replicas, context.fence
    )
    parts.send_update_metadata(context.broker_ids, [partition])
    if not context.is_being_reassigned(partition.topic):
        await parts.deletion.resume([partition.topic])


async def _move_leader_to_target(parts: ControllerParts, partition: TopicPartition) -> bool:
    """Step B3. Returns whether a replica of TRS leads now."""
    context = parts.context
    state = context.leadership.get(partition)
    if state is None:
        return False
    in_target = state.leader in context.assignment(partition).replicas
    if in_target and context.is_replica_online(state.leader, partition):
        await _increment_leader_epoch_and_send(parts, partition)
        return True
    outcomes = await parts.partitions.handle([partition], PartitionState.ONLINE, Strategy.REASSIGN)
    return isinstance(outcomes.get(partition), LeaderAndIsr)


async def _remove(
    parts: ControllerParts, partition: TopicPartition, replicas: Iterable[int]
) -> None:
    """Steps B4 and B5, or U3."""
    found = [PartitionReplica(partition, replica) for replica in replicas]
    existing = [replica for replica in found if _exists(parts.context, replica)]
    for state in _REMOVAL_STATES:
        await parts.replicas.handle(existing, state)


def _exists(context: ControllerContext, replica: PartitionReplica) -> bool:
    """Whether a replica exists: not if it is being added, nor if it was removed before a later step
    failed.
    """
    known = context.replica_states.get(replica)
    return known is not None and known is not ReplicaState.NON_EXISTENT


async def _increment_leader_epoch_and_send(
    parts: ControllerParts, partition: TopicPartition
) -> None:
    """Steps A1 or B3: send all replicas the assignment, with a new leader epoch."""
    context = parts.context
    state = await _increment_leader_epoch(parts, partition)
    if state is None:
        return
    assignment = context.assignment(partition)
    batch = RequestBatch(parts.config.broker_id, context, parts.sender)
    batch.add_leader_and_isr(assignment.origin, partition, state)
    # "New" allows a broker to place the replica in any directory while another one is offline.
    batch.add_leader_and_isr(assignment.adding, partition, state, is_new=True)
    batch.send()
    log = StateChangeLog(parts.config.broker_id, context.epoch)
    log.reassigning(partition, state, assignment)


async def _increment_leader_epoch(
    parts: ControllerParts, partition: TopicPartition
) -> LeaderAndIsr | None:
    """The state after a conditional write of the next leader epoch; None if there is no state.

    Replicas that are no longer assigned leave the ISR in the same write (B3).
    """
    context, topics = parts.context, parts.store.topics
    assigned = context.assignment(partition).replicas
    while True:
        state = (await topics.states([partition])).get(partition)
        if state is None:
            _log.error("Partition %s is being reassigned but has no state", partition)
            return None
        incremented = replace(
            state,
            isr=tuple(replica for replica in state.isr if replica in assigned) or state.isr,
            leader_epoch=state.leader_epoch + 1,
            controller_epoch=context.epoch,
        )
        writes = await topics.update_states({partition: incremented}, context.fence)
        if partition in writes.failed:
            raise writes.failed[partition]
        if partition in writes.written:
            context.leadership[partition] = writes.written[partition]
            return writes.written[partition]
