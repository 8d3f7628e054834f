"""Clients of groups that commit offsets: groups with and without members.

The offset that a group commits for partition p has the name `GROUP/p` in the history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages import (
    delete_groups,
    heartbeat,
    join_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.simulation.clients import Client, Refused
from tests.simulation.events import MS_US, SECOND_US

if TYPE_CHECKING:
    from tests.simulation.history import Answer, SimHistory
    from tests.simulation.world import World

_NONE: Final = int(ErrorCode.NONE)
_NO_GENERATION: Final = -1
SESSION_TIMEOUT_MS: Final = 2000
_REBALANCE_TIMEOUT_MS: Final = 1000
LEAVE_EPOCH: Final = -1
FATAL_HEARTBEAT_ERRORS: Final = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,  # the coordinator's log lost everything
)
"""Heartbeat errors (KIP-848, KIP-932) after which the member joins under another id."""
_STALE_COMMIT_PROBABILITY: Final = 0.4
"""The probability that a joined member sends a stale commit."""
_RESTART_PROBABILITY: Final = 0.2
"""The probability that a static member comes back as another process."""
_SLOW_ASSIGNMENT_PROBABILITY: Final = 0.15
"""The probability that a group's leader delays the assignment."""
_DELETION_PROBABILITY: Final = 0.25
"""The probability that an offset is deleted after its commit."""
_RETENTION_MS: Final = 2000
_RETENTION_VERSION: Final = 4
"""The version of OffsetCommit that has a retention time."""
_CLOCK_DIFFERENCE_MAX_US: Final = SECOND_US


class GroupClient(Client):
    """Base class of a group's clients. Requests raise NodeUnavailable or Refused."""

    version = 8
    """The version of OffsetCommit. From 9 on, members of consumer groups may commit."""
    retention_ms = -1

    def __init__(
        self,
        world: World,
        history: SimHistory,
        host: str,
        group: str,
        topic: str,
        partitions: int = 1,
        instance_id: str | None = None,
    ) -> None:
        super().__init__(world, host)
        self.group = group
        self.topic = topic
        self.partitions = partitions
        self.instance_id = instance_id
        self.history = history
        self.generation = _NO_GENERATION
        self.member_id = ""
        self._coordinator: int | None = None
        self.spawn(self.run())

    async def run(self) -> None:
        """Run until `is_stopping`."""
        raise AssertionError("a group client says what it does")

    def name_of(self, partition: int) -> str:
        """The name of the offset that the group commits for a partition."""
        return f"{self.group}/{partition}"

    async def send_to_coordinator(self, request: Any, version: int) -> Any:
        """Send a request to the group's coordinator, which is kept until `lose_coordinator`."""
        if self._coordinator is None:
            self._coordinator = await self.coordinator(self.group)
        return await self.node(self._coordinator).request(request, version)

    def lose_coordinator(self) -> None:
        """Drop a coordinator that did not answer or refused; the next request finds the new one."""
        self._coordinator = None

    async def commit(self, offset: int, partition: int = 0) -> None:
        code = await self.commit_as(self.member_id, self.generation, offset, partition)
        if code is not ErrorCode.NONE:
            raise Refused(code.name)
        self.history.committed(self.answer(), self.name_of(partition), offset)

    def answer(self) -> Answer:
        """The present time as the coordinator's answer, for the history."""
        return self.history.answer(self.coordinator_id, GROUP_METADATA_TOPIC, 0)

    @property
    def coordinator_id(self) -> int:
        """The coordinator, -1 if none is known."""
        return -1 if self._coordinator is None else self._coordinator

    async def commit_as(
        self, member_id: str, generation: int, offset: int, partition: int
    ) -> ErrorCode:
        """Commit as any member, and return the error code."""
        row = offset_commit.OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset
        )
        topic = offset_commit.OffsetCommitRequestTopic(name=self.topic, partitions=[row])
        request = offset_commit.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=self.instance_id,
            retention_time_ms=self.retention_ms,
            topics=[topic],
        )
        response = await self.send_to_coordinator(request, self.version)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def fetch(self, partition: int = 0) -> int:
        """The committed offset, -1 for none."""
        topic = offset_fetch.OffsetFetchRequestTopic(name=self.topic, partition_indexes=[partition])
        request = offset_fetch.OffsetFetchRequest(group_id=self.group, topics=[topic])
        response = await self.send_to_coordinator(request, 7)
        if response.error_code != _NONE or response.topics[0].partitions[0].error_code != _NONE:
            raise Refused("no offsets")
        return int(response.topics[0].partitions[0].committed_offset)

    async def fetch_initial_offset(self, partition: int, known: tuple[Answer, int]) -> int:
        """The committed offset of a newly assigned partition: at least the known one."""
        found = await self.fetch(partition)
        if found < known[1]:
            if not self.leads(self.coordinator_id, GROUP_METADATA_TOPIC):
                raise Refused("a coordinator that was replaced, and has not heard of it")
            self.history.went_back(self.name_of(partition), known, found)
        return found


