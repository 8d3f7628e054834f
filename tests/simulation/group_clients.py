"""Groups of the simulated cluster that commit offsets: one without members, one with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages import (
    heartbeat,
    join_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.simulation.clients import Client, Refused

if TYPE_CHECKING:
    from tests.simulation.history import Answer, SimHistory
    from tests.simulation.world import World

_NONE: Final = int(ErrorCode.NONE)
_NOBODY: Final = -1
SESSION_TIMEOUT_MS: Final = 2000
_REBALANCE_TIMEOUT_MS: Final = 1000
_TOKEN: Final = b"commits"
_STALE_COMMITS: Final = 0.4
"""How often a member that has joined plays one that was left behind."""


class GroupClient(Client):
    """Base class of a group's clients. Requests raise NodeUnavailable or Refused."""

    def __init__(
        self, world: World, history: SimHistory, host: str, group: str, topic: str
    ) -> None:
        super().__init__(world, host)
        self.group = group
        self.topic = topic
        self.history = history
        self.generation = _NOBODY
        self.member_id = ""
        self._coordinator: int | None = None
        self.spawn(self.run())

    async def run(self) -> None:
        """Until told to stop."""
        raise AssertionError("a group client says what it does")

    async def ask(self, request: Any, version: int) -> Any:
        """Ask the group's coordinator: the same one as before, until `lose_coordinator`."""
        if self._coordinator is None:
            self._coordinator = await self.coordinator(self.group)
        return await self.node(self._coordinator).request(request, version)

    def lose_coordinator(self) -> None:
        """It did not answer, or refused: ask who it is now. Another one may know less."""
        self._coordinator = None

    async def commit(self, offset: int) -> None:
        code = await self._commit_as(self.member_id, self.generation, offset)
        if code is not ErrorCode.NONE:
            raise Refused(code.name)
        self.history.committed(self._answer(), self.group, offset)

    def _answer(self) -> Answer:
        """The coordinator has answered just now."""
        return self.history.answer(self._answered_by, GROUP_METADATA_TOPIC, 0)

    @property
    def _answered_by(self) -> int:
        """The coordinator, -1 if none is known."""
        return -1 if self._coordinator is None else self._coordinator

    async def _commit_as(self, member_id: str, generation: int, offset: int) -> ErrorCode:
        row = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = offset_commit.OffsetCommitRequestTopic(name=self.topic, partitions=[row])
        request = offset_commit.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[topic],
        )
        response = await self.ask(request, 8)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def fetch(self) -> int:
        """The committed offset, -1 for none."""
        topic = offset_fetch.OffsetFetchRequestTopic(name=self.topic, partition_indexes=[0])
        request = offset_fetch.OffsetFetchRequest(group_id=self.group, topics=[topic])
        response = await self.ask(request, 7)
        if response.error_code != _NONE or response.topics[0].partitions[0].error_code != _NONE:
            raise Refused("no offsets")
        return int(response.topics[0].partitions[0].committed_offset)


class Committer(GroupClient):
    """A group without members: it commits ever larger offsets."""

    async def run(self) -> None:
        offset = 0
        while not self.is_stopping:
            offset += 1
            try:
                await self.commit(offset)
            except (NodeUnavailable, Refused):
                self.world.counts["commits without success"] += 1
                self.lose_coordinator()
            await self.pause(50, 400)
        self.is_done = True


class Member(GroupClient):
    """One of several members: whom the group's leader picks goes on from the committed offset.

    Now and then one commits for a generation that is over, or for a member that never was: as one
    does that was paused and has not heard. It must be refused.
    """

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                is_chosen = await self._join()
                known = self.history.last_commit(self.group)
                self.world.counts["generations joined"] += 1
                if is_chosen:
                    answer = self._answer()
                    self.history.owns(answer, self.group, self.generation, self.member_id)
                if self.world.random.random() < _STALE_COMMITS:
                    await self._commit_stale()
                await self._take_part(is_chosen, known)
            except (NodeUnavailable, Refused):
                self.lose_coordinator()
                await self.pause(50, 200)
        self.is_done = True

    async def _commit_stale(self) -> None:
        """This generation's assignment is in the log: nobody may accept the one before."""
        member_id, generation = self.member_id, self.generation - 1
        if self.world.random.random() < 0.5:
            member_id, generation = "nobody", self.generation
        code = await self._commit_as(member_id, generation, 0)
        self.world.counts["stale commits"] += 1
        if code is ErrorCode.NONE:
            self.history.stale_commit(self._answer(), self.group, generation, member_id)

    async def _take_part(self, is_chosen: bool, known: tuple[Answer, int]) -> None:
        """Until the generation is over (Refused)."""
        if is_chosen:
            found = await self.fetch()
            if found < known[1]:
                if not self.leads(self._answered_by, GROUP_METADATA_TOPIC):
                    raise Refused("a coordinator that was replaced, and has not heard of it")
                self.history.went_back(self.group, known, found)
        while not self.is_stopping:
            if is_chosen:
                found += 1
                await self.commit(found)
            else:
                await self._beat()
            await self.pause(50, 300)

    async def _join(self) -> bool:
        """Join and sync; whether this member was chosen to commit."""
        protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
        request = join_group.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            protocol_type="simulation",
            protocols=[protocol],
        )
        joined = await self.ask(request, 5)
        self._check(joined.error_code, joined.member_id)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == self.member_id:
            chosen = min(member.member_id for member in joined.members)
            assignments = [
                sync_group.SyncGroupRequestAssignment(
                    member_id=member.member_id,
                    assignment=_TOKEN if member.member_id == chosen else b"",
                )
                for member in joined.members
            ]
        synced = await self.ask(
            sync_group.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                assignments=assignments,
            ),
            3,
        )
        self._check(synced.error_code)
        return bytes(synced.assignment) == _TOKEN

    async def _beat(self) -> None:
        request = heartbeat.HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        self._check((await self.ask(request, 3)).error_code)

    def _check(self, code: int, member_id: str = "") -> None:
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code != _NONE:
            raise Refused(ErrorCode(code).name)
