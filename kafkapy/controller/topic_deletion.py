"""Deletes topics, over several events (`kafka.controller.TopicDeletionManager`).

A queued topic is halted ("ineligible") while one of its replicas is on a dead broker or directory,
or a reassignment runs. Otherwise all brokers drop it from their metadata, and its live replicas
become Offline, then DeletionStarted. Responses make them Successful, or Ineligible, which halts the
topic until that broker returns. When all are Successful, the znodes are deleted. The request is
deleted last, so that a new controller can resume at any step.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from kafkapy.controller.config import ControllerConfig
from kafkapy.controller.context import ControllerContext, PartitionReplica
from kafkapy.controller.partition_state_machine import PartitionStateMachine
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.ports import BrokerSender
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.controller.replica_states import ReplicaState
from kafkapy.controller.request_batch import RequestBatch
from kafkapy.zk.stores.store import ZkStore

_log = logging.getLogger("kafka.controller.TopicDeletionManager")


class TopicDeletion:
    """Topics queued for deletion, and the progress of each. The state is in the context."""

    def __init__(
        self,
        config: ControllerConfig,
        context: ControllerContext,
        store: ZkStore,
        sender: BrokerSender,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
    ) -> None:
        self._config = config
        self._context = context
        self._store = store
        self._sender = sender
        self._partitions = partitions
        self._replicas = replicas

    async def initialize(self, queued: Sequence[str], ineligible: Iterable[str]) -> None:
        """Queue the requests found at failover. If deletion is disabled, drop them."""
        if self._config.delete_topic_enable:
            self._context.topics_to_delete = set(queued)
            self._context.topics_ineligible = set(ineligible) & set(queued)
        elif queued:
            _log.info("Removing %s since delete topic is disabled", ",".join(queued))
            await self._store.requests.remove_topic_deletions(queued, self._context.fence)

    async def enqueue(self, topics: Iterable[str]) -> None:
        """Queue topics and start their deletion."""
        self._context.topics_to_delete.update(topics)
        await self.advance()

    async def resume(self, topics: Iterable[str]) -> None:
        """Resume the deletion of halted topics."""
        resumed = self._context.topics_to_delete.intersection(topics)
        if resumed:
            self._context.topics_ineligible -= resumed
            await self.advance()

    def halt(self, topics: Iterable[str], reason: str) -> None:
        """Halt the deletion of topics, if they are queued."""
        halted = sorted(self._context.topics_to_delete.intersection(topics))
        if halted:
            self._context.topics_ineligible.update(halted)
            _log.info("Halted deletion of topics %s due to %s", ",".join(halted), reason)

    async def fail_replicas(self, replicas: Iterable[PartitionReplica]) -> None:
        """Note replicas whose brokers died, or refused to delete them."""
        context = self._context
        states = context.replica_states
        failed = [
            replica
            for replica in replicas
            if context.is_queued_for_deletion(replica.topic)
            and states.get(replica) is not ReplicaState.DELETION_SUCCESSFUL
        ]
        if failed:
            waiting = [r for r in failed if states.get(r) is not ReplicaState.DELETION_STARTED]
            await self._replicas.handle(waiting, ReplicaState.OFFLINE)
            await self._replicas.handle(failed, ReplicaState.DELETION_INELIGIBLE)
            self.halt({replica.topic for replica in failed}, "replica deletion failure")
            await self.advance()

    async def complete_replicas(self, replicas: Iterable[PartitionReplica]) -> None:
        """Note replicas that brokers deleted."""
        deleted = [r for r in replicas if self._context.is_queued_for_deletion(r.topic)]
        if deleted:
            await self._replicas.handle(deleted, ReplicaState.DELETION_SUCCESSFUL)
            await self.advance()

    async def advance(self) -> None:
        """Advance every queued topic as far as possible."""
        context = self._context
        retry: list[PartitionReplica] = []
        begin: list[str] = []
        for topic in sorted(context.topics_to_delete):
            states = {context.replica_states.get(r) for r in context.replicas_of_topic(topic)}
            if states <= {ReplicaState.DELETION_SUCCESSFUL}:
                await self._complete(topic)
                continue
            if ReplicaState.DELETION_STARTED in states:
                continue
            retry += context.replicas_in_state(topic, ReplicaState.DELETION_INELIGIBLE)
            if topic not in context.topics_ineligible:
                begin.append(topic)
        if retry:
            await self._replicas.handle(retry, ReplicaState.OFFLINE)
        if begin:
            await self._begin(begin)

    async def _begin(self, topics: Sequence[str]) -> None:
        context = self._context
        not_started = [t for t in topics if t not in context.topics_deletion_started]
        partitions = [p for topic in not_started for p in context.partitions_of(topic)]
        await self._partitions.handle(partitions, PartitionState.OFFLINE)
        await self._partitions.handle(partitions, PartitionState.NON_EXISTENT)
        context.topics_deletion_started.update(not_started)
        batch = RequestBatch(self._config.broker_id, context, self._sender)
        all_partitions = [p for topic in topics for p in context.partitions_of(topic)]
        batch.add_update_metadata(context.broker_ids, all_partitions)
        batch.send()

        dead: list[PartitionReplica] = []
        live: list[PartitionReplica] = []
        for replica in context.replicas_of_partitions(all_partitions):
            if context.replica_states.get(replica) is ReplicaState.DELETION_SUCCESSFUL:
                continue
            online = context.is_replica_online(replica.replica, replica.topic_partition)
            (live if online else dead).append(replica)
        await self._replicas.handle([*dead, *live], ReplicaState.OFFLINE)
        await self._replicas.handle(dead, ReplicaState.DELETION_INELIGIBLE)
        await self._replicas.handle(live, ReplicaState.DELETION_STARTED)
        self.halt({replica.topic for replica in dead}, "offline replicas")

    async def _complete(self, topic: str) -> None:
        context = self._context
        fence = context.fence
        if context.is_being_reassigned(topic):
            requests = self._store.requests
            await requests.remove_reassignments(lambda row, _: row.topic == topic, fence)
        deleted = context.replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL)
        await self._replicas.handle(deleted, ReplicaState.NON_EXISTENT)
        await self._store.topics.delete(topic, fence)
        context.remove_topic(topic)
        _log.info("Deletion of topic %s successfully completed", topic)