class Committer(GroupClient):
    """A group without members, which commits increasing offsets."""

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


class ExpiringCommitter(GroupClient):
    """A group without members whose offsets expire soon: it finds the offset that it committed
    last, or none, and never none before the expiry.

    If a deletion is lost, the next coordinator has to delete the offset. Sometimes an administrator
    deletes the offset or the group: then no offset exists until the next commit.
    """

    version = _RETENTION_VERSION
    retention_ms = _RETENTION_MS

    def __init__(
        self, world: World, history: SimHistory, host: str, topic: str, clocks_agree: bool
    ) -> None:
        super().__init__(world, history, host, "forgetful", topic)
        self._clocks_agree = clocks_agree
        self._offset = 0
        self._known: tuple[Answer, int] | None = None
        self._asked_us = 0  # the time of the last commit request; its response may come much later
        self._deleted: Answer | None = None

    async def run(self) -> None:
        found = 0
        while not (self.is_stopping and (found < 0 or not self._clocks_agree)):
            try:
                if not self.is_stopping and found >= 0:
                    await self._commit_next()
                    if self.world.random.random() < _DELETION_PROBABILITY:
                        await self._delete()
                await self.pause(50, 2 * _RETENTION_MS)
                found = await self._fetch_and_check()
            except (NodeUnavailable, Refused):
                self.lose_coordinator()
                await self.pause(50, 200)
        self.is_done = True

    async def _commit_next(self) -> None:
        self._offset += 1
        self._deleted = None
        now_us = self.world.events.now_us
        code = await self.commit_as("", _NO_GENERATION, self._offset, 0)
        if code is not ErrorCode.NONE:
            raise Refused(code.name)
        self._known = self.answer(), self._offset
        self._asked_us = now_us

    async def _delete(self) -> None:
        """Delete the offset, or the group."""
        self._known = None  # even without a response
        if self.world.random.random() < 0.5:
            of_group = delete_groups.DeleteGroupsRequest(groups_names=[self.group])
            code = (await self.send_to_coordinator(of_group, 2)).results[0].error_code
        else:
            row = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
            topic = offset_delete.OffsetDeleteRequestTopic(name=self.topic, partitions=[row])
            of_offset = offset_delete.OffsetDeleteRequest(group_id=self.group, topics=[topic])
            response = await self.send_to_coordinator(of_offset, 0)
            code = response.error_code or response.topics[0].partitions[0].error_code
        if code != _NONE:
            raise Refused(ErrorCode(code).name)
        self._deleted = self.answer()
        self.world.counts["offsets that were deleted"] += 1

    async def _fetch_and_check(self) -> int:
        """The offset that the group has now, -1 for none."""
        found, known, deleted = await self.fetch(), self._known, self._deleted
        is_back = deleted is not None and found >= 0
        if known is None and not is_back:
            return found
        if not self.leads(self.coordinator_id, GROUP_METADATA_TOPIC):
            raise Refused("a coordinator that was replaced, and has not heard of it")
        if known is None:
            assert deleted is not None, "nothing is known"
            message = f"{self.group} had its offset deleted, and found {found}"
            self.history.object_to_group(deleted, message)
            return found
        age_us = self.world.events.now_us - self._asked_us
        is_young = age_us < _RETENTION_MS * MS_US - _CLOCK_DIFFERENCE_MAX_US
        if (
            0 <= found < known[1]
            or found > self._offset
            or (found < 0 and is_young and self._clocks_agree)
        ):
            self.history.went_back(self.group, known, found)
        if found < 0:
            self.world.counts["offsets that expired"] += 1
            self._known = None
        return found


