"""Moves leaders away from a broker that is about to stop."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import PartitionReplica
from kafkapy.controller.events import ControlledShutdown, ControlledShutdownResult
from kafkapy.controller.partition_state_machine import Strategy
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.replica_states import ReplicaState
from kafkapy.controller.request_batch import RequestBatch


async def on_controlled_shutdown(parts: ControllerParts, event: ControlledShutdown) -> None:
    """Elect other leaders for the broker's partitions, and remove it from the ISRs of those that it
    follows.

    Only partitions with more than one replica are handled. The others stop with their broker.
    """
    context = parts.context
    broker_id = event.broker_id
    known_epoch = context.broker_epochs.get(broker_id)
    if known_epoch is None:
        event.reply(ControlledShutdownResult(ErrorCode.BROKER_NOT_AVAILABLE))
        return
    if event.broker_epoch != -1 and event.broker_epoch < known_epoch:
        event.reply(ControlledShutdownResult(ErrorCode.STALE_BROKER_EPOCH))
        return
    context.shutting_down.add(broker_id)
    led, followed = _replicated_partitions(parts, broker_id)
    await parts.partitions.handle(led, PartitionState.ONLINE, Strategy.CONTROLLED_SHUTDOWN)
    batch = RequestBatch(parts.config.broker_id, context, parts.sender)
    for partition in followed:
        batch.add_stop_replica(broker_id, partition)
    batch.send()
    replicas = [PartitionReplica(partition, broker_id) for partition in followed]
    await parts.replicas.handle(replicas, ReplicaState.OFFLINE)
    event.reply(ControlledShutdownResult(remaining=_replicated_partitions(parts, broker_id)[0]))


def _replicated_partitions(
    parts: ControllerParts, broker_id: int
) -> tuple[list[TopicPartition], list[TopicPartition]]:
    """The broker's partitions with more than one replica: those it leads, those it follows."""
    context = parts.context
    led: list[TopicPartition] = []
    followed: list[TopicPartition] = []
    for partition in context.partitions():
        replicas = context.assignment(partition).replicas
        state = context.leadership.get(partition)
        if broker_id not in replicas or len(replicas) < 2 or state is None:
            continue
        if not context.is_queued_for_deletion(partition.topic):
            (led if state.leader == broker_id else followed).append(partition)
    return led, followed
