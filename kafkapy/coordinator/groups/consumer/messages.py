"""Requests and results of consumer groups: no wire types, no wire versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer.assignment import Assignment

CONSUMER_GROUP_TYPE: Final = "consumer"


def all_topics_visible(_topic: str) -> bool:
    """Visibility of topics without an authorizer: all are visible."""
    return True


@dataclass(slots=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat: join (epoch 0), stay, or leave (-1; -2: the instance will return).

    None stands for a field that has not changed since the last heartbeat; in
    `rebalance_timeout_ms`, -1 does. `is_visible` returns whether the caller may describe a topic;
    regular expressions match visible topics only. `requires_member_id` is v1+, where the client
    generates the member id.
    """

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_names: Sequence[str] | None = None
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    owned: Assignment | None = None
    client_id: str = ""
    client_host: str = ""
    requires_member_id: bool = True
    is_visible: Callable[[str], bool] = all_topics_visible

    @property
    def is_full(self) -> bool:
        """Whether the heartbeat has all fields; the answer then includes the assignment."""
        has_topics = self.subscribed_names is not None or self.subscribed_regex is not None
        return self.member_epoch == 0 or (
            self.rebalance_timeout_ms != -1 and has_topics and self.owned is not None
        )


@dataclass(slots=True)
class ConsumerHeartbeatResult:
    """The member's epoch and assignment; an `assignment` of None has not changed."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None


@dataclass(slots=True)
class DescribeConsumerGroups:
    """Describe some consumer groups."""

    group_ids: Sequence[str]


class NamedPartitions(NamedTuple):
    """Partitions of one topic."""

    topic_id: Uuid
    topic: str
    partitions: Sequence[int]


class DescribedConsumer(NamedTuple):
    """One member of a consumer group."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_names: Sequence[str]
    subscribed_regex: str | None
    is_classic: bool
    """Whether the member uses the classic protocol."""
    assigned: Sequence[NamedPartitions]
    target: Sequence[NamedPartitions]


@dataclass(slots=True)
class DescribedConsumerGroup:
    """One group; GROUP_ID_NOT_FOUND, with a message, if it is not of the requested type."""

    group_id: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state: str = ""
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: list[DescribedConsumer] = field(default_factory=list)


@dataclass(slots=True)
class DescribeConsumerGroupsResult:
    """The groups, in the order of the request."""

    groups: list[DescribedConsumerGroup]
