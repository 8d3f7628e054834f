"""Transitions of replica states (`kafka.controller.ZkReplicaStateMachine`).

| transition                               | action                                               |
|------------------------------------------|------------------------------------------------------|
| NonExistent -> New                       | if there is a leader: LeaderAndIsr (new) to it       |
| New -> Online                            | mark                                                 |
| Online, Offline, Ineligible -> Online    | if there is a leader: LeaderAndIsr to it             |
| -> Offline                               | StopReplica to it; out of the ISR, by a conditional  |
|                                          | write; LeaderAndIsr to the other replicas            |
| Offline -> DeletionStarted               | StopReplica (delete) to it                           |
| -> DeletionSuccessful, -> Ineligible     | mark                                                 |
| DeletionSuccessful -> NonExistent        | out of the assignment in memory                      |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kafkapy.common.cluster_state import NO_LEADER, LeaderAndIsr
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.config import ControllerConfig
from kafkapy.controller.context import ControllerContext, PartitionReplica
from kafkapy.controller.ports import BrokerSender
from kafkapy.controller.replica_states import VALID_PREVIOUS_STATES, ReplicaState
from kafkapy.controller.request_batch import RequestBatch
from kafkapy.controller.state_change_log import StateChangeLog
from kafkapy.zk.stores.store import ZkStore


class ReplicaStateMachine:
    """Moves replicas between states, in the context, in ZooKeeper and on the brokers."""

    def __init__(
        self,
        config: ControllerConfig,
        context: ControllerContext,
        store: ZkStore,
        sender: BrokerSender,
    ) -> None:
        self._config = config
        self._context = context
        self._store = store
        self._sender = sender

    async def startup(self) -> None:
        """Set the states from the live brokers, then send every live replica its leader."""
        context = self._context
        online, offline = [], []
        for replica in context.replicas_of_partitions(list(context.partitions())):
            if context.is_replica_online(replica.replica, replica.topic_partition):
                context.replica_states[replica] = ReplicaState.ONLINE
                online.append(replica)
            else:
                # A replica of a topic being deleted must not be taken for deleted.
                context.replica_states[replica] = ReplicaState.DELETION_INELIGIBLE
                offline.append(replica)
        await self.handle(online, ReplicaState.ONLINE)
        await self.handle(offline, ReplicaState.OFFLINE)

    async def handle(self, replicas: Iterable[PartitionReplica], target: ReplicaState) -> None:
        """Move replicas to `target`.

        Raises:
            ControllerMoved: another broker is the controller; nothing more was sent.
        """
        by_broker: dict[int, list[TopicPartition]] = {}
        # A set: a topic's znode may name a replica twice.
        for replica in sorted(set(replicas)):
            if self._is_valid(replica, target):
                by_broker.setdefault(replica.replica, []).append(replica.topic_partition)
        batch = RequestBatch(self._config.broker_id, self._context, self._sender)
        for broker_id in sorted(by_broker):
            partitions = by_broker[broker_id]
            match target:
                case ReplicaState.NEW:
                    self._to_new(broker_id, partitions, batch)
                case ReplicaState.ONLINE:
                    self._to_online(broker_id, partitions, batch)
                case ReplicaState.OFFLINE:
                    await self._to_offline(broker_id, partitions, batch)
                case ReplicaState.DELETION_STARTED:
                    for partition in partitions:
                        self._mark(broker_id, partition, target)
                        batch.add_stop_replica(broker_id, partition, delete=True)
                case ReplicaState.NON_EXISTENT:
                    self._to_non_existent(broker_id, partitions)
                case _:
                    for partition in partitions:
                        self._mark(broker_id, partition, target)
        batch.send()

    def _to_new(
        self, broker_id: int, partitions: Sequence[TopicPartition], batch: RequestBatch
    ) -> None:
        for partition in partitions:
            state = self._context.leadership.get(partition)
            if state is not None and state.leader == broker_id:
                reason = "it is being requested to become leader"
                self._log_failed(broker_id, partition, ReplicaState.NEW, reason)
                continue
            if state is not None:
                batch.add_leader_and_isr([broker_id], partition, state, is_new=True)
            self._mark(broker_id, partition, ReplicaState.NEW)

    def _to_online(
        self, broker_id: int, partitions: Sequence[TopicPartition], batch: RequestBatch
    ) -> None:
        context = self._context
        for partition in partitions:
            before = context.replica_states[PartitionReplica(partition, broker_id)]
            state = context.leadership.get(partition)
            if before is ReplicaState.NEW:
                assignment = context.assignment(partition)
                if broker_id not in assignment.replicas:
                    new_assignment = assignment._replace(replicas=(*assignment.replicas, broker_id))
                    context.set_assignment(partition, new_assignment)
            elif state is not None:
                batch.add_leader_and_isr([broker_id], partition, state)
            self._mark(broker_id, partition, ReplicaState.ONLINE)

    async def _to_offline(
        self, broker_id: int, partitions: Sequence[TopicPartition], batch: RequestBatch
    ) -> None:
        context = self._context
        for partition in partitions:
            batch.add_stop_replica(broker_id, partition)
        led = [p for p in partitions if p in context.leadership]
        for partition, state in (await self._remove_from_isr(broker_id, led)).items():
            if not context.is_queued_for_deletion(partition.topic):
                others = [r for r in context.assignment(partition).replicas if r != broker_id]
                batch.add_leader_and_isr(others, partition, state)
            self._mark(broker_id, partition, ReplicaState.OFFLINE)
        for partition in partitions:
            if partition not in context.leadership:
                self._mark(broker_id, partition, ReplicaState.OFFLINE)
                batch.add_update_metadata(context.broker_ids, [partition])

    async def _remove_from_isr(
        self, broker_id: int, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LeaderAndIsr]:
        """Remove a replica from the ISRs. Reads and writes again until the conditional write
        succeeds. Returns the new states.

        The last member stays in the ISR, as the replica that has the data. Without a leader, the
        state has leader -1.
        """
        context = self._context
        results: dict[TopicPartition, LeaderAndIsr] = {}
        remaining = list(partitions)
        while remaining:
            current = await self._store.topics.states(remaining)
            new_states: dict[TopicPartition, LeaderAndIsr] = {}
            for partition in remaining:
                state = current.get(partition)
                if state is None:
                    reason = "its state is not in ZooKeeper"
                    self._log_failed(broker_id, partition, ReplicaState.OFFLINE, reason)
                elif broker_id in state.isr:
                    new_states[partition] = self._state_without_member(broker_id, state)
                else:
                    results[partition] = state
            writes = await self._store.topics.update_states(new_states, context.fence)
            for partition, state in writes.written.items():
                results[partition] = state
                self._log().removed_from_isr(broker_id, partition, state)
            for partition, error in writes.failed.items():
                self._log_failed(broker_id, partition, ReplicaState.OFFLINE, str(error))
            remaining = writes.retry
        context.leadership.update(results)
        return dict(sorted(results.items()))

    def _state_without_member(self, broker_id: int, state: LeaderAndIsr) -> LeaderAndIsr:
        """The state without this member, and without all members whose brokers are not live.

        Kafka writes one state per broker. If its controller stops between two writes, the next one
        cannot detect that a member registered again before the last write. That member may lack
        the end of its log.
        """
        live = self._context.live_brokers
        others = tuple(replica for replica in state.isr if replica != broker_id)
        isr = tuple(replica for replica in others if replica in live) or others or state.isr
        keeps_leader = state.leader != broker_id and state.leader in isr and state.leader in live
        return replace(
            state,
            leader=state.leader if keeps_leader else NO_LEADER,
            isr=isr,
            leader_epoch=state.leader_epoch + 1,
            controller_epoch=self._context.epoch,
        )

    def _to_non_existent(self, broker_id: int, partitions: Sequence[TopicPartition]) -> None:
        context = self._context
        for partition in partitions:
            self._mark(broker_id, partition, ReplicaState.NON_EXISTENT)
            del context.replica_states[PartitionReplica(partition, broker_id)]
            # The errors of a replica that is added again are news.
            context.offline_dirs.get(broker_id, set()).discard(partition)
            context.set_assignment(
                partition, context.assignment(partition).without_replica(broker_id)
            )

    def _is_valid(self, replica: PartitionReplica, target: ReplicaState) -> bool:
        state = self._context.replica_states.setdefault(replica, ReplicaState.NON_EXISTENT)
        if state in VALID_PREVIOUS_STATES[target]:
            return True
        self._log_failed(replica.replica, replica.topic_partition, target, "illegal transition")
        return False

    def _mark(self, broker_id: int, partition: TopicPartition, target: ReplicaState) -> None:
        replica = PartitionReplica(partition, broker_id)
        before = self._context.replica_states[replica]
        self._log().replica_changed(broker_id, partition, before, target)
        self._context.replica_states[replica] = target

    def _log_failed(
        self, broker_id: int, partition: TopicPartition, target: ReplicaState, reason: str
    ) -> None:
        before = self._context.replica_states[PartitionReplica(partition, broker_id)]
        self._log().replica_failed(broker_id, partition, before, target, reason)

    def _log(self) -> StateChangeLog:
        return StateChangeLog(self._config.broker_id, self._context.epoch)
