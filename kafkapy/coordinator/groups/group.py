"""One group: its states, its generation, its members. All state transitions happen here.

The five states, the handling of members' calls in them, and their ends:

    Empty                No members; may hold offsets.
                         First JoinGroup -> PreparingRebalance.
    PreparingRebalance   JoinGroups wait for each other; Heartbeats get REBALANCE_IN_PROGRESS.
                         All joined, or timeout -> CompletingRebalance; no members -> Empty.
    CompletingRebalance  SyncGroups wait for the leader's assignment.
                         Assignment stored -> Stable; join, leave or failure -> PreparingRebalance.
    Stable               All members have an assignment.
                         Join, leave or failure -> PreparingRebalance.
    Dead                 Deleted, expired or unloaded: out of the registry, no call finds it.

This module uses no tokens, timers or appends; `rebalance` drives it. Kafka: `GroupMetadata`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from kafkapy.common.consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from kafkapy.common.errors import ErrorCode, KafkapyError
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.group_offsets import GroupOffsets
from kafkapy.coordinator.groups.member import Member
from kafkapy.coordinator.groups.messages import JoinedMember
from kafkapy.coordinator.groups.record_codec import GroupValue, MemberValue
from kafkapy.coordinator.outbox import Ticket


class GroupState(StrEnum):
    """A state as Kafka prints it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = GroupState.EMPTY
PREPARING_REBALANCE: Final = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = GroupState.COMPLETING_REBALANCE
STABLE: Final = GroupState.STABLE
DEAD: Final = GroupState.DEAD

VALID_PREVIOUS_STATES: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    EMPTY: frozenset({PREPARING_REBALANCE}),
    PREPARING_REBALANCE: frozenset({STABLE, COMPLETING_REBALANCE, EMPTY}),
    COMPLETING_REBALANCE: frozenset({PREPARING_REBALANCE}),
    STABLE: frozenset({COMPLETING_REBALANCE}),
    DEAD: frozenset({STABLE, PREPARING_REBALANCE, COMPLETING_REBALANCE, EMPTY, DEAD}),
}


class IllegalTransition(KafkapyError):
    """An invalid state transition: a bug of the coordinator, never caused by a client."""


class InitialDelay(NamedTuple):
    """The delay in which the first members of an empty group wait for others (KIP-134)."""

    delay_ms: int
    """The length of the current window."""
    remaining_ms: int
    """The time by which the wait may be extended after the current window."""


