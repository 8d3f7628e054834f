"""Requests and results of share groups: no wire types, no wire versions. The results of heartbeats
and the rows of descriptions are those of consumer groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer.assignment import Assignment

SHARE_GROUP_TYPE: Final = "share"
SHARE_PROTOCOL_TYPE: Final = "share"
SIMPLE_ASSIGNOR: Final = "simple"


@dataclass(slots=True)
class ShareHeartbeat:
    """ShareGroupHeartbeat: join (epoch 0), stay, or leave (-1). None is an unchanged field."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed_names: Sequence[str] | None = None
    client_id: str = ""
    client_host: str = ""


class StateRequest(NamedTuple):
    """Share partitions that the share coordinator must initialize."""

    group_id: str
    state_epoch: int
    partitions: Assignment


@dataclass(slots=True)
class DescribeShareGroups:
    """Describe these groups."""

    group_ids: Sequence[str]


@dataclass(slots=True)
class AlterShareOffsets:
    """Reinitialize share partitions of an empty group, which may be a new one."""

    group_id: str
    partitions: Mapping[Uuid, Sequence[int]]


@dataclass(slots=True)
class DeleteShareOffsets:
    """Delete the share partitions of these topics, or of all (None), in an empty group."""

    group_id: str
    topic_ids: Sequence[Uuid] | None


@dataclass(slots=True)
class ShareStatesDeleted:
    """Report the topics whose states the share coordinator has deleted. For the `failed` topics, it
    has not deleted all states, and will not delete more."""

    group_id: str
    topic_ids: Sequence[Uuid]
    failed: Sequence[Uuid] = ()


@dataclass(slots=True)
class ListShareStates:
    """List the share partitions of a group."""

    group_id: str


@dataclass(slots=True)
class ShareStatesResult:
    """The share partitions that a request concerns, and the epoch of their new state."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state_epoch: int = 0
    partitions: Assignment = field(default_factory=dict)
