"""Transitions of partition states (`kafka.controller.ZkPartitionStateMachine`).

| transition                 | action                                                             |
|----------------------------|--------------------------------------------------------------------|
| NonExistent -> New         | mark                                                               |
| New -> Online              | first live replica leads, live ones are the ISR; create the state  |
|                            | znode; LeaderAndIsr (new) to the ISR                               |
| Online, Offline -> Online  | elect by strategy, conditional write; LeaderAndIsr to recipients   |
| -> Offline, -> NonExistent | mark                                                               |
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.config import ControllerConfig
from kafkapy.controller.context import ControllerContext
from kafkapy.controller.election import (
    Election,
    elect_controlled_shutdown,
    elect_offline,
    elect_preferred,
    elect_reassign,
)
from kafkapy.controller.partition_states import VALID_PREVIOUS_STATES, PartitionState
from kafkapy.controller.ports import BrokerSender
from kafkapy.controller.request_batch import RequestBatch
from kafkapy.controller.state_change_log import StateChangeLog
from kafkapy.zk.stores.store import ControllerMoved, ZkStore
from kafkapy.zk.stores.znodes import ZnodeError

_log = logging.getLogger("kafka.controller.KafkaController")

# The result for each partition that should become Online: its new state, or the error.
Outcomes = dict[TopicPartition, LeaderAndIsr | str]


class Strategy(Enum):
    """Strategies of leader election. UNCLEAN is Offline with unclean election allowed once."""

    OFFLINE = "OfflinePartitionLeaderElectionStrategy(false)"
    UNCLEAN = "OfflinePartitionLeaderElectionStrategy(true)"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"


class PartitionStateMachine:
    """Moves partitions between states, in the context, in ZooKeeper and on the brokers."""

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
        """Set the states from ZooKeeper's data, then elect leaders for partitions without one."""
        context = self._context
        for partition in context.partitions():
            state = context.leadership.get(partition)
            if state is None:
                context.partition_states[partition] = PartitionState.NEW
            elif context.is_replica_online(state.leader, partition):
                context.partition_states[partition] = PartitionState.ONLINE
            else:
                context.partition_states[partition] = PartitionState.OFFLINE
        await self.trigger_online()

    async def trigger_online(self, topic: str | None = None) -> None:
        """Try to elect leaders for all New and Offline partitions (of one topic)."""
        context = self._context
        partitions = context.partitions() if topic is None else context.partitions_of(topic)
        leaderless = [
            partition
            for partition in partitions
            if context.partition_states.get(partition)
            in (PartitionState.NEW, PartitionState.OFFLINE)
            and not context.is_queued_for_deletion(partition.topic)
        ]
        await self.handle(leaderless, PartitionState.ONLINE, Strategy.OFFLINE)

    async def handle(
        self,
        partitions: Sequence[TopicPartition],
        target: PartitionState,
        strategy: Strategy = Strategy.OFFLINE,
    ) -> Outcomes:
        """Move partitions to `target`. For Online, returns the result of each.

        Raises:
            ControllerMoved: another broker is the controller; nothing more was sent.
        """
        valid = self._valid_transitions(partitions, target)
        log = self._log()
        states = self._context.partition_states
        if target is not PartitionState.ONLINE:
            for partition in valid:
                state = states.get(partition, PartitionState.NON_EXISTENT)
                if target is PartitionState.NEW:
                    replicas = self._context.assignment(partition).replicas
                    log.partition_new(partition, state, replicas)
                else:
                    log.partition_changed(partition, state, target)
                states[partition] = target
            return {}
        batch = RequestBatch(self._config.broker_id, self._context, self._sender)
        new = [p for p in valid if states[p] is PartitionState.NEW]
        outcomes = await self._initialize(new, batch)
        others = [p for p in valid if states[p] is not PartitionState.NEW]
        outcomes |= await self._elect(others, strategy, batch)
        for partition, outcome in outcomes.items():
            if isinstance(outcome, LeaderAndIsr):
                log.partition_online(partition, states[partition], outcome)
                states[partition] = PartitionState.ONLINE
            else:
                log.partition_failed(partition, states[partition], target, outcome)
        batch.send()
        return outcomes

    def _valid_transitions(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> list[TopicPartition]:
        valid = []
        for partition in partitions:
            state = self._context.partition_states.get(partition, PartitionState.NON_EXISTENT)
            if state in VALID_PREVIOUS_STATES[target]:
                valid.append(partition)
            else:
                self._log().partition_failed(partition, state, target, "illegal transition")
        return valid

    async def _initialize(
        self, partitions: Sequence[TopicPartition], batch: RequestBatch
    ) -> Outcomes:
        """Elect the first leader of new partitions."""
        context = self._context
        outcomes: Outcomes = {}
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for partition in partitions:
            replicas = context.assignment(partition).replicas
            live = tuple(r for r in replicas if context.is_replica_online(r, partition))
            if live:
                states[partition] = LeaderAndIsr(live[0], 0, live, 0, context.epoch)
            else:
                outcomes[partition] = (
                    f"assigned replicas are [{','.join(map(str, replicas))}], live brokers are"
                    f" [{','.join(map(str, context.broker_ids))}]. No assigned replica is alive."
                )
        failed = await self._store.topics.create_states(states, context.fence) if states else {}
        for partition, state in states.items():
            if partition in failed:
                outcomes[partition] = f"cannot create its state: {failed[partition]}"
                continue
            context.leadership[partition] = state
            batch.add_leader_and_isr(state.isr, partition, state, is_new=True)
            outcomes[partition] = state
        return outcomes

    async def _elect(
        self, partitions: Sequence[TopicPartition], strategy: Strategy, batch: RequestBatch
    ) -> Outcomes:
        """Elect, and write each result conditionally. After a concurrent write, read and elect
        again. Raises ControllerMoved: a newer controller wrote a state.
        """
        context = self._context
        outcomes: Outcomes = {}
        remaining = list(partitions)
        while remaining:
            current = await self._store.topics.states(remaining)
            elections = {}
            unclean = await self._unclean_topics(current, strategy)
            for partition in remaining:
                state = current.get(partition)
                if state is None:
                    outcomes[partition] = "its state is not in ZooKeeper"
                elif state.controller_epoch > context.epoch:
                    # Kafka's controller continues, and sends the old states that it has read. A
                    # leader that restarted would then continue in its old epoch.
                    raise ControllerMoved(
                        f"the state of {partition} was written by another controller with epoch"
                        f" {state.controller_epoch}"
                    )
                elif (found := self._election(partition, state, strategy, unclean)) is None:
                    outcomes[partition] = (
                        f"Failed to elect leader for partition {partition} under strategy"
                        f" {strategy.value}"
                    )
                else:
                    elections[partition] = found
            new = {
                partition: replace(election.state, controller_epoch=context.epoch)
                for partition, election in elections.items()
            }
            writes = await self._store.topics.update_states(new, context.fence)
            for partition, state in writes.written.items():
                context.leadership[partition] = state
                context.unclean_elections += state.leader not in current[partition].isr
                recipients = elections[partition].recipients
                batch.add_leader_and_isr(recipients, partition, state)
                outcomes[partition] = state
            for partition, error in writes.failed.items():
                outcomes[partition] = f"cannot write its state: {error}"
            remaining = writes.retry
        return outcomes

    def _election(
        self,
        partition: TopicPartition,
        state: LeaderAndIsr,
        strategy: Strategy,
        unclean_topics: set[str],
    ) -> Election | None:
        context = self._context
        assignment = context.assignment(partition)
        assigned = assignment.replicas
        if strategy is Strategy.PREFERRED:
            return elect_preferred(assigned, state, self._is_online(partition))
        if strategy is Strategy.REASSIGN:
            targets = [r for r in assigned if r not in assignment.removing]
            return elect_reassign(targets, state, self._is_online(partition))
        if strategy is Strategy.CONTROLLED_SHUTDOWN:
            online = self._is_online(partition, include_shutting_down=True)
            return elect_controlled_shutdown(assigned, state, online, context.shutting_down)
        unclean = partition.topic in unclean_topics
        return elect_offline(assigned, state, self._is_online(partition), unclean)

    def _is_online(
        self, partition: TopicPartition, include_shutting_down: bool = False
    ) -> Callable[[int], bool]:
        return lambda replica: self._context.is_replica_online(
            replica, partition, include_shutting_down
        )

    async def _unclean_topics(
        self, states: Mapping[TopicPartition, LeaderAndIsr], strategy: Strategy
    ) -> set[str]:
        """The topics in which a replica outside the ISR may lead. Reads from ZooKeeper only the
        configs of topics with a partition that has no online ISR member.
        """
        if strategy is Strategy.UNCLEAN:
            return {partition.topic for partition in states}
        if strategy is not Strategy.OFFLINE:
            return set()
        topics_without_online_isr = {
            partition.topic
            for partition, state in states.items()
            if not any(map(self._is_online(partition), state.isr))
        }
        allowed = set()
        for topic in sorted(topics_without_online_isr):
            try:
                configs = await self._store.configs.get("topics", topic)
            except ZnodeError as error:
                # The topic may forbid unclean elections that the broker allows.
                _log.error("No unclean election in topic %s: %s", topic, error)
                continue
            value = configs.get("unclean.leader.election.enable")
            if value is None:
                unclean = self._config.unclean_leader_election_enable
            else:
                unclean = value.strip().lower() == "true"
            if unclean:
                allowed.add(topic)
        return allowed

    def _log(self) -> StateChangeLog:
        return StateChangeLog(self._config.broker_id, self._context.epoch)