class Group:
    """A group that this broker coordinates, or is loading."""

    __slots__ = (
        "assigned_generation_id",
        "consumer",
        "consumer_keys",
        "generation_id",
        "group_id",
        "initial_delay",
        "joining",
        "leader_id",
        "members",
        "new_member_added",
        "offsets",
        "partition",
        "pending_members",
        "pending_sync",
        "protocol_counts",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "syncing",
    )

    def __init__(self, group_id: str, partition: int, time_ms: int | None) -> None:
        self.group_id = group_id
        self.partition = partition
        """The partition of `__consumer_offsets` that holds the group."""
        self.state = EMPTY
        self.state_timestamp_ms = time_ms
        """The wall-clock time of the change to this state; None if the version of its record has
        none."""
        self.generation_id = 0
        """Never decreases while the group exists."""
        self.protocol_type: str | None = None
        """None until a member joins. Until then the group only stores offsets, for simple
        consumers."""
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        """The id of a member, if the group has members."""
        self.subscribed_topics: frozenset[str] | None = None
        """The subscribed topics of this generation; None if they are unknown."""
        self.offsets = GroupOffsets()
        self.consumer: ConsumerGroup | None = None
        """The state of a group of the consumer protocol. It has all members, and this group stays
        Empty."""
        self.consumer_keys: tuple[bytes, ...] = ()
        """Record keys of the former consumer group with this id. The next batch deletes their
        records."""

        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        """Member id by group instance id, of exactly the static members."""
        self.protocol_counts: Counter[str] = Counter()
        """The number of members that support each protocol."""
        self.pending_members: set[str] = set()
        """Ids that were assigned with MEMBER_ID_REQUIRED and have not joined yet. None is in
        `members`."""

        self.joining: dict[str, Ticket] = {}
        """Members whose JoinGroup waits, in order of arrival."""
        self.syncing: dict[str, Ticket] = {}
        """Members whose SyncGroup waits."""
        self.pending_sync: set[str] = set()
        """Members of this generation that have not sent SyncGroup yet."""
        self.assigned_generation_id = 0
        """The last generation whose leader sent an assignment, which may not be in the log yet."""
        self.initial_delay: InitialDelay | None = None
        self.new_member_added = False
        """Whether a member joined during the current window of the initial delay."""

    @property
    def can_rebalance(self) -> bool:
        """Whether the group may enter PreparingRebalance."""
        return self.state in VALID_PREVIOUS_STATES[PREPARING_REBALANCE]

    @property
    def is_blank(self) -> bool:
        """Whether the group has neither state nor offsets."""
        has_state = self.members or self.generation_id or self.protocol_type or self.consumer
        return not (has_state or self.offsets.any)

    @property
    def holds_offsets(self) -> bool:
        """Whether its members commit offsets; those of share groups do not."""
        return self.consumer is None or self.consumer.holds_offsets

    @property
    def is_empty(self) -> bool:
        """Whether it has no members of either protocol."""
        return self.state is EMPTY and (self.consumer is None or not self.consumer.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def all_joined(self) -> bool:
        """Whether all members have joined, and no pending member must still join."""
        return len(self.joining) == len(self.members) and not self.pending_members

    def transition_to(self, state: GroupState, time_ms: int) -> None:
        """Enter `state` at wall-clock `time_ms`.

        Raises:
            IllegalTransition: the current state does not allow it.
        """
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise IllegalTransition(
                f"Group {self.group_id} should be in one of "
                f"{', '.join(sorted(VALID_PREVIOUS_STATES[state]))} states before moving to "
                f"{state} state. Instead it is in {self.state} state"
            )
        self.state = state
        self.state_timestamp_ms = time_ms

    # Membership.

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member. The first member of an empty group is its leader and sets its type."""
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        self.pending_members.discard(member.member_id)
        self.protocol_counts.update(member.protocol_names)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member; its pending requests must have been answered."""
        assert member_id not in self.joining, f"{member_id} of {self.group_id} waits to join"
        assert member_id not in self.syncing, f"{member_id} of {self.group_id} waits to sync"
        member = self.members.pop(member_id)
        self._remove_from_protocol_counts(member)
        if member.group_instance_id is not None:
            del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_sync.discard(member_id)

    def update(
        self,
        member: Member,
        protocols: Sequence[tuple[str, bytes]],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        """Update a member's protocols and timeouts."""
        self._remove_from_protocol_counts(member)
        member.protocols = protocols
        self.protocol_counts.update(member.protocol_names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace_static_member(self, member: Member, member_id: str) -> None:
        """Change the id of a restarted static member, which keeps its state (KIP-345)."""
        old_id = member.member_id
        assert old_id not in self.joining, f"{old_id} of {self.group_id} waits to join"
        assert old_id not in self.syncing, f"{old_id} of {self.group_id} waits to sync"
        assert member.group_instance_id is not None, f"{old_id} of {self.group_id} is not static"
        del self.members[old_id]
        member.member_id = member_id
        self.members[member_id] = member
        self.static_members[member.group_instance_id] = member_id
        if self.leader_id == old_id:
            self.leader_id = member_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(member_id)

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """Check that a member is known, and not replaced by a newer static member."""
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return ErrorCode.NONE if current == member_id else ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def accepts_joining_member(self, member_id: str, max_size: int) -> bool:
        """Whether `group.max.size` allows this id to join. Ids that have joined already may."""
        if self.state is EMPTY:
            return True
        if self.state is PREPARING_REBALANCE:
            return member_id in self.joining or len(self.joining) < max_size
        return member_id in self.members or len(self.members) < max_size

    # Protocols and generations.

    def supports(self, protocol_type: str, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Whether a member with these protocols has one in common with all current members."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        num_members = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.protocol_counts[name] == num_members for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol with most votes among those that every member supports."""
        num_members = len(self.members)
        candidates = {name for name, count in self.protocol_counts.items() if count == num_members}
        assert candidates, f"the members of {self.group_id} have no protocol in common"
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it rejoined, else elect the first member that did; False if none
        did."""
        if self.leader_id not in self.joining:
            first = next(iter(self.joining), None)
            if first is None:
                return False
            self.leader_id = first
        return True

    def next_generation(self, time_ms: int) -> None:
        """End PreparingRebalance and start the next generation with the current members."""
        self.generation_id += 1
        self.initial_delay = None
        self.new_member_added = False
        self.pending_sync = set(self.members)
        if self.members:
            self.protocol_name = self.select_protocol()
            self.transition_to(COMPLETING_REBALANCE, time_ms)
        else:
            self.protocol_name = None
            self.transition_to(EMPTY, time_ms)
        self.subscribed_topics = self._subscribed_topics()

    def joined_members(self, member_id: str) -> list[JoinedMember]:
        """The members in the JoinGroup answer to `member_id`: all for the leader, none for
        others."""
        if member_id != self.leader_id:
            return []
        name = self.protocol_name
        return [
            JoinedMember(m.member_id, m.group_instance_id, m.metadata(name))
            for m in self.members.values()
        ]

    # The log.

    def value(self, assignments: Mapping[str, bytes]) -> GroupValue:
        """The group's record, with these assignments."""
        return GroupValue(
            self.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.leader_id,
            self.state_timestamp_ms,
            [
                MemberValue(
                    m.member_id,
                    m.group_instance_id,
                    m.client_id,
                    m.client_host,
                    m.rebalance_timeout_ms,
                    m.session_timeout_ms,
                    m.metadata(self.protocol_name),
                    assignments.get(m.member_id, b""),
                )
                for m in self.members.values()
            ],
        )

    def restore(self, value: GroupValue) -> None:
        """Restore the state of a record. The group must not have members."""
        assert not self.members, f"group {self.group_id} has members already"
        for row in value.members:
            protocols = ((value.protocol_name or "", row.subscription),)
            member = Member(*row[:6], protocols, row.assignment, is_new=False)
            self.add(member, value.protocol_type)
        self.state_timestamp_ms = value.state_timestamp_ms
        self.protocol_type = value.protocol_type or None
        if value.leader_id in self.members:
            self.leader_id = value.leader_id
        self.adopt_generation(value.generation_id, value.protocol_name)

    def adopt_generation(self, generation_id: int, protocol_name: str | None) -> None:
        """Continue a generation that was not formed here: Stable, or Empty without members."""
        self.state = STABLE if self.members else EMPTY
        self.generation_id = generation_id
        self.protocol_name = protocol_name
        self.subscribed_topics = self._subscribed_topics()

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        return subscribed_topics(m.metadata(self.protocol_name) for m in self.members.values())

    def _remove_from_protocol_counts(self, member: Member) -> None:
        for name in member.protocol_names:
            self.protocol_counts[name] -= 1
            if not self.protocol_counts[name]:
                del self.protocol_counts[name]
