"""A group coordinator with a fake shell and fake topics, and members that behave like clients."""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Callable, Iterable
from typing import Any

from kafkapy.common.consumer_protocol import (
    encode_assignment,
    read_assignment,
    read_subscription,
)
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import Append
from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    Assignment,
    by_topic_id,
    by_topic_name,
    is_subset,
)
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkapy.coordinator.groups.group_coordinator import GroupCoordinator
from kafkapy.coordinator.groups.group_offsets import UNKNOWN_LOG_OFFSET
from kafkapy.coordinator.groups.messages import JoinGroupResult, SyncGroupResult
from kafkapy.coordinator.groups.topic_source import KnownTopic
from tests.harness.cores.group_shell import GroupShell

COOPERATIVE = "cooperative-sticky"
SESSION_MS = 45_000
REVOCATION_MS = 60_000


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


class FakeTopics:
    """Topics that a test creates, each with a new id. Regular expressions are Python's."""

    def __init__(self) -> None:
        self.is_known = True
        self.version = 1
        self.known: dict[str, KnownTopic] = {}
        self._made = 0

    def create(self, name: str, num_partitions: int) -> Uuid:
        self._made += 1
        self.known[name] = KnownTopic(topic_id(self._made), num_partitions)
        self.version += 1
        return self.known[name].topic_id

    def grow(self, name: str, num_partitions: int) -> None:
        self.known[name] = self.known[name]._replace(num_partitions=num_partitions)
        self.version += 1

    def delete(self, name: str) -> None:
        del self.known[name]
        self.version += 1

    def find(self, name: str) -> KnownTopic | None:
        return self.known.get(name)

    def names(self) -> Iterable[str]:
        return self.known

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name, t in self.known.items() if t.topic_id == topic_id), None)

    def pattern(self, regex: str) -> Callable[[str], bool]:
        try:
            compiled = re.compile(regex)
        except re.error as error:
            raise ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error
        return lambda name: compiled.fullmatch(name) is not None


