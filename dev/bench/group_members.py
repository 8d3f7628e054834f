"""A group of many members, one connection each, for the loads of `scripts/bench --kafka`.

Members send the requests of a client, but are no clients: a hundred clients would use more of the
machine than the broker. Real members wait for seconds before each heartbeat, and the broker is idle
meanwhile. These members wait until no answer is due, and then all send a heartbeat. So the time is
that of the broker and of the network.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple

from dev.bench.loads import LIMIT_S, connected
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import consumer_group_heartbeat as beats
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkapy.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkapy.protocol.schema import Message

_SESSION_MS: Final = 30_000
_REBALANCE_MS: Final = 60_000
_SUBSCRIPTION: Final = b"\0\0\0\0\0\0\xff\xff\xff\xff"
"""Version 0, no topics, no user data (ConsumerProtocolSubscription)."""


class Request(NamedTuple):
    """A member's next request. `waits`: the broker answers only after requests of other members."""

    version: int
    message: Message
    waits: bool = False


MemberSteps = Generator[Request | None, Any, None]
"""Yields requests, and is sent the response to each. Yields None for a pause before the next
heartbeat."""


class ClassicGroup:
    """Members of the classic protocol, in a group with the name of the topic.

    `_sizes` counts the members of each generation.
    """

    def __init__(self, topic: str, partitions: int) -> None:
        self._group = topic
        self._generations: dict[int, int] = {}
        self._sizes: dict[int, int] = {}

    def member(self, number: int) -> MemberSteps:
        """Join, and rejoin whenever the group rebalances."""
        member_id = ""
        while True:
            joined = yield Request(5, self._join(member_id), waits=member_id != "")
            member_id = joined.member_id
            if joined.error_code != ErrorCode.NONE:
                continue  # the id is required first
            generation = joined.generation_id
            assignments = []
            if joined.leader == member_id:
                self._sizes[generation] = len(joined.members)
                assignments = [
                    SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"mine")
                    for each in joined.members
                ]
            sync = SyncGroupRequest(
                group_id=self._group, generation_id=generation, member_id=member_id,
                assignments=assignments,
            )  # fmt: skip
            synced = yield Request(3, sync)
            if synced.error_code != ErrorCode.NONE:
                continue
            self._generations[number] = generation
            beat = Request(3, HeartbeatRequest(
                group_id=self._group, generation_id=generation, member_id=member_id,
            ))  # fmt: skip
            while True:
                yield None
                if (yield beat).error_code != ErrorCode.NONE:
                    break

    def _join(self, member_id: str) -> JoinGroupRequest:
        offered = JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIPTION)
        return JoinGroupRequest(
            group_id=self._group, session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS, member_id=member_id, protocol_type="consumer",
            protocols=[offered],
        )  # fmt: skip

    def is_settled(self, count: int) -> bool:
        """Whether `count` members are in one generation."""
        known = set(self._generations.values())
        return len(self._generations) == count and len(known) == 1 and (
            self._sizes.get(known.pop()) == count
        )  # fmt: skip


