"""Events of the controller. One queue, one event at a time.

Events with an answer have `reply`, which is called once: by the controller, or by
`Controller.refuse` for a dropped event. Events without data are equal to each other, so a watch set
twice for the same event is one watch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kafkapy.common.cluster_state import CommandResult, LeaderAndIsr, StopReplicaCommand
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.controller.context import ReplicaAssignment
from kafkapy.zk.stores.znodes import ProducerIdBlock


class ElectionType(Enum):
    """ElectLeaders' types."""

    PREFERRED = 0
    UNCLEAN = 1


class AlterPartitionItem(NamedTuple):
    """A leader's request for one partition. The topic is given by name or, from v2 on, by id.

    `isr_epochs` are the broker epochs of `new_isr`, -1 where unknown; none before v3 (KIP-903).
    """

    topic: str
    topic_id: Uuid
    partition: int
    leader_epoch: int
    new_isr: tuple[int, ...]
    leader_recovery_state: int
    partition_epoch: int
    isr_epochs: tuple[int, ...] = ()


@dataclass(slots=True)
class AlterPartitionResult:
    """A top-level error, or (item, error, state after the write) for each item."""

    error: ErrorCode = ErrorCode.NONE
    rows: list[tuple[AlterPartitionItem, ErrorCode, LeaderAndIsr | None]] = field(
        default_factory=list
    )


@dataclass(slots=True)
class ControlledShutdownResult:
    """The partitions that the broker still leads, sorted. It may stop when there are none."""

    error: ErrorCode = ErrorCode.NONE
    remaining: list[TopicPartition] = field(default_factory=list)


class ElectionResult(NamedTuple):
    """The outcome of one partition of an ElectLeaders request; `leader` is -1 on error."""

    error: ErrorCode
    message: str | None = None
    leader: int = -1


class ReassignmentResult(NamedTuple):
    """Whether a partition's reassignment was begun or cancelled."""

    error: ErrorCode
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Startup:
    """The broker is registered: take part in elections (at start and after a new session)."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The ZooKeeper session is over: resign. All earlier events are void."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The broker stops: resign."""


@dataclass(frozen=True, slots=True)
class ControllerChange:
    """`/controller` was created, deleted or changed."""


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """The children of `/brokers/ids` changed."""


@dataclass(frozen=True, slots=True)
class BrokerModification:
    """A live broker's znode changed: other endpoints."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicChange:
    """The children of `/brokers/topics` changed."""


@dataclass(frozen=True, slots=True)
class PartitionModification:
    """A topic's znode changed: more partitions."""

    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletionChange:
    """The children of `/admin/delete_topics` changed."""


@dataclass(frozen=True, slots=True)
class PreferredElectionChange:
    """`/admin/preferred_replica_election` was written."""


@dataclass(frozen=True, slots=True)
class ReassignmentChange:
    """`/admin/reassign_partitions` was written."""


@dataclass(frozen=True, slots=True)
class LogDirChange:
    """A broker reported a failed log directory."""


@dataclass(frozen=True, slots=True)
class IsrChange:
    """An older leader reported that it wrote partition states itself."""


@dataclass(frozen=True, slots=True)
class AutoRebalance:
    """The periodic check for leaders that are not the preferred ones."""


@dataclass(frozen=True, slots=True)
class UncleanElectionEnabled:
    """unclean.leader.election.enable became true for one topic, or (None) for all."""

    topic: str | None = None


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponse:
    """A broker's response to the LeaderAndIsr command that was sent to its `broker_epoch`."""

    broker_id: int
    broker_epoch: int
    result: CommandResult


@dataclass(frozen=True, slots=True)
class StopReplicaResponse:
    """A broker's answer to `command`."""

    broker_id: int
    command: StopReplicaCommand
    result: CommandResult


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """A leader requests other ISRs."""

    broker_id: int
    broker_epoch: int
    items: Sequence[AlterPartitionItem]
    reply: Callable[[AlterPartitionResult], None]


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """A broker is about to stop: move its leaders away. An epoch of -1 is not checked."""

    broker_id: int
    broker_epoch: int
    reply: Callable[[ControlledShutdownResult], None]


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """An admin client requests elections; `partitions` None means all."""

    partitions: Sequence[TopicPartition] | None
    election_type: ElectionType
    reply: Callable[[Mapping[TopicPartition, ElectionResult] | ErrorCode], None]


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignments:
    """An admin client requests these brokers for partitions, or (None) cancels their
    reassignment.
    """

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    reply: Callable[[Mapping[TopicPartition, ReassignmentResult] | ErrorCode], None]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignments:
    """An admin client requests which of `partitions` are being reassigned; None means all."""

    partitions: Sequence[TopicPartition] | None
    reply: Callable[[Mapping[TopicPartition, ReplicaAssignment] | ErrorCode], None]


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """A broker requests a block of producer ids (KIP-730)."""

    broker_id: int
    broker_epoch: int
    reply: Callable[[ProducerIdBlock | ErrorCode], None]


Event = (
    Startup
    | SessionExpired
    | Shutdown
    | ControllerChange
    | BrokerChange
    | BrokerModification
    | TopicChange
    | PartitionModification
    | TopicDeletionChange
    | PreferredElectionChange
    | ReassignmentChange
    | LogDirChange
    | IsrChange
    | AutoRebalance
    | UncleanElectionEnabled
    | LeaderAndIsrResponse
    | StopReplicaResponse
    | AlterPartition
    | ControlledShutdown
    | ElectLeaders
    | AlterPartitionReassignments
    | ListPartitionReassignments
    | AllocateProducerIds
)
