"""The state of the active controller (`kafka.controller.ControllerContext`).

It is filled from ZooKeeper at failover and changed only by the controller's own event handlers.
Every returned collection is sorted, so that requests do not depend on hash order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafkapy.common.cluster_state import BrokerInfo, LeaderAndIsr, TopicDescription
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.replica_states import ReplicaState
from kafkapy.zk.stores.store import Fence

NO_FENCE = Fence(0, -1)


class ReplicaAssignment(NamedTuple):
    """A partition's replicas, the preferred first, with those being added and removed (KIP-455)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    def __str__(self) -> str:
        replicas, adding, removing = (",".join(map(str, ids)) for ids in self)
        return (
            f"ReplicaAssignment(replicas={replicas}, addingReplicas={adding},"
            f" removingReplicas={removing})"
        )

    @property
    def is_being_reassigned(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment, which cancelling restores."""
        return tuple(r for r in self.replicas if r not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment."""
        return tuple(r for r in self.replicas if r not in self.removing)

    def reassign_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """The assignment during a reassignment from this one's origin to `target`."""
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        # Sets: a request may name 15,000 replicas of one partition.
        before, kept = set(origin), set(target)
        return ReplicaAssignment(
            replicas,
            tuple(r for r in replicas if r not in before),
            tuple(r for r in replicas if r not in kept),
        )

    def without_replica(self, replica: int) -> ReplicaAssignment:
        """The assignment without `replica`."""
        return ReplicaAssignment(*(tuple(r for r in replicas if r != replica) for replicas in self))


class PartitionReplica(NamedTuple):
    """One replica of one partition; `replica` is its broker's id."""

    topic_partition: TopicPartition
    replica: int

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.topic_partition.topic


class ControllerContext:
    """Brokers, topics, leaders and states."""

    def __init__(self) -> None:
        # Kept over resignations: the epochs of the last time this broker was the controller.
        self.fence = NO_FENCE
        self.unclean_elections = 0
        self.reset()

    def reset(self) -> None:
        """Clear everything except the fence and the counters."""
        self.live_brokers: dict[int, BrokerInfo] = {}
        self.broker_epochs: dict[int, int] = {}
        self.shutting_down: set[int] = set()
        self.topic_ids: dict[str, Uuid] = {}
        self.topic_names: dict[Uuid, str] = {}
        self._assignments: dict[str, dict[int, ReplicaAssignment]] = {}
        self.leadership: dict[TopicPartition, LeaderAndIsr] = {}
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.replica_states: dict[PartitionReplica, ReplicaState] = {}
        self.offline_dirs: dict[int, set[TopicPartition]] = {}
        # Invariant: both of the others are subsets of topics_to_delete.
        self.topics_to_delete: set[str] = set()
        self.topics_deletion_started: set[str] = set()
        self.topics_ineligible: set[str] = set()

    @property
    def epoch(self) -> int:
        """The controller epoch."""
        return self.fence.controller_epoch

    # Brokers

    @property
    def broker_ids(self) -> list[int]:
        """Live brokers, with those that are shutting down."""
        return sorted(self.live_brokers)

    def set_brokers_zxid(self, zxid: int) -> None:
        """Record that all registrations up to `zxid` are handled, or considered by each later
        write."""
        self.fence = self.fence._replace(brokers_zxid=zxid)

    def add_broker(self, broker: BrokerInfo, broker_epoch: int) -> None:
        """Add a broker, or update its endpoints."""
        self.live_brokers[broker.broker_id] = broker
        self.broker_epochs[broker.broker_id] = broker_epoch

    def remove_broker(self, broker_id: int) -> None:
        """Remove a broker without a registration."""
        self.live_brokers.pop(broker_id, None)
        self.broker_epochs.pop(broker_id, None)

    def is_replica_online(
        self, broker_id: int, partition: TopicPartition, include_shutting_down: bool = False
    ) -> bool:
        """Whether the broker is live and the replica's log directory works."""
        if broker_id not in self.live_brokers:
            return False
        if broker_id in self.shutting_down and not include_shutting_down:
            return False
        return partition not in self.offline_dirs.get(broker_id, ())

    # Topics and assignments

    @property
    def topics(self) -> list[str]:
        """Every known topic."""
        return sorted(self._assignments)

    def has_topic(self, topic: str) -> bool:
        """Whether the topic is known."""
        return topic in self._assignments

    def add_topic(self, topic: TopicDescription) -> list[TopicPartition]:
        """Add a topic from its znode. Returns the new partitions."""
        self._assignments.setdefault(topic.topic, {})
        self.topic_ids[topic.topic] = topic.topic_id
        if not topic.topic_id.is_zero:
            self.topic_names[topic.topic_id] = topic.topic
        new = []
        for index, replicas in sorted(topic.assignment.items()):
            partition = TopicPartition(topic.topic, index)
            if self.has_partition(partition):
                continue
            new.append(partition)
            adding = topic.adding_replicas.get(index, ())
            removing = topic.removing_replicas.get(index, ())
            self.set_assignment(partition, ReplicaAssignment(replicas, adding, removing))
        return new

    def remove_topic(self, topic: str) -> None:
        """Remove a topic and everything about it."""
        for partition in self.partitions_of(topic):
            self.leadership.pop(partition, None)
            self.partition_states.pop(partition, None)
            for replica in self.assignment(partition).replicas:
                self.replica_states.pop(PartitionReplica(partition, replica), None)
            for offline in self.offline_dirs.values():
                offline.discard(partition)
        self.topic_names.pop(self.topic_ids.pop(topic, ZERO_UUID), None)
        self._assignments.pop(topic, None)
        for topics in (
            self.topics_to_delete,
            self.topics_deletion_started,
            self.topics_ineligible,
        ):
            topics.discard(topic)

    def topic_id(self, topic: str) -> Uuid:
        """A topic's id, zero if it has none."""
        return self.topic_ids.get(topic, ZERO_UUID)

    def describe_topic(self, topic: str) -> TopicDescription:
        """The content of the topic's znode."""
        rows = self._assignments[topic].items()
        return TopicDescription(
            topic,
            self.topic_id(topic),
            {index: row.replicas for index, row in rows},
            {index: row.adding for index, row in rows if row.adding},
            {index: row.removing for index, row in rows if row.removing},
        )

    def has_partition(self, partition: TopicPartition) -> bool:
        """Whether the partition is known."""
        return partition.partition in self._assignments.get(partition.topic, ())

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """A known partition's replicas."""
        return self._assignments[partition.topic][partition.partition]

    def set_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Change a partition's replicas."""
        self._assignments[partition.topic][partition.partition] = assignment

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """A topic's partitions."""
        return [TopicPartition(topic, i) for i in sorted(self._assignments.get(topic, ()))]

    def partitions(self) -> Iterator[TopicPartition]:
        """Every partition."""
        for topic in self.topics:
            yield from self.partitions_of(topic)

    def is_queued_for_deletion(self, topic: str) -> bool:
        """Whether the topic is queued for deletion, or being deleted."""
        return topic in self.topics_to_delete

    def reassigning_partitions(self) -> list[TopicPartition]:
        """Every partition that is being reassigned."""
        return [p for p in self.partitions() if self.assignment(p).is_being_reassigned]

    def is_being_reassigned(self, topic: str) -> bool:
        """Whether a partition of the topic is being reassigned."""
        return any(a.is_being_reassigned for a in self._assignments.get(topic, {}).values())

    # Replicas

    def replicas_of_partitions(self, partitions: list[TopicPartition]) -> list[PartitionReplica]:
        """Every replica of these partitions."""
        return [
            PartitionReplica(partition, replica)
            for partition in partitions
            for replica in self.assignment(partition).replicas
        ]

    def replicas_of_topic(self, topic: str) -> list[PartitionReplica]:
        """Every replica of a topic."""
        return self.replicas_of_partitions(self.partitions_of(topic))

    def replicas_on(self, broker_ids: set[int]) -> list[PartitionReplica]:
        """Every replica on these brokers."""
        return [
            PartitionReplica(partition, replica)
            for partition in self.partitions()
            for replica in self.assignment(partition).replicas
            if replica in broker_ids
        ]

    def replicas_in_state(self, topic: str, state: ReplicaState) -> list[PartitionReplica]:
        """A topic's replicas in one state."""
        return [r for r in self.replicas_of_topic(topic) if self.replica_states.get(r) is state]

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Partitions whose leader is not online, except those of topics being deleted."""
        return [
            partition
            for partition in self.partitions()
            if (state := self.leadership.get(partition)) is not None
            and not self.is_replica_online(state.leader, partition)
            and not self.is_queued_for_deletion(partition.topic)
        ]