_REPLICATED = (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


class ConsumerShell(GroupShell):
    """A group shell with one topic `t` of four partitions.

    A failed append leaves nothing in the log, unless it was only not replicated in time: a new
    leader may truncate these records.
    """

    def __init__(self, config: GroupConfig | None = None) -> None:
        self.topics = FakeTopics()
        self.replicated = 0
        """The number of records that every leader has."""
        self.t = self.topics.create("t", 4)
        super().__init__(config)

    def new_coordinator(self) -> GroupCoordinator:
        logger = logging.getLogger("tests.consumer_shell")
        return GroupCoordinator(
            self.config, self.random, self.clock, topics=self.topics, logger=logger
        )

    def complete(self, append: Append, error: ErrorCode = ErrorCode.NONE) -> None:
        base_offset = UNKNOWN_LOG_OFFSET
        if error in (*_REPLICATED, ErrorCode.REQUEST_TIMED_OUT):
            base_offset = len(self.log)
            self.log += ((append.partition, record) for record in append.records)
        if error in _REPLICATED:
            self.replicated = len(self.log)
        done = self.coordinator.append_completed
        self.perform(done(self.now_ms, append.append_id, error, base_offset))

    @property
    def consumers(self) -> ConsumerGroup:
        group = self.group().consumer
        assert group is not None
        return group

    def group_is_known(self) -> bool:
        """Whether the consumer group exists."""
        group = self.coordinator._core.registry.find("g")
        return group is not None and group.consumer is not None

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        """The token of a heartbeat with exactly these fields."""
        request = ConsumerHeartbeat("g", member_id, epoch, **fields)
        return self.call(self.coordinator.consumer_heartbeat, request)

    def refused(self, member_id: str, epoch: int, **fields: Any) -> ErrorCode:
        """The code of a heartbeat that is answered at once."""
        error = self.replies[self.beat(member_id, epoch, **fields)].error
        assert isinstance(error, ErrorCode)
        return error

    def consumer(self, member_id: str, **fields: Any) -> FakeConsumer:
        """A member that has joined."""
        consumer = FakeConsumer(self, member_id, **fields)
        consumer.beat()
        return consumer

    def fail_over(self, kept: int | None = None) -> None:
        """Another coordinator takes over and loads the log, or its first `kept` records."""
        if kept is not None:
            assert kept >= self.replicated
            del self.log[kept:]
        self.replicated = len(self.log)
        self.coordinator = self.replayed()


class FakeConsumer:
    """One client: joins, revokes partitions at once, and reports this in its next heartbeat."""

    def __init__(
        self,
        shell: ConsumerShell,
        member_id: str,
        *,
        topics: Iterable[str] | None = ("t",),
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
    ) -> None:
        self.shell = shell
        self.member_id = member_id
        self.topics = topics
        self.regex = regex
        self.instance_id = instance_id
        self.assignor = assignor
        self.epoch = 0
        self.owned: Assignment = EMPTY_ASSIGNMENT
        self.is_synchronized = True
        """Whether the coordinator has received its partitions, and no response was lost."""

    def request(self) -> ConsumerHeartbeat:
        request = ConsumerHeartbeat("g", self.member_id, self.epoch, self.instance_id)
        if self.epoch == 0 or not self.is_synchronized:
            request.rebalance_timeout_ms = REVOCATION_MS
            request.subscribed_names = None if self.topics is None else [*self.topics]
            request.subscribed_regex = self.regex
            request.server_assignor = self.assignor
            request.owned = self.owned
        return request

    def beat(self, *, is_lost: bool = False) -> ConsumerHeartbeatResult:
        """Send a heartbeat, and process the answer unless it is lost."""
        result = self.shell.ask(self.shell.coordinator.consumer_heartbeat, self.request())
        assert isinstance(result, ConsumerHeartbeatResult)
        if is_lost:
            self.is_synchronized = False
        else:
            self.take(result)
        return result

    def take(self, result: ConsumerHeartbeatResult) -> None:
        """Process an answer."""
        if result.error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.is_synchronized = False  # its next heartbeat has all fields
            return
        if result.error is not ErrorCode.NONE:
            self.reset()
            return
        self.epoch = result.member_epoch
        self.is_synchronized = result.assignment is None or result.assignment == self.owned
        if result.assignment is not None:
            self.owned = result.assignment

    def reset(self) -> None:
        """Reset the state, as in a process that restarts."""
        self.epoch, self.owned, self.is_synchronized = 0, EMPTY_ASSIGNMENT, True

    def leave(self, epoch: int = -1) -> ConsumerHeartbeatResult:
        request = ConsumerHeartbeat("g", self.member_id, epoch, self.instance_id)
        result = self.shell.ask(self.shell.coordinator.consumer_heartbeat, request)
        assert isinstance(result, ConsumerHeartbeatResult)
        self.reset()
        return result

    @property
    def partitions(self) -> set[tuple[str | None, int]]:
        """The partitions that it owns, by name."""
        name_of = self.shell.topics.name_of
        return {(name_of(t), index) for t, indexes in self.owned.items() for index in indexes}


class FakeClassicMember:
    """A client of the classic protocol: eager, or cooperative. The leader assigns partitions."""

    def __init__(self, shell: ConsumerShell, topics: Iterable[str], protocol: str) -> None:
        self.shell = shell
        self.topics = [*topics]
        self.protocol = protocol
        self.member_id = ""
        self.generation_id = -1
        self.owned: Assignment = EMPTY_ASSIGNMENT
        self._waits_for: Any = None

    @property
    def partitions(self) -> set[tuple[str | None, int]]:
        """The partitions that it owns, by name."""
        return {
            (name, index)
            for name, indexes in by_topic_name(self.shell.topics, self.owned).items()
            for index in indexes
        }

    def beat(self) -> None:
        """Take the next step: process an answer, send a heartbeat, or join."""
        if self._waits_for is not None:
            if (result := self.shell.replies.get(self._waits_for)) is not None:
                self._waits_for = None
                self._take(result)
        elif self.generation_id < 0:
            self._join()
        else:
            self._refused(self.shell.heartbeat(self.member_id, self.generation_id))

    def leave(self) -> None:
        self.shell.leave(self.member_id)

    def _refused(self, error: ErrorCode) -> None:
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join()
        elif error is not ErrorCode.NONE:
            self.owned, self.generation_id = EMPTY_ASSIGNMENT, -1
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""

    def _join(self) -> None:
        if self.protocol != COOPERATIVE:
            self.owned = EMPTY_ASSIGNMENT
        self._await(self.shell.join(self.member_id, protocols=[(self.protocol, self._metadata())]))

    def _await(self, token: Any) -> None:
        self._waits_for = token
        if token in self.shell.replies:
            self.beat()

    def _metadata(self) -> bytes:
        rows = [
            (name, sorted(each))
            for name, each in by_topic_name(self.shell.topics, self.owned).items()
        ]
        data = struct.pack(">hi", 1, len(self.topics)) + b"".join(map(packed, self.topics))
        data += struct.pack(">ii", -1, len(rows))
        return data + b"".join(
            packed(name) + struct.pack(f">i{len(each)}i", len(each), *each) for name, each in rows
        )

    def _take(self, result: JoinGroupResult | SyncGroupResult) -> None:
        if result.error is ErrorCode.MEMBER_ID_REQUIRED:
            assert isinstance(result, JoinGroupResult)
            self.member_id = result.member_id
            self._join()
        elif result.error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.generation_id = -1  # it joins again, with its present partitions
        elif result.error is not ErrorCode.NONE:
            self._refused(result.error)
        elif isinstance(result, JoinGroupResult):
            self.member_id, self.generation_id = result.member_id, result.generation_id
            shares = self._shares(result) if result.leader == self.member_id else {}
            self._await(self.shell.sync(self.member_id, self.generation_id, shares))
        else:
            given = by_topic_id(self.shell.topics, read_assignment(result.assignment).partitions)
            has_to_revoke = not is_subset(self.owned, given)
            self.owned = given
            if has_to_revoke:
                self._join()

    def _shares(self, result: JoinGroupResult) -> dict[str, bytes]:
        """Assignments: owned partitions stay with their members, others are assigned in turn."""
        known = self.shell.topics.known
        wants = {row.member_id: read_subscription(row.metadata) for row in result.members}
        shares: dict[str, dict[str, set[int]]] = {member_id: {} for member_id in wants}
        for topic, found in known.items():
            members = [m for m, each in wants.items() if topic in each.topics]
            for index in range(found.num_partitions if members else 0):
                owner = next((m for m in members if (topic, index) in wants[m].owned), None)
                share = shares[owner or members[index % len(members)]]
                share.setdefault(topic, set()).add(index)
        return {member_id: encode_assignment(share, 1) for member_id, share in shares.items()}


def packed(name: str) -> bytes:
    return struct.pack(">h", len(name)) + name.encode()


def settle(consumers: Iterable[FakeConsumer | FakeClassicMember], rounds: int = 12) -> None:
    """Send `rounds` heartbeats of each member in turn, enough for a stable assignment."""
    members = [*consumers]
    for _ in range(rounds):
        for consumer in members:
            consumer.beat()


def facts(group: ConsumerGroup) -> tuple[object, ...]:
    """The state of a group that its records determine."""
    return (
        group.epoch,
        group.target_epoch,
        group.members,
        group.current,
        group.target,
        dict(group.topics),
        group.regexes,
        group.static_members,
        group.owners,
    )
