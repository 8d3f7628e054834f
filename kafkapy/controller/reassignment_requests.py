"""Requests for reassignments: from AlterPartitionReassignments, the znode of older tools, or a
failed controller; and the list of those in progress. `reassignment` has the steps.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ControllerContext, ReplicaAssignment
from kafkapy.controller.events import (
    AlterPartitionReassignments,
    ListPartitionReassignments,
    ReassignmentChange,
    ReassignmentResult,
)
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.reassignment import reassign, resume
from kafkapy.zk.stores.paths import REASSIGN_PARTITIONS
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import NoNode

_log = logging.getLogger("kafka.controller.KafkaController")

_STARTED = ReassignmentResult(ErrorCode.NONE)
_UNKNOWN_PARTITION = ReassignmentResult(
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
)
_NONE_IN_PROGRESS = ReassignmentResult(
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
)


async def on_alter_partition_reassignments(
    parts: ControllerParts, event: AlterPartitionReassignments
) -> None:
    """Begin, redirect or cancel each reassignment. The latest request counts, so its rows are
    removed from the znode.
    """
    context = parts.context
    results: dict[TopicPartition, ReassignmentResult] = {}
    wanted: dict[TopicPartition, ReplicaAssignment] = {}
    for partition, target in event.targets.items():
        current = _assignment(context, partition)
        if target is None and not current.is_being_reassigned:
            results[partition] = _NONE_IN_PROGRESS
            continue
        replicas = current.origin if target is None else target
        refusal = _malformed_error(replicas) or _offline_brokers_error(
            context, current.reassign_to(replicas)
        )
        if target is not None and refusal is not None:
            results[partition] = ReassignmentResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, refusal)
            continue
        wanted[partition] = current.reassign_to(replicas)
    await parts.store.requests.remove_reassignments(lambda row, _: row in wanted, context.fence)
    for partition, assignment in wanted.items():
        results[partition] = await _submit(parts, partition, assignment)
    event.reply({partition: results[partition] for partition in event.targets})


async def on_reassignment_change(parts: ControllerParts) -> set[TopicPartition]:
    """Begin the reassignments of `/admin/reassign_partitions` that are not in progress. Returns
    them.

    Its rows are removed when they are complete, or at once if they are invalid. As in Kafka, a
    target need not be live: the reassignment waits for it.
    """
    context, requests = parts.context, parts.store.requests
    started: set[TopicPartition] = set()
    failed: set[TopicPartition] = set()
    wanted = await requests.reassignments(parts.watch(ReassignmentChange()))
    for partition, target in wanted.items():
        current = _assignment(context, partition)
        assignment = current.reassign_to(target)
        if current.is_being_reassigned and current == assignment:
            continue
        malformed = _malformed_error(target)
        if malformed is None:
            error, message = await _submit(parts, partition, assignment)
        else:
            error, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, malformed
        if error is not ErrorCode.NONE:
            failed.add(partition)
            _log.error("%s: %s cannot be reassigned: %s", REASSIGN_PARTITIONS, partition, message)
            continue
        started.add(partition)
        if (reason := _offline_brokers_error(context, assignment)) is not None:
            _log.warning("%s: %s has to wait: %s", REASSIGN_PARTITIONS, partition, reason)
    await requests.remove_reassignments(lambda row, _: row in failed, context.fence)
    return started


async def resume_all(parts: ControllerParts) -> None:
    """At failover, begin new reassignments, then resume those that were in progress."""
    started = await on_reassignment_change(parts)
    remaining = [p for p in parts.context.reassigning_partitions() if p not in started]
    await resume(parts, remaining)


def on_list_partition_reassignments(
    parts: ControllerParts, event: ListPartitionReassignments
) -> None:
    """List the requested partitions that are being reassigned. Unknown ones are left out."""
    context = parts.context
    requested = context.partitions() if event.partitions is None else event.partitions
    found = {partition: _assignment(context, partition) for partition in requested}
    event.reply(
        {p: assignment for p, assignment in found.items() if assignment.is_being_reassigned}
    )


def _assignment(context: ControllerContext, partition: TopicPartition) -> ReplicaAssignment:
    known = context.has_partition(partition)
    return context.assignment(partition) if known else ReplicaAssignment(())


async def _submit(
    parts: ControllerParts, partition: TopicPartition, assignment: ReplicaAssignment
) -> ReassignmentResult:
    context = parts.context
    if not context.has_partition(partition) or context.is_queued_for_deletion(partition.topic):
        return _UNKNOWN_PARTITION
    try:
        await reassign(parts, partition, assignment)
    except ApiError as refusal:
        return ReassignmentResult(refusal.code, refusal.message)
    except (NoNode, ZnodeError) as error:
        return ReassignmentResult(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    return _STARTED


def _malformed_error(replicas: Sequence[int]) -> str | None:
    if not replicas:
        return "Empty replica list specified in partition reassignment."
    if len(set(replicas)) != len(replicas):
        return f"Duplicate replica ids in partition reassignment replica list: {_ids(replicas)}"
    if min(replicas) < 0:
        return f"Invalid broker id in replica list: {_ids(replicas)}"
    return None


def _offline_brokers_error(context: ControllerContext, assignment: ReplicaAssignment) -> str | None:
    live = [b for b in context.broker_ids if b not in context.shutting_down]
    if set(assignment.adding) <= set(live):
        return None
    return (
        "Replica assignment has brokers that are not alive. Replica list:"
        f" {_ids(assignment.adding)}, live broker list: {_ids(live)}"
    )


def _ids(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas))