class Member(GroupClient):
    """One of several members. Each continues from the committed offsets of the partitions that the
    group's leader assigns to it.

    Sometimes a member commits for an old generation, or for a member that never existed, as a
    client does that was paused and missed the change. These commits must be refused. A static
    member sometimes comes back as another process, after which its former id must be refused.
    """

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                former = self._restart()
                mine = await self._join()
                known = {p: self.history.last_commit(self.name_of(p)) for p in mine}
                self.world.counts["generations joined"] += 1
                owner = self.instance_id or self.member_id
                for partition in mine:
                    name = self.name_of(partition)
                    self.history.owns(self.answer(), name, self.generation, owner)
                if former:
                    await self._commit_stale(former, self.generation, mine)
                elif self.world.random.random() < _STALE_COMMIT_PROBABILITY:
                    await self._commit_stale(*self._stale_identity(), mine)
                await self._run_generation(known)
            except (NodeUnavailable, Refused):
                self.lose_coordinator()
                await self.pause(50, 200)
        self.is_done = True

    def _restart(self) -> str:
        """The former id of a static member that comes back, '' if it does not."""
        former = self.member_id
        if not (self.instance_id and former and self.world.random.random() < _RESTART_PROBABILITY):
            return ""
        self.world.counts["static members restarted"] += 1
        self.member_id = ""
        return former

    def _stale_identity(self) -> tuple[str, int]:
        if self.world.random.random() < 0.5 and not self.instance_id:
            return "nobody", self.generation
        return self.member_id, self.generation - 1

    async def _commit_stale(self, member_id: str, generation: int, mine: list[int]) -> None:
        """Commit a stale offset. This generation's assignment is in the log, so no broker may
        accept a commit of the previous one."""
        partition, known = mine[0] if mine else 0, self.answer()
        code = await self.commit_as(member_id, generation, 0, partition)
        self.world.counts["stale commits"] += 1
        if code is ErrorCode.NONE:
            name = self.name_of(partition)
            self.history.stale_commit(known, name, generation, member_id)

    async def _run_generation(self, known: dict[int, tuple[Answer, int]]) -> None:
        """Commit and send heartbeats until the generation is over (Refused)."""
        found = {p: await self.fetch_initial_offset(p, last) for p, last in known.items()}
        while not self.is_stopping:
            if found:
                partition = self.world.random.choice(list(found))
                found[partition] += 1
                await self.commit(found[partition], partition)
            else:
                await self._heartbeat()
            await self.pause(50, 300)

    async def _join(self) -> list[int]:
        """Join and sync; return the partitions that were assigned to this member."""
        protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
        request = join_group.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="simulation",
            protocols=[protocol],
        )
        joined = await self.send_to_coordinator(request, 5)
        self._check(joined.error_code, joined.member_id)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == self.member_id:
            assignments = self._assign(row.member_id for row in joined.members)
            if self.world.random.random() < _SLOW_ASSIGNMENT_PROBABILITY:
                await self.pause(100, 900)
        synced = await self.send_to_coordinator(
            sync_group.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                assignments=assignments,
            ),
            3,
        )
        self._check(synced.error_code)
        return list(bytes(synced.assignment))

    def _assign(self, members: Iterable[str]) -> list[sync_group.SyncGroupRequestAssignment]:
        """Assign each partition to one member, in turn; an assignment has one byte for each."""
        names = sorted(members)
        return [
            sync_group.SyncGroupRequestAssignment(
                member_id=name, assignment=bytes(range(i, self.partitions, len(names)))
            )
            for i, name in enumerate(names)
        ]

    async def _heartbeat(self) -> None:
        request = heartbeat.HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        self._check((await self.send_to_coordinator(request, 3)).error_code)

    def _check(self, code: int, member_id: str = "") -> None:
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = member_id
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
        if code != _NONE:
            raise Refused(ErrorCode(code).name)
