"""Handles topics that are created, get more partitions, or must be deleted."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from kafkapy.common.cluster_state import StopReplicaCommand, TopicDescription
from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.controller.context import PartitionReplica
from kafkapy.controller.events import (
    PartitionModification,
    StopReplicaResponse,
    TopicChange,
    TopicDeletionChange,
)
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.replica_states import ReplicaState

_log = logging.getLogger("kafka.controller.KafkaController")


async def on_topic_change(parts: ControllerParts, random: Random) -> None:
    """Compare `/brokers/topics` with the context."""
    context = parts.context
    names = await parts.store.topics.names(parts.watch(TopicChange()))
    for topic in sorted(set(context.topics).difference(names)):
        context.remove_topic(topic)
    new = [topic for topic in names if not context.has_topic(topic)]
    await on_new_partitions(parts, await load_topics(parts, new, random))


async def load_topics(
    parts: ControllerParts, names: Sequence[str], random: Random
) -> list[TopicPartition]:
    """Add topics to the context, with a watch on each. Returns their partitions.

    A topic without an id, which an old broker created, gets one.
    """
    watches = {topic: parts.watch(PartitionModification(topic)) for topic in names}
    found = await parts.store.topics.get_all(names, watches)
    new: list[TopicPartition] = []
    for description in found.values():
        if description.topic_id.is_zero:
            description = replace(description, topic_id=Uuid.random(random))
            await parts.store.topics.update_as_controller(description, parts.context.fence)
        new += parts.context.add_topic(description)
    return new


async def on_partition_modification(parts: ControllerParts, topic: str) -> None:
    """Handle a change of a topic's znode: add new partitions, unless the topic is being deleted.

    Tools of Kafka before 2.8 write the znode without the topic's id, which is restored. Otherwise
    the next controller would assign another id, with which brokers refuse LeaderAndIsr
    (KAFKA-14190).
    """
    context = parts.context
    watch = parts.watch(PartitionModification(topic))
    found = await parts.store.topics.get(topic, watch)
    if found is None or not context.has_topic(topic):
        return
    if context.is_queued_for_deletion(topic):
        await _undo_new_partitions(parts, found)
        return
    if found.topic_id.is_zero:
        found = replace(found, topic_id=context.topic_id(topic))
        await parts.store.topics.update_as_controller(found, context.fence)
    await on_new_partitions(parts, context.add_topic(found))


async def on_new_partitions(parts: ControllerParts, new: Sequence[TopicPartition]) -> None:
    """Move new partitions and their replicas to New, then to Online with a leader."""
    if not new:
        return
    _log.info(
        "[Controller id=%d epoch=%d] New partition creation callback for %s",
        parts.config.broker_id,
        parts.context.epoch,
        ",".join(map(str, new)),
    )
    replicas = parts.context.replicas_of_partitions(list(new))
    await parts.partitions.handle(new, PartitionState.NEW)
    await parts.replicas.handle(replicas, ReplicaState.NEW)
    await parts.partitions.handle(new, PartitionState.ONLINE)
    await parts.replicas.handle(replicas, ReplicaState.ONLINE)


async def on_topic_deletion_change(parts: ControllerParts, random: Random) -> None:
    """Handle requests in `/admin/delete_topics`."""
    context = parts.context
    watch = parts.watch(TopicDeletionChange())
    requested = await parts.store.requests.topic_deletions(watch)
    if not all(map(context.has_topic, requested)):
        # A topic may be so new that its own event still waits. Kafka drops the request then.
        await on_topic_change(parts, random)
    known = [topic for topic in requested if context.has_topic(topic)]
    ignored = [topic for topic in requested if topic not in known]
    if not parts.config.delete_topic_enable:
        known, ignored = [], requested
    if ignored:
        _log.warning("Ignoring request to delete topics %s", ",".join(ignored))
        await parts.store.requests.remove_topic_deletions(ignored, context.fence)
    new = [topic for topic in known if not context.is_queued_for_deletion(topic)]
    if new:
        context.topics_to_delete.update(new)
        reassigning = [topic for topic in new if context.is_being_reassigned(topic)]
        parts.deletion.halt(reassigning, "topic reassignment in progress")
        await parts.deletion.enqueue(new)


async def on_stop_replica_response(parts: ControllerParts, event: StopReplicaResponse) -> None:
    """Handle the result of deleting replicas.

    A response of an earlier broker epoch is ignored: the broker's failure was handled, and the
    command was sent again after its restart.
    """
    if event.command.broker_epoch != parts.context.broker_epochs.get(event.broker_id):
        return
    rows = [p for p in _deletions(event.command) if _has_replica(parts, p, event.broker_id)]
    if event.result.error is not ErrorCode.NONE:
        failed = set(rows)
    else:
        errors = event.result.partition_errors
        failed = {p for p in rows if errors.get(p, ErrorCode.NONE) is not ErrorCode.NONE}
    await parts.deletion.fail_replicas(
        [PartitionReplica(p, event.broker_id) for p in rows if p in failed]
    )
    await parts.deletion.complete_replicas(
        [PartitionReplica(p, event.broker_id) for p in rows if p not in failed]
    )


def _has_replica(parts: ControllerParts, partition: TopicPartition, broker_id: int) -> bool:
    """Whether the replica still exists: a reassignment may have removed it."""
    context = parts.context
    return context.has_partition(partition) and broker_id in context.assignment(partition).replicas


def _deletions(command: StopReplicaCommand) -> list[TopicPartition]:
    return [TopicPartition(row.topic, row.partition) for row in command.partitions if row.delete]


async def _undo_new_partitions(parts: ControllerParts, found: TopicDescription) -> None:
    context = parts.context
    known = context.describe_topic(found.topic)
    if set(found.assignment) <= set(known.assignment):
        return
    _log.error("Topic %s is being deleted: its new partitions are removed", found.topic)
    await parts.store.topics.update_as_controller(known, context.fence)
