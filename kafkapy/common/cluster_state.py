"""Cluster state as the controller sends it: leadership, endpoints and the three control requests.

The types have the fields of LeaderAndIsr, UpdateMetadata and StopReplica without wire versions. So
the controller, the metadata cache and the replica manager share them, independent of the protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
EPOCH_DURING_DELETE: Final = -2
NO_EPOCH: Final = -1

RECOVERED: Final = 0
RECOVERING: Final = 1

SECURITY_PROTOCOL_IDS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


class Endpoint(NamedTuple):
    """The address of one listener of a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class Feature(NamedTuple):
    """A feature that a broker supports, and its levels (KIP-584)."""

    name: str
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """One live broker: its id, endpoints and rack. `features` are set only if it comes from the
    registration, because the controller does not send them."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    features: tuple[Feature, ...] = ()

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint of `listener`, if the broker has that listener."""
        return next((e for e in self.endpoints if e.listener == listener), None)


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """The state znode of a partition.

    `partition_epoch` is the znode's data version; `leader_epoch` grows with each election.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int
    leader_recovery_state: int = RECOVERED


@dataclass(slots=True)
class LeaderAndIsrPartition:
    """One row of a LeaderAndIsr command."""

    topic: str
    topic_id: Uuid
    partition: int
    state: LeaderAndIsr
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_new: bool = False

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(slots=True)
class LeaderAndIsrCommand:
    """LeaderAndIsr: lead or follow these partitions."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[LeaderAndIsrPartition]
    live_leaders: list[BrokerInfo] = field(default_factory=list)


@dataclass(slots=True)
class UpdateMetadataPartition:
    """One row of an UpdateMetadata command; `state.leader == -2` removes the partition."""

    topic: str
    topic_id: Uuid
    partition: int
    state: LeaderAndIsr
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...] = ()


@dataclass(slots=True)
class UpdateMetadataCommand:
    """All live brokers, and the partitions that changed."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[UpdateMetadataPartition]
    live_brokers: list[BrokerInfo]


@dataclass(slots=True)
class StopReplicaPartition:
    """One row of a StopReplica command."""

    topic: str
    partition: int
    leader_epoch: int = NO_EPOCH
    delete: bool = False


@dataclass(slots=True)
class StopReplicaCommand:
    """Stop serving, and perhaps delete, these replicas."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: list[StopReplicaPartition]


@dataclass(slots=True)
class CommandResult:
    """A broker's response to LeaderAndIsr or StopReplica: one code for all, one per partition."""

    error: ErrorCode = ErrorCode.NONE
    partition_errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic znode: id and replica assignment, with replicas that are being added or removed."""

    topic: str
    topic_id: Uuid = ZERO_UUID
    assignment: dict[int, tuple[int, ...]] = field(default_factory=dict)
    adding_replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    removing_replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
