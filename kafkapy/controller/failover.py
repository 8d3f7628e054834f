"""Failover: the steps of a newly elected controller, in Kafka's order (`onControllerFailover`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkapy.common.ports import Random
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import (
    BrokerChange,
    BrokerModification,
    IsrChange,
    LogDirChange,
    TopicChange,
    TopicDeletionChange,
)
from kafkapy.controller.leader_elections import on_preferred_election_change
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.reassignment_requests import resume_all
from kafkapy.controller.topic_changes import load_topics

_log = logging.getLogger("kafka.controller.KafkaController")


async def fail_over(parts: ControllerParts, random: Random) -> None:
    """Read the cluster's state, send it to brokers, and resume unfinished work of the last
    controller.

    Raises:
        ControllerMoved: another broker was elected meanwhile.
    """
    context, store = parts.context, parts.store
    context.reset()
    await store.create_feature_node(context.fence)
    await store.requests.take_log_dir_events(context.fence, parts.watch(LogDirChange()))
    await store.requests.take_isr_changes(context.fence, parts.watch(IsrChange()))
    zxids = await _load_context(parts, random)
    await _load_deletions(parts)
    # Brokers need the live brokers before a LeaderAndIsr that makes them followers of one.
    parts.send_update_metadata(context.broker_ids)
    await _elect_after_restarts(parts, zxids)
    await parts.replicas.startup()
    await parts.partitions.startup()
    await resume_all(parts)
    await parts.deletion.advance()
    await on_preferred_election_change(parts)
    _log.info(
        "[Controller id=%d] Ready to serve as the new controller with epoch %d",
        parts.config.broker_id,
        context.epoch,
    )


async def _load_context(parts: ControllerParts, random: Random) -> dict[TopicPartition, int]:
    """Fill the context. Returns, for each partition, the zxid up to which the writer of its state
    had handled the registrations of brokers."""
    context, store = parts.context, parts.store
    zxid = await store.brokers.zxid()
    brokers = await store.brokers.get_all(parts.watch(BrokerChange()))
    for registration in brokers.values():
        context.add_broker(*registration)
    context.set_brokers_zxid(zxid)
    topics = await store.topics.names(parts.watch(TopicChange()))
    partitions = await load_topics(parts, topics, random)
    for broker_id, (_, broker_epoch) in brokers.items():
        watch = parts.watch(BrokerModification(broker_id))
        if (latest := await store.brokers.get(broker_id, watch)) is not None:
            # The endpoints may have changed before the watch was set.
            context.add_broker(latest.broker, broker_epoch)
    found = await store.topics.states_and_zxids(partitions)
    context.leadership = {partition: state for partition, (state, _) in found.items()}
    for broker_id, broker in context.live_brokers.items():
        parts.sender.add_broker(broker, context.broker_epochs[broker_id])
    return {partition: zxid for partition, (_, zxid) in found.items()}


async def _elect_after_restarts(
    parts: ControllerParts, zxids: Mapping[TopicPartition, int]
) -> None:
    """Elect again where the writer of the state had not handled an ISR member's registration.

    The last controller ended before it could handle that restart. The restarted broker may have
    lost the end of its log. If it led at the same leader epoch again, it would write other records
    at the same offsets and epoch, and followers could not distinguish them from the lost ones. As
    after any restart, restarted members leave the ISR, unless no other live member remains.
    """
    context = parts.context
    partitions_to_elect: list[TopicPartition] = []
    for partition, state in context.leadership.items():
        if len(context.assignment(partition).replicas) == 1:
            continue
        if context.is_queued_for_deletion(partition.topic):
            continue
        live = [b for b in state.isr if context.is_replica_online(b, partition)]
        restarted_members = [b for b in live if context.broker_epochs[b] > zxids[partition]]
        if restarted_members:
            partitions_to_elect.append(partition)
            context.partition_states[partition] = PartitionState.OFFLINE
            for broker_id in restarted_members if len(restarted_members) < len(live) else ():
                context.offline_dirs.setdefault(broker_id, set()).add(partition)
    if partitions_to_elect:
        _log.info(
            "[Controller id=%d] Electing leaders of %d partitions whose in-sync replicas restarted"
            " unnoticed",
            parts.config.broker_id,
            len(partitions_to_elect),
        )
        # A broker that has just started treats a partition as deleted if it receives other
        # partitions of the topic without it.
        parts.send_update_metadata(context.broker_ids, sorted(context.leadership))
        await parts.partitions.handle(partitions_to_elect, PartitionState.ONLINE)
        context.offline_dirs.clear()


async def _load_deletions(parts: ControllerParts) -> None:
    """Load the topics to delete. A topic is halted while a replica is not live, or is being
    reassigned.
    """
    context = parts.context
    queued = await parts.store.requests.topic_deletions(parts.watch(TopicDeletionChange()))
    known = [topic for topic in queued if context.has_topic(topic)]
    halted = [
        topic
        for topic in known
        if context.is_being_reassigned(topic)
        or not all(
            context.is_replica_online(replica.replica, replica.topic_partition)
            for replica in context.replicas_of_topic(topic)
        )
    ]
    await parts.deletion.initialize(known, halted)
    if len(known) < len(queued):
        # The other topics do not exist, or were created after the topics were read.
        parts.submit(TopicDeletionChange())
