"""Members of a consumer group (KIP-848), which send heartbeats, own and revoke partitions, commit.

The coordinator may fence a member that has not learned of it yet. A partition counts as owned twice
only if the coordinator confirms its old owner in reply to a request that was sent after the
partition was given to another member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.simulation.clients import Refused
from tests.simulation.cluster import Cluster
from tests.simulation.events import SECOND_US
from tests.simulation.group_clients import FATAL_HEARTBEAT_ERRORS, LEAVE_EPOCH, GroupClient
from tests.simulation.history import Answer, SimHistory

if TYPE_CHECKING:
    from tests.simulation.world import World

GROUP: Final = "sharing"
_REBALANCE_TIMEOUT_MS: Final = 1500
_NOT_FENCED_US: Final = SECOND_US // 2
_END_PROBABILITY: Final = 0.06
"""The probability that a member leaves or dies before a heartbeat."""
_ABSENCE_PROBABILITY: Final = 0.3
_SUBSCRIPTION_CHANGE_PROBABILITY: Final = 0.1
_UNKNOWN_TOPIC: Final = "nowhere"
_SLOW_HEARTBEAT_PROBABILITY: Final = 0.15
_STALE_COMMIT_PROBABILITY: Final = 0.1
ASSIGNORS: Final[tuple[tuple[str | None, ...], ...]] = (
    ("range",), ("range",), (None,), ("range", "uniform", None)
)  # fmt: skip
"""Assignors that the members of a seed request; a member draws one whenever it joins. With range, a
member that leaves or joins changes the assignments of many others."""


class _Owner(NamedTuple):
    member_id: str
    epoch: int
    answer: Answer


class _Response(NamedTuple):
    """The last response to a member, which may arrive long after the request. `is_first` is set for
    the first response of a coordinator that replaced another."""

    epoch: int
    owned: frozenset[int]
    requested_us: int
    answer: Answer
    is_first: bool = False


class Ownership:
    """Ownership of partitions by the members' responses, with objections to invalid responses.

    - A partition has one member in each epoch.
    - A partition is given away only after its member has confirmed the revocation, or when the
      member may be fenced. A member whose partition was given to another is no longer confirmed.
    - A member's epoch does not go back.
    """

    def __init__(
        self,
        history: SimHistory,
        partitions: int,
        members: int,
        assignors: tuple[str | None, ...],
    ) -> None:
        self.is_over = False
        self.assignors = assignors
        self._history = history
        self._partitions = set(range(partitions))
        self._members = members
        self._latest: dict[int, _Owner] = {}
        self._by_epoch: dict[tuple[int, int], _Owner] = {}
        self._responses: dict[str, _Response] = {}

    def responded(
        self, member_id: str, epoch: int, owned: frozenset[int], requested_us: int, answer: Answer
    ) -> None:
        """Record the response to a heartbeat."""
        known = self._responses.get(member_id, _Response(0, frozenset(), requested_us, answer))
        if epoch < known.epoch:
            message = f"{member_id} was in epoch {known.epoch}, is {epoch}"
            self._history.object_to_group(known.answer, message)
        mine = _Owner(member_id, epoch, answer)
        for partition in owned:
            first = self._by_epoch.setdefault((epoch, partition), mine)
            if first.member_id != member_id:
                message = f"{GROUP}/{partition} is of {first} and of {mine}"
                self._history.object_to_group(first.answer, message)
            if partition in known.owned:
                self.confirmed(member_id, partition, requested_us)
            else:
                self._check_revoked(partition, mine)
                self._latest[partition] = mine
        is_first = known.answer.epoch != answer.epoch
        self._responses[member_id] = _Response(epoch, owned, requested_us, answer, is_first)

    def _check_revoked(self, partition: int, mine: _Owner) -> None:
        """Object if the earlier owner's last request is too recent for fencing, and it has not
        revoked the partition. A coordinator starts the rebalance timeouts when it loads, as in
        Kafka: one may expire just after the first response that lists partitions to revoke."""
        latest = self._latest.get(partition)
        if latest is None or latest.member_id == mine.member_id:
            return
        response = self._responses.get(latest.member_id)
        if response is None or partition not in response.owned or response.is_first:
            return
        if mine.answer.at_us - response.requested_us < _NOT_FENCED_US:
            message = f"{GROUP}/{partition} was of {latest}, and is given to {mine}"
            self._history.object_to_group(response.answer, message)

    def confirmed(self, member_id: str, partition: int, requested_us: int) -> None:
        """Record that a member may keep a partition that it has."""
        latest = self._latest.get(partition)
        if latest and latest.member_id != member_id and latest.answer.at_us <= requested_us:
            message = f"{GROUP}/{partition} is of {latest}; {member_id} goes on"
            self._history.object_to_group(latest.answer, message)

    def member_ended(self, member_id: str) -> None:
        """Record that a member uses this id no more. A group without members and offsets may be
        deleted: the next one begins with epoch 1."""
        self._responses.pop(member_id, None)
        if not self._responses:
            self._by_epoch.clear()

    @property
    def is_balanced(self) -> bool:
        """Whether all members are in one epoch, and each partition has one owner."""
        rows = list(self._responses.values())
        owned = [partition for row in rows for partition in row.owned]
        return (
            len(rows) == self._members
            and len({row.epoch for row in rows}) == 1
            and len(owned) == len(self._partitions)
            and set(owned) == self._partitions
        )


class ConsumerMember(GroupClient):
    """A member that leaves or dies at times, and comes back under another id."""

    version = 9

    def __init__(
        self, world: World, cluster: Cluster, host: str, topic: str, ownership: Ownership
    ) -> None:
        super().__init__(world, cluster.history, host, GROUP, topic, cluster.plan.partitions)
        self._ownership = ownership
        self._owned: frozenset[int] = frozenset()
        # The earliest epoch in which it can have got each partition, and the last response before.
        self._since: dict[int, tuple[int, Answer]] = {}
        self._answer = Answer(-1, -1)
        self._offsets: dict[int, int] = {}
        self._is_complete = True
        self._sent_owned: frozenset[int] = frozenset()
        self._instances = 0
        self._assignor: str | None = None
        self._subscribed = topic

    async def run(self) -> None:
        while not self._ownership.is_over:
            try:
                if not self.is_stopping and self.world.random.random() < _END_PROBABILITY:
                    await self._end()
                await self._heartbeat()
                await self._commit_some()
            except (NodeUnavailable, Refused):
                self.lose_coordinator()
                self._is_complete = True
            await self.pause(
                60, 900 if self.world.random.random() < _SLOW_HEARTBEAT_PROBABILITY else 300
            )
            if self.is_stopping and self._ownership.is_balanced:
                self._ownership.is_over = True
        self.is_done = True

    async def _end(self) -> None:
        """Leave or die. The member returns under another id, at once or after a while, in which the
        others share its partitions."""
        self.world.counts["consumers that ended"] += 1
        member_id, self.member_id = self.member_id, ""
        self._ownership.member_ended(member_id)
        if member_id and self.world.random.random() < 0.5:
            await self.send_to_coordinator(
                ConsumerGroupHeartbeatRequest(
                    group_id=GROUP, member_id=member_id, member_epoch=LEAVE_EPOCH
                ),
                1,
            )
        if self.world.random.random() < _ABSENCE_PROBABILITY:
            await self.pause(300, 2000)

    def _rejoin(self) -> None:
        self._instances += 1
        self.member_id, self.generation = f"{self.host}-{self._instances}", 0
        self._owned, self._offsets, self._since, self._is_complete = frozenset(), {}, {}, True
        self._assignor = self.world.random.choice(self._ownership.assignors)

    def _change_subscription(self) -> bool:
        """Sometimes subscribe to a topic that does not exist, or back, so that other members get
        the partitions of a live one. Returns whether the subscription changed."""
        was = self._subscribed
        if self.is_stopping:
            self._subscribed = self.topic
        elif self.world.random.random() < _SUBSCRIPTION_CHANGE_PROBABILITY:
            self._subscribed = self.topic if was == _UNKNOWN_TOPIC else _UNKNOWN_TOPIC
        return self._subscribed != was

    async def _heartbeat(self) -> None:
        """Send one heartbeat. After an error, request and response are complete."""
        if not self.member_id:
            self._rejoin()
        is_complete, requested_us, owned = self._is_complete, self.world.events.now_us, self._owned
        subscribes = self._change_subscription() or is_complete
        rows = [TopicPartitions(topic_id=self.topic_id(self.topic), partitions=sorted(owned))]
        response = await self.send_to_coordinator(
            ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=self.member_id,
                member_epoch=self.generation,
                rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS if is_complete else -1,
                subscribed_topic_names=[self._subscribed] if subscribes else None,
                server_assignor=self._assignor if is_complete else None,
                topic_partitions=(
                    (rows if owned else []) if is_complete or owned != self._sent_owned else None
                ),
            ),
            1,
        )
        self._check(response.error_code)
        self._is_complete, self._sent_owned = False, owned
        self._apply(response, requested_us)

    def _check(self, code: int) -> None:
        if code in FATAL_HEARTBEAT_ERRORS:
            self.world.counts["consumers that were fenced"] += 1
            self._ownership.member_ended(self.member_id)
            self.member_id = ""
        if code != ErrorCode.NONE:
            raise Refused(ErrorCode(code).name)

    def _apply(self, response: ConsumerGroupHeartbeatResponse, requested_us: int) -> None:
        before, self.generation = (self.generation, self._answer), response.member_epoch
        self._answer = self.answer()
        if response.assignment is not None:
            rows = response.assignment.topic_partitions
            self._owned = frozenset(p for row in rows for p in row.partitions)
            self._offsets = {p: self._offsets[p] for p in self._owned if p in self._offsets}
            self._since = {p: self._since.get(p, before) for p in self._owned}
            self.world.counts["consumers assigned"] += 1
        if self.leads(self.coordinator_id, GROUP_METADATA_TOPIC):
            row = (self.member_id, self.generation, self._owned)
            self._ownership.responded(*row, requested_us, self._answer)

    async def _commit_some(self) -> None:
        """Commit the next offset of a partition that this member owns."""
        if not self._owned:
            return
        partition = self.world.random.choice(sorted(self._owned))
        if partition not in self._offsets:
            known = self.history.last_commit(self.name_of(partition))
            self._offsets[partition] = await self.fetch_initial_offset(partition, known)
        member_id, requested_us = self.member_id, self.world.events.now_us
        if self._since[partition][0] > 1 and self.world.random.random() < _STALE_COMMIT_PROBABILITY:
            await self._commit_stale(partition)
        offset = self._offsets[partition] + 1
        code = await self.commit_as(member_id, self.generation, offset, partition)
        if code is not ErrorCode.NONE:
            raise Refused(code.name)
        self._offsets[partition] = offset
        self.history.committed(self.answer(), self.name_of(partition), offset)
        if self.leads(self.coordinator_id, GROUP_METADATA_TOPIC):
            self._ownership.confirmed(member_id, partition, requested_us)

    async def _commit_stale(self, partition: int) -> None:
        """Commit in an epoch in which this member did not own the partition (KIP-1251)."""
        since, known = self._since[partition]
        code = await self.commit_as(self.member_id, since - 1, 0, partition)
        self.world.counts["stale commits"] += 1
        if code is ErrorCode.NONE:
            name = self.name_of(partition)
            self.history.stale_commit(known, name, since - 1, self.member_id)
