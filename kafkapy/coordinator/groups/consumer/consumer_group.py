"""The state of one consumer group, derived from its records. Every change is a record.

The five states of a group, which follow from its records:

    Empty        No members.
    Assigning    The group's epoch is ahead of the target's: the next heartbeat computes a target.
    Reconciling  Some member is not at its target.
    Stable       All members are at their targets.
    Dead         Deleted or unloaded: no call finds it.

This module uses no tokens, timers or appends; `heartbeat` drives it. Kafka: `ConsumerGroup`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kafkapy.common.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    Assignment,
    TopicIdPartition,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.messages import CONSUMER_GROUP_TYPE
from kafkapy.coordinator.groups.consumer.reconciliation import Target, is_reconciled
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordType,
    ResolvedRegex,
    TopicMetadata,
    TopicSubscription,
    Value,
    encode_key,
    encode_value,
)

STATIC_LEAVE_EPOCH: Final = -2


class ConsumerGroupState(StrEnum):
    """A state as Kafka prints it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class Unsaved(NamedTuple):
    """A record that may be missing from the log."""

    number: int
    """The number of its write."""
    is_in_log: bool
    """Whether it was appended. A new leader's log may lack it nevertheless."""


class ConsumerGroup:
    """The state of one group. Only `apply` changes it, in replay and in service.

    `ShareGroup` is the subclass for groups whose members share partitions.
    """

    group_type = CONSUMER_GROUP_TYPE
    protocol_type = CONSUMER_PROTOCOL_TYPE
    holds_offsets = True
    """Whether offsets can be committed to the group."""

    __slots__ = (
        "current",
        "epoch",
        "group_id",
        "members",
        "metadata_version",
        "owners",
        "regexes",
        "static_members",
        "target",
        "target_epoch",
        "topics",
        "unsaved",
        "write_count",
        "writes",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        """Grows with each change of members, subscriptions or topics."""
        self.target_epoch = 0
        """The group epoch that the target was computed for."""
        self.members: dict[str, MemberMetadata] = {}
        self.current: dict[str, CurrentAssignment] = {}
        self.target: dict[str, Assignment] = {}
        self.topics: Mapping[str, TopicMetadata] = {}
        """The subscribed topics that exist, by name."""
        self.regexes: dict[str, ResolvedRegex] = {}

        # Derived from the records.
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.owners: dict[TopicIdPartition, str] = {}
        """The member that has each partition, or must still revoke it."""

        # Not in the records: state of this coordinator.
        self.metadata_version = -1
        """The version of the metadata image that `topics` was compared with."""
        self.write_count = 0
        self.writes: list[Any] = []  # type: ignore[explicit-any]
        """Appends in progress, the oldest first (`log_writes.Write`)."""
        self.unsaved: dict[bytes, Unsaved] = {}
        """Records that could not be appended, or not be replicated in time, by key."""

    @property
    def state(self) -> ConsumerGroupState:
        """The group's state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        return (
            ConsumerGroupState.STABLE if self.all_reconciled() else ConsumerGroupState.RECONCILING
        )

    def all_reconciled(self, except_members: Collection[str] = ()) -> bool:
        """Whether all members, except `except_members`, are at the target of the group's epoch."""
        remaining = self.members.keys() - except_members
        return all(is_reconciled(self.current_of(member_id), self.epoch) for member_id in remaining)

    @property
    def is_blank(self) -> bool:
        """Whether the group has no records."""
        return not (self.epoch or self.target_epoch or self.members or self.topics or self.regexes)

    def has_topics(self, topics: Mapping[str, TopicMetadata]) -> bool:
        """Whether `topics` are the topics of the current epoch."""
        return self.topics == topics

    def encode_key(self, key: ConsumerKey) -> bytes | None:
        """Key bytes of a record; None if it is not stored."""
        return encode_key(key)

    def encode_value(self, key: ConsumerKey, value: Value) -> bytes:
        """Value bytes of a record."""
        return encode_value(key, value)

    # Members.

    def current_of(self, member_id: str) -> CurrentAssignment:
        """A member's progress; a member that just joined has none."""
        return self.current.get(member_id, _NEW)

    def target_of(self, member_id: str) -> Target:
        """The target of a member."""
        return Target(self.target_epoch, self.target.get(member_id, EMPTY_ASSIGNMENT))

    def is_free(self, member_id: str, partition: TopicIdPartition) -> bool:
        """Whether no other member has the partition."""
        return self.owners.get(partition, member_id) == member_id

    def preferred_assignor(self, default: str) -> str:
        """The assignor that most members request; `default` if no member requests one."""
        votes = Counter(m.server_assignor for m in self.members.values() if m.server_assignor)
        return max(sorted(votes), key=votes.__getitem__) if votes else default

    # Subscriptions.

    def topics_of(self, member: MemberMetadata) -> set[str]:
        """The topics that a member subscribes to, by name or by its regular expression."""
        names = set(member.subscribed_names)
        resolved = self.regexes.get(member.subscribed_regex or "")
        return names if resolved is None else names | resolved.topics

    def subscriptions(self) -> dict[TopicSubscription, set[str]]:
        """The distinct subscriptions of members, with their topics. Most groups have one."""
        members = {member.subscription: member for member in self.members.values()}
        return {each: self.topics_of(member) for each, member in members.items()}

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topic names that members subscribe to; the topics need not exist."""
        return frozenset().union(*self.subscriptions().values())

    # Records.

    def apply(self, key: ConsumerKey, value: Value | None) -> None:
        """Apply one record; None is a tombstone."""
        _APPLY[key.type](self, key.name, value)

    def value(self, key: ConsumerKey) -> Value | None:
        """The current value of a record."""
        value: Value | None = _VALUE[key.type](self, key.name)
        return value

    def all_keys(self) -> list[ConsumerKey]:
        """The keys of the group's records, its epoch last."""
        keys: list[ConsumerKey] = []
        for member_id in sorted(self.members.keys() | self.current.keys() | self.target.keys()):
            keys += member_keys(self.group_id, member_id)
        keys += [ConsumerKey(RecordType.REGEX, self.group_id, regex) for regex in self.regexes]
        kinds = (RecordType.TARGET_EPOCH, RecordType.TOPICS, RecordType.GROUP_EPOCH)
        return [*keys, *(ConsumerKey(kind, self.group_id) for kind in kinds)]

    def values_of(self, wanted: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """The current values of records, by key bytes; None is a tombstone."""
        keys = {self.encode_key(key): key for key in self.all_keys()}
        return {data: self._value_of(keys.get(data)) for data in wanted}

    def _value_of(self, key: ConsumerKey | None) -> bytes | None:
        value = None if key is None else self.value(key)
        return None if key is None or value is None else self.encode_value(key, value)

    def record_keys(self) -> list[bytes]:
        """The key bytes of all records that may be in the log."""
        encoded = [data for key in self.all_keys() if (data := self.encode_key(key)) is not None]
        return list(dict.fromkeys([*self.unsaved, *encoded]))

    # Members of the classic protocol.

    def all_classic(self, except_members: Collection[str] = ()) -> bool:
        """Whether all members, except `except_members`, are of the classic protocol."""
        remaining = self.members.keys() - except_members
        return all(self.members[member_id].classic is not None for member_id in remaining)

    def supports_classic(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether the members of the classic protocol have one of these protocols in common."""
        members = [m.classic for m in self.members.values() if m.classic is not None]
        return protocol_type == CONSUMER_PROTOCOL_TYPE and any(
            all(name in dict(classic.protocols) for classic in members) for name in names
        )

    def must_rejoin(self, member_id: str) -> bool:
        """Whether a member of the classic protocol must rejoin, to revoke or to get partitions."""
        current = self.current_of(member_id)
        if current.member_epoch < self.epoch or current.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        if current.state is MemberState.STABLE:
            return False
        wanted = set(partitions_of(self.target_of(member_id).assignment))
        missing = wanted - set(partitions_of(current.assigned))
        return all(self.is_free(member_id, partition) for partition in missing)

    def _apply_epoch(self, _name: str, value: int | None) -> None:
        self.epoch = value or 0

    def _apply_topics(self, _name: str, value: Mapping[str, TopicMetadata] | None) -> None:
        self.topics = value or {}

    def _apply_target_epoch(self, _name: str, value: int | None) -> None:
        self.target_epoch = value or 0

    def _apply_member(self, member_id: str, value: MemberMetadata | None) -> None:
        before = self.members.get(member_id)
        instance_id = None if before is None else before.instance_id
        # In a replay, the record of the replacing member may come first.
        if instance_id is not None and self.static_members.get(instance_id) == member_id:
            del self.static_members[instance_id]
        if value is None:
            self.members.pop(member_id, None)
            return
        self.members[member_id] = value
        if value.instance_id is not None:
            self.static_members[value.instance_id] = member_id

    def _apply_target(self, member_id: str, value: Assignment | None) -> None:
        if value is None:
            self.target.pop(member_id, None)
        else:
            self.target[member_id] = value

    def _apply_current(self, member_id: str, value: CurrentAssignment | None) -> None:
        for partition in _current_partitions(self.current.pop(member_id, _NEW)):
            if self.owners.get(partition) == member_id:
                del self.owners[partition]
        if value is not None:
            self.current[member_id] = value
            self.owners.update(dict.fromkeys(_current_partitions(value), member_id))

    def _apply_regex(self, regex: str, value: ResolvedRegex | None) -> None:
        if value is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = value


def member_keys(group_id: str, member_id: str) -> list[ConsumerKey]:
    """The keys of a member's records, in the order in which they are deleted."""
    kinds = (RecordType.CURRENT, RecordType.TARGET, RecordType.MEMBER)
    return [ConsumerKey(kind, group_id, member_id) for kind in kinds]


def _current_partitions(current: CurrentAssignment) -> Iterator[TopicIdPartition]:
    yield from partitions_of(current.assigned)
    yield from partitions_of(current.revoking)


_NEW: Final = CurrentAssignment()
_APPLY: Final[  # type: ignore[explicit-any]
    Mapping[RecordType, Callable[[ConsumerGroup, str, Any], None]]
] = {
    RecordType.GROUP_EPOCH: ConsumerGroup._apply_epoch,
    RecordType.TOPICS: ConsumerGroup._apply_topics,
    RecordType.MEMBER: ConsumerGroup._apply_member,
    RecordType.TARGET_EPOCH: ConsumerGroup._apply_target_epoch,
    RecordType.TARGET: ConsumerGroup._apply_target,
    RecordType.CURRENT: ConsumerGroup._apply_current,
    RecordType.REGEX: ConsumerGroup._apply_regex,
}
_VALUE: Final[  # type: ignore[explicit-any]
    Mapping[RecordType, Callable[[ConsumerGroup, str], Any]]
] = {
    RecordType.GROUP_EPOCH: lambda group, _: group.epoch or None,
    RecordType.TOPICS: lambda group, _: group.topics or None,
    RecordType.MEMBER: lambda group, member_id: group.members.get(member_id),
    RecordType.TARGET_EPOCH: lambda group, _: group.target_epoch or None,
    RecordType.TARGET: lambda group, member_id: group.target.get(member_id),
    RecordType.CURRENT: lambda group, member_id: group.current.get(member_id),
    RecordType.REGEX: lambda group, regex: group.regexes.get(regex),
}
