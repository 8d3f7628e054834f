"""Requests and results of the group coordinator: no wire types, no wire versions.

A handler turns a version into plain flags (`requires_known_member_id`), as KafkaApis does for
GroupCoordinator. Names: the verb for a request (`JoinGroup`), `...Result` for its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Effects, Producer
from kafkapy.coordinator.groups.consumer.messages import (
    ConsumerHeartbeatResult,
    DescribeConsumerGroupsResult,
)
from kafkapy.coordinator.groups.share.messages import ShareStatesResult

UNKNOWN_MEMBER_ID: Final = ""
NO_GENERATION: Final = -1
NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
CLASSIC_GROUP_TYPE: Final = "classic"


@dataclass(slots=True)
class JoinGroup:
    """JoinGroup: join the group's next generation.

    `requires_known_member_id` is JoinGroup v4+ (KIP-394), `supports_skip_assignment` v9+.
    A `rebalance_timeout_ms` below 0 (v0 has none) means the session timeout.
    """

    group_id: str
    member_id: str
    protocol_type: str
    protocols: Sequence[tuple[str, bytes]]
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    reason: str | None = None
    requires_known_member_id: bool = True
    supports_skip_assignment: bool = True

    @property
    def effective_rebalance_timeout_ms(self) -> int:
        """The rebalance timeout; v0 has none."""
        timeout_ms = self.rebalance_timeout_ms
        return self.session_timeout_ms if timeout_ms < 0 else timeout_ms


class JoinedMember(NamedTuple):
    """One member in the leader's JoinGroup answer."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(slots=True)
class JoinGroupResult:
    """The answer to one member about the new generation; only the leader gets `members`."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: list[JoinedMember] = field(default_factory=list)


@dataclass(slots=True)
class SyncGroup:
    """Send all assignments (the leader) and fetch one's own; type and name are None below v5."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class SyncGroupResult:
    """One member's assignment."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class Heartbeat:
    """Keep the member's session alive, in this generation."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


@dataclass(slots=True)
class HeartbeatResult:
    """The answer to a heartbeat. After REBALANCE_IN_PROGRESS the member must rejoin."""

    error: ErrorCode = ErrorCode.NONE


class LeavingMember(NamedTuple):
    """A leaving member: an empty `member_id` names a static member by its instance id."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class LeaveGroup:
    """Remove these members (a single one below v3)."""

    group_id: str
    members: Sequence[LeavingMember]


@dataclass(slots=True)
class LeaveGroupResult:
    """One code for the call, and one for each member in the order of the request."""

    error: ErrorCode = ErrorCode.NONE
    members: list[tuple[LeavingMember, ErrorCode]] = field(default_factory=list)


class OffsetToCommit(NamedTuple):
    """One row of a commit; a timestamp below 0 (all but OffsetCommit v1) means now."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str | None = None
    commit_timestamp_ms: int = NO_TIMESTAMP


@dataclass(slots=True)
class CommitOffsets:
    """Store these offsets; generation -1 with an empty member id is a consumer without a group.

    `may_have_member_epoch` is OffsetCommit v9+ and TxnOffsetCommit v6+, in which the generation may
    be a member epoch.
    """

    group_id: str
    offsets: dict[TopicPartition, OffsetToCommit]
    generation_id: int = NO_GENERATION
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    producer: Producer | None = None
    may_have_member_epoch: bool = True


@dataclass(slots=True)
class CommitOffsetsResult:
    """A code for every partition of the request."""

    errors: dict[TopicPartition, ErrorCode]


@dataclass(slots=True)
class FetchOffsets:
    """Fetch the committed offsets of `partitions`, or all of the group's (None). A member of a
    consumer group adds its id and epoch."""

    group_id: str
    partitions: Sequence[TopicPartition] | None = None
    require_stable: bool = False
    member_id: str | None = None
    member_epoch: int = -1


class FetchedOffset(NamedTuple):
    """One committed offset; -1 if the partition has none."""

    offset: int = NO_OFFSET
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class FetchOffsetsResult:
    """The fetched offsets; with an `error`, none."""

    error: ErrorCode = ErrorCode.NONE
    offsets: dict[TopicPartition, FetchedOffset] = field(default_factory=dict)


@dataclass(slots=True)
class DeleteOffsets:
    """Delete these commits, unless a member is subscribed to the topic (KIP-496)."""

    group_id: str
    partitions: Sequence[TopicPartition]


@dataclass(slots=True)
class DeleteOffsetsResult:
    """A code for every partition of the request; with an `error`, none."""

    error: ErrorCode = ErrorCode.NONE
    errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict)


@dataclass(slots=True)
class DescribeGroups:
    """Describe these groups."""

    group_ids: Sequence[str]


class DescribedMember(NamedTuple):
    """One member; metadata and assignment are shown when the group is Stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(slots=True)
class DescribedGroup:
    """One group; an unknown one is `Dead` without error."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedMember] = field(default_factory=list)


@dataclass(slots=True)
class DescribeGroupsResult:
    """The groups, in the order of the request."""

    groups: list[DescribedGroup]


@dataclass(slots=True)
class ListGroups:
    """List groups coordinated here. An empty filter matches all; filters ignore case."""

    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()


class ListedGroup(NamedTuple):
    """One row of ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str = CLASSIC_GROUP_TYPE


@dataclass(slots=True)
class ListGroupsResult:
    """The listed groups; with COORDINATOR_LOAD_IN_PROGRESS, those that are loaded already. They are
    in pieces. Each piece is made when it is taken, from at most a few hundred groups."""

    error: ErrorCode = ErrorCode.NONE
    groups: Iterable[list[ListedGroup]] = ()


@dataclass(slots=True)
class DeleteGroups:
    """Delete these groups and their offsets."""

    group_ids: Sequence[str]


@dataclass(slots=True)
class DeleteGroupsResult:
    """A code for every group of the request."""

    errors: dict[str, ErrorCode]


Result: TypeAlias = (
    JoinGroupResult
    | SyncGroupResult
    | HeartbeatResult
    | LeaveGroupResult
    | CommitOffsetsResult
    | FetchOffsetsResult
    | DeleteOffsetsResult
    | DescribeGroupsResult
    | ListGroupsResult
    | DeleteGroupsResult
    | ConsumerHeartbeatResult
    | DescribeConsumerGroupsResult
    | ShareStatesResult
)

GroupEffects: TypeAlias = Effects[Result]
