"""What a newly elected controller does, in Kafka's order (`onControllerFailover`)."""

from __future__ import annotations

import logging

from kafkapy.common.ports import Random
from kafkapy.controller.events import (
    BrokerChange,
    BrokerModification,
    IsrChange,
    LogDirChange,
    TopicChange,
    TopicDeletionChange,
)
from kafkapy.controller.leader_elections import on_preferred_election_change
from kafkapy.controller.parts import ControllerParts
from kafkapy.controller.reassignment_requests import resume_all
from kafkapy.controller.topic_changes import load_topics

_log = logging.getLogger("kafka.controller.KafkaController")


async def fail_over(parts: ControllerParts, random: Random) -> None:
    """Read the cluster, tell it who leads, and resume what the last controller left undone.

    Raises:
        ControllerMoved: another broker was elected meanwhile.
    """
    context, store = parts.context, parts.store
    context.reset()
    await store.create_feature_node(context.fence)
    await store.requests.take_log_dir_events(context.fence, parts.watch(LogDirChange()))
    await store.requests.take_isr_changes(context.fence, parts.watch(IsrChange()))
    await _load_context(parts, random)
    await _load_deletions(parts)
    # Brokers must know who is live before they are told to follow someone.
    parts.send_update_metadata(context.broker_ids)
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


async def _load_context(parts: ControllerParts, random: Random) -> None:
    context, store = parts.context, parts.store
    brokers = await store.brokers.get_all(parts.watch(BrokerChange()))
    for registration in brokers.values():
        context.add_broker(*registration)
    topics = await store.topics.names(parts.watch(TopicChange()))
    partitions = await load_topics(parts, topics, random)
    for broker_id in brokers:
        await store.brokers.get(broker_id, parts.watch(BrokerModification(broker_id)))
    context.leadership = await store.topics.states(partitions)
    for registration in brokers.values():
        parts.sender.add_broker(*registration)


async def _load_deletions(parts: ControllerParts) -> None:
    """The topics to delete, halted where a replica is not live or on the move."""
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
    useless = [topic for topic in queued if topic not in known]
    if useless:
        await parts.store.requests.remove_topic_deletions(useless, context.fence)