class ConsumerGroup:
    """Members of the consumer protocol, in a group with the name of the topic."""

    def __init__(self, topic: str, partitions: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._epochs: dict[int, int] = {}
        self._owned: dict[int, list[beats.TopicPartitions]] = {}

    def member(self, number: int) -> MemberSteps:
        """Join, and follow the assignments of the coordinator."""
        epoch = 0
        owned: list[beats.TopicPartitions] = []
        while True:
            beat = beats.ConsumerGroupHeartbeatRequest(
                group_id=self._topic, member_id=f"member-{number}", member_epoch=epoch,
                rebalance_timeout_ms=_REBALANCE_MS if epoch == 0 else -1,
                subscribed_topic_names=[self._topic] if epoch == 0 else None,
                topic_partitions=owned,
            )  # fmt: skip
            answer = yield Request(1, beat)
            code = ErrorCode(answer.error_code)
            if not code.retriable:  # retriable: the coordinator is not ready yet
                assert code is ErrorCode.NONE, answer.error_message
                epoch = answer.member_epoch
                if answer.assignment is not None:
                    owned = [
                        beats.TopicPartitions(topic_id=row.topic_id, partitions=row.partitions)
                        for row in answer.assignment.topic_partitions
                    ]
                self._epochs[number], self._owned[number] = epoch, owned
            if answer.assignment is None:
                yield None

    def is_settled(self, count: int) -> bool:
        """Whether `count` members of one epoch own all partitions."""
        shares = [sum(len(row.partitions) for row in rows) for rows in self._owned.values()]
        return (
            len(self._epochs) == count
            and len(set(self._epochs.values())) == 1
            and sum(shares) == self._partitions
            and max(shares) - min(shares) <= 1
        )


GROUPS: Final[dict[str, Callable[[str, int], ClassicGroup | ConsumerGroup]]] = {
    "classic": ClassicGroup,
    "consumer": ConsumerGroup,
}


class _Member:
    """A member's connection. `expects` is the request in flight; None before the next heartbeat."""

    def __init__(self, servers: str, steps: MemberSteps) -> None:
        self.socket = connected(servers)
        self._steps = steps
        self._received = b""
        self.expects: Request | None = Request(0, ApiVersionsRequest())
        self._send(self.expects)
        while self.receive() is None:  # the answer proves that the connection is accepted
            pass

    def _send(self, request: Request) -> None:
        self.socket.sendall(encode_request(request.message, request.version, 0, "bench"))

    @property
    def is_due(self) -> bool:
        """Whether it expects an answer that does not depend on other members."""
        return self.expects is not None and not self.expects.waits

    def go_on(self, answer: Any) -> None:
        """Pass the answer to the member, and send its next request, if it has one."""
        self.expects = self._steps.send(answer)
        if self.expects is not None:
            self._send(self.expects)

    def receive(self) -> Any:
        """Read from the socket. Returns the answer when it is complete, otherwise None."""
        self._received += self.socket.recv(1 << 20)
        size, frame = int.from_bytes(self._received[:4], "big"), self._received[4:]
        if not size or len(frame) < size:
            return None
        asked = self.expects
        assert asked is not None
        self._received = b""
        return decode_response(response_class(asked.message.API_KEY), asked.version, frame)[1]


class Members:
    """The members of a group at the first of `servers`, which coordinates it."""

    def __init__(self, servers: str, group: ClassicGroup | ConsumerGroup) -> None:
        self._servers = servers
        self._group = group
        self._members: list[_Member] = []
        self._selector = selectors.DefaultSelector()
        self._answers_due = 0
        """The number of expected responses that do not wait for other members' requests."""

    def settle(self, count: int) -> float:
        """Add members until there are `count`. Returns the seconds until all have their share.

        New members are connected before the time starts.
        """
        new = [
            _Member(self._servers, self._group.member(number))
            for number in range(len(self._members), count)
        ]
        self._members += new
        for member in new:
            self._selector.register(member.socket, selectors.EVENT_READ, member)
        started = time.perf_counter()
        for member in new:
            self._go_on(member, None)
        while self._answers_due or not self._group.is_settled(count):
            assert time.perf_counter() - started < LIMIT_S, f"{count} members do not settle"
            if not self._answers_due:
                for member in self._members:
                    if member.expects is None:
                        self._go_on(member, None)
            for key, _ in self._selector.select(LIMIT_S):
                answer = key.data.receive()
                if answer is not None:
                    self._answers_due -= key.data.is_due
                    self._go_on(key.data, answer)
        return time.perf_counter() - started

    def _go_on(self, member: _Member, answer: Any) -> None:
        member.go_on(answer)
        self._answers_due += member.is_due

    def close(self) -> None:
        self._selector.close()
        for member in self._members:
            member.socket.close()
