"""States of the moves of a reassignment file, for `--verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from kafkapy.admin.log_dirs import Replica, ReplicaPlace
from kafkapy.admin.reassignments import Reassignment
from kafkapy.common.topic_partition import TopicPartition


class PartitionState(NamedTuple):
    """One partition: its replicas, its target replicas, and whether it still moves."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    is_moving: bool

    @property
    def is_complete(self) -> bool:
        return not self.is_moving and self.replicas == self.target

    def __str__(self) -> str:
        if self.is_moving:
            return f"Reassignment of partition {self.partition} is still in progress."
        if self.is_complete:
            return f"Reassignment of partition {self.partition} is completed."
        return (
            f"There is no active reassignment of partition {self.partition}, but replica set is"
            f" {_ids(self.replicas)} rather than {_ids(self.target)}."
        )


class LogDirState(Enum):
    """States of a replica's move to its log directory. The values are Kafka's sentences."""

    COMPLETED = "Reassignment of replica {replica} completed successfully."
    MOVING = "Reassignment of replica {replica} is still in progress."
    MOVING_ELSEWHERE = (
        "Partition {partition} on broker {broker} is being moved to log dir {future} instead of"
        " {target}."
    )
    CANCELLED = (
        "Partition {partition} on broker {broker} is not being moved from log dir {current} to"
        " {target}."
    )
    NO_LOG_DIR = (
        "Partition {partition} is not found in any live log dir on broker {broker}. There is likely"
        " an offline log directory on the broker."
    )
    NO_BROKER = (
        "Partition {partition} cannot be found in any live log directory on broker {broker}."
    )

    @property
    def is_over(self) -> bool:
        """Whether Kafka's tool considers the move complete."""
        return self in (LogDirState.COMPLETED, LogDirState.CANCELLED)


class LogDirMove(NamedTuple):
    """One replica: its target directory and its current place, None if its broker is down."""

    replica: Replica
    target: str
    place: ReplicaPlace | None

    @property
    def state(self) -> LogDirState:
        if self.place is None:
            return LogDirState.NO_BROKER
        if self.place.current is None:
            return LogDirState.NO_LOG_DIR
        if self.place.future is not None:
            is_at_target = self.place.future == self.target
            return LogDirState.MOVING if is_at_target else LogDirState.MOVING_ELSEWHERE
        is_at_target = self.place.current == self.target
        return LogDirState.COMPLETED if is_at_target else LogDirState.CANCELLED

    def __str__(self) -> str:
        current, future = self.place or (None, None)
        return str(self.state.value).format(
            replica=self.replica,
            partition=self.replica.topic_partition,
            broker=self.replica.broker_id,
            current=current,
            future=future,
            target=self.target,
        )


def partition_states(
    targets: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
    running: Mapping[TopicPartition, Reassignment],
) -> list[PartitionState]:
    """The state of each partition, sorted. A partition that does not exist has no replicas."""
    return [
        PartitionState(
            tp,
            tuple(running[tp].replicas if tp in running else current.get(tp, ())),
            tuple(target),
            tp in running,
        )
        for tp, target in sorted(targets.items())
    ]


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))
