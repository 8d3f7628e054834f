"""Applies operations to one group on one broker; each operation has an outcome to compare."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from struct import pack
from typing import Any, Final

from dev.differential.difference import Outcome
from dev.differential.groups.connections import Activity, Connection
from dev.differential.groups.operations import (
    KEPT,
    MEMBERS,
    REBALANCE_MS,
    STATIC,
    TOPICS,
    UNKNOWN,
    Commit,
    CommitInTransaction,
    DeleteGroup,
    DeleteOffsets,
    Describe,
    EndTransaction,
    FetchOffsets,
    Heartbeat,
    Join,
    Leave,
    ListStates,
    Operation,
    Row,
    Sync,
    TimePasses,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import (
    add_offsets_to_txn,
    delete_groups,
    describe_groups,
    describe_transactions,
    end_txn,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
    txn_offset_commit,
)

Answer = tuple[int, Outcome]
"""A member's number, and an answer to it."""

_NOBODY: Final = -1
_PAUSE_S: Final = 0.005
_ATTEMPTS: Final = 2000
_TIME_PASSES_S: Final = 24.0
"""More than a session timeout and three rebalance timeouts together."""
_BEAT_S: Final = 2.0
_TRANSACTION_TIMEOUT_MS: Final = 600_000
_RETRIABLE: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class Member:
    """A client of the group, and its state after the last answer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.generation = -1
        self.is_leader = False
        self.ids_in_group: dict[str, int] = {}


class Group:
    """A group, its members' connections, and the answers to them."""

    def __init__(self, servers: str, name: str, activity: Activity) -> None:
        self.name = name
        self._servers = servers
        self._activity = activity
        self._members = {number: Member(number) for number in range(MEMBERS)}
        self._numbers: dict[str, int] = {}
        self._connections: dict[int, Connection] = {}
        self._former: list[Connection] = []
        self._arrived: list[Answer] = []
        self._producer: tuple[int, int] | None = None

    async def reconnect(self, servers: str) -> None:
        """Continue with a broker that was restarted."""
        await self.close()
        self._servers = servers
        self._connections, self._former, self._arrived = {}, [], []

    async def close(self) -> None:
        """Close all connections."""
        for connection in (*self._connections.values(), *self._former):
            connection.close()
        await asyncio.sleep(0)

    @property
    def leader(self) -> int:
        """The number of the leader that the last join named; -1 before the first."""
        leaders = (m for m in self._members.values() if m.is_leader)
        return max(leaders, key=lambda m: m.generation, default=Member(_NOBODY)).number

    def arrived(self) -> tuple[Answer, ...]:
        """Answers to members since the last call, by their numbers."""
        found, self._arrived = sorted(self._arrived, key=str), []
        return tuple(found)

    async def apply(self, operation: Operation) -> None:
        """Send the requests of an operation. `arrived` has its outcome once all is quiet."""
        match operation:
            case Join():
                await self._join(operation)
            case Sync():
                await self._sync(operation)
            case TimePasses():
                await self._let_time_pass(operation)
            case Heartbeat():
                await self._note(operation.member, self._beat(operation))
            case Leave():
                await self._note(_NOBODY, self._leave(operation))
            case Commit():
                await self._note(operation.member, self._commit(operation))
            case FetchOffsets():
                await self._note(_NOBODY, self._fetch(operation))
            case DeleteOffsets():
                await self._note(_NOBODY, self._delete_offsets(operation))
            case DeleteGroup():
                await self._note(_NOBODY, self._delete(operation))
            case Describe():
                await self._note(_NOBODY, self._describe(operation))
            case ListStates():
                await self._note(_NOBODY, self._list(operation))
            case CommitInTransaction():
                await self._note(operation.member, self._commit_in_transaction(operation))
            case EndTransaction():
                await self._note(_NOBODY, self._end_transaction(operation))

    async def _note(self, number: int, asked: Any) -> None:
        self._arrived.append((number, await asked))

    # connections

    async def _connection(self, number: int) -> Connection:
        """A connection without a request in flight; a busy one is replaced."""
        found = self._connections.get(number)
        if found is not None and not found.is_busy:
            return found
        if found is not None:
            self._former.append(found)
        client_id = "admin" if number == _NOBODY else f"c{number}"
        new = await Connection.open(self._servers, client_id, self._activity)
        self._connections[number] = new
        return new

    async def _ask(self, number: int, request: Any, version: int) -> Any:
        connection = await self._connection(number)
        return await connection.ask(request, version)

    async def _ask_later(
        self, number: int, request: Any, version: int, outcome: Callable[[Any], Outcome]
    ) -> None:
        """Send a request whose answer may wait for others."""
        connection = await self._connection(number)

        def done(answer: asyncio.Future[Any]) -> None:
            if answer.cancelled() or answer.exception() is not None:
                return
            # Apache Kafka leaves a join or a sync without an answer when the member sends another.
            is_former = self._connections.get(number) is not connection
            if not is_former or answer.result().error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                self._arrived.append((number, outcome(answer.result())))

        connection.ask(request, version).add_done_callback(done)

    # members

    def _id(self, number: int, identity: str) -> str:
        if identity == UNKNOWN:
            return "nobody"
        return self._members[number].id if identity == KEPT and number != _NOBODY else ""

    def _generation(self, number: int, shift: int) -> int:
        return -1 if number == _NOBODY else self._members[number].generation + shift

    def _instance(self, number: int, version: int, first: int) -> str | None:
        return STATIC.get(number) if version >= first else None

    def _who(self, member_id: str) -> str:
        """The number of the member with an id, which the broker assigned."""
        return str(self._numbers.get(member_id, member_id and "somebody"))

    async def _join(self, operation: Join) -> None:
        number, version = operation.member, operation.version
        sent = self._id(number, operation.identity)
        request = join_group.JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=operation.session_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=sent,
            group_instance_id=self._instance(number, version, 5),
            protocol_type=operation.protocol_type,
            protocols=[
                join_group.JoinGroupRequestProtocol(name=name, metadata=_subscription(number))
                for name in operation.protocols
            ],
        )
        member = self._members[number]

        def outcome(found: Any) -> Outcome:
            is_new = found.member_id != sent
            if found.member_id:
                self._numbers[found.member_id] = number
            if found.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                member.id = found.member_id
            if found.error_code == ErrorCode.NONE:
                member.generation = found.generation_id
                member.is_leader = found.leader == found.member_id
                member.ids_in_group = {m.member_id: -1 for m in found.members}
            return (
                "join",
                found.error_code,
                found.generation_id,
                found.protocol_type,
                found.protocol_name,
                (bool(found.member_id), is_new, bool(found.leader)),
            )

        def with_members(found: Any) -> Outcome:
            own = outcome(found)
            if found.members:
                rows = sorted((m.group_instance_id or "", m.metadata) for m in found.members)
                self._arrived.append((_NOBODY, ("members", found.skip_assignment, *rows)))
            return own

        await self._ask_later(number, request, version, with_members)

    async def _sync(self, operation: Sync) -> None:
        number = self.leader if operation.member == _NOBODY else operation.member
        if number == _NOBODY:
            return
        version, member = operation.version, self._members[number]
        by_number = {self._numbers.get(m, _NOBODY): m for m in member.ids_in_group}
        named = {True: ("consumer", "range"), False: ("consumer", "sticky"), None: (None, None)}
        protocol_type, protocol_name = named[operation.is_named]
        request = sync_group.SyncGroupRequest(
            group_id=self.name,
            generation_id=self._generation(number, operation.generation_shift),
            member_id=self._id(number, operation.identity),
            group_instance_id=self._instance(number, version, 3),
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[
                sync_group.SyncGroupRequestAssignment(
                    member_id=by_number[each],
                    assignment=b"%d of %d" % (each, member.generation),
                )
                for each in operation.assigned
                if each in by_number and member.is_leader
            ],
        )

        def outcome(found: Any) -> Outcome:
            head = "sync", found.error_code, found.protocol_type, found.protocol_name
            return *head, bytes(found.assignment)

        await self._ask_later(number, request, version, outcome)

    async def _beat(self, operation: Heartbeat) -> Outcome:
        number, version = operation.member, operation.version
        request = heartbeat.HeartbeatRequest(
            group_id=self.name,
            generation_id=self._generation(number, operation.generation_shift),
            member_id=self._id(number, operation.identity),
            group_instance_id=self._instance(number, version, 3),
        )
        return "heartbeat", (await self._ask(number, request, version)).error_code

    async def _let_time_pass(self, operation: TimePasses) -> None:
        """Wait for _TIME_PASSES_S; the last heartbeat of each member in `alive` is an outcome."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _TIME_PASSES_S
        last: dict[int, Outcome] = {}
        while loop.time() < end_s:
            for number in operation.alive:
                last[number] = await self._beat(Heartbeat(number, 4, KEPT, 0))
            await asyncio.sleep(_BEAT_S)
        self._arrived += last.items()

    async def _leave(self, operation: Leave) -> Outcome:
        ids = [self._id(number, operation.identity) for number in operation.members]
        request = leave_group.LeaveGroupRequest(
            group_id=self.name,
            member_id=ids[0],
            members=[
                leave_group.MemberIdentity(member_id=each, group_instance_id=STATIC.get(number))
                for each, number in zip(ids, operation.members, strict=True)
            ],
        )
        found = await self._ask(_NOBODY, request, operation.version)
        rows = [(self._who(m.member_id), m.group_instance_id, m.error_code) for m in found.members]
        return "leave", found.error_code, *sorted(rows, key=str)

    # offsets

    async def _commit(self, operation: Commit) -> Outcome:
        number, version = operation.member, operation.version
        request = offset_commit.OffsetCommitRequest(
            group_id=self.name,
            generation_id_or_member_epoch=self._generation(number, operation.generation_shift),
            member_id=self._id(number, operation.identity),
            retention_time_ms=operation.retention_ms,
            group_instance_id=self._instance(number, version, 7),
            topics=_committed(
                operation.rows,
                offset_commit.OffsetCommitRequestTopic,
                offset_commit.OffsetCommitRequestPartition,
            ),
        )
        return "commit", *_errors((await self._ask(number, request, version)).topics)

    async def _fetch(self, operation: FetchOffsets) -> Outcome:
        version, wanted = operation.version, operation.partitions
        topics = None
        if wanted is not None:
            topics = [(name, [p for _, p in rows]) for name, rows in _by_topic(wanted)]
        request = offset_fetch.OffsetFetchRequest(require_stable=operation.is_stable)
        if version < 8:
            request.group_id = self.name
            request.topics = topics and [
                offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics
            ]
        else:
            group = offset_fetch.OffsetFetchRequestGroup(group_id=self.name, topics=None)
            group.topics = topics and [
                offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in topics
            ]
            request.groups = [group]
        found = await self._ask(_NOBODY, request, version)
        [answer] = found.groups if version >= 8 else [found]
        rows = sorted(
            (topic.name, p.partition_index, p.committed_offset, p.committed_leader_epoch,
             len(p.metadata or ""), p.error_code)
            for topic in answer.topics
            for p in topic.partitions
        )  # fmt: skip
        return "offsets", answer.error_code, *rows

    async def _delete_offsets(self, operation: DeleteOffsets) -> Outcome:
        request = offset_delete.OffsetDeleteRequest(
            group_id=self.name,
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        offset_delete.OffsetDeleteRequestPartition(partition_index=p)
                        for _, p in rows
                    ],
                )
                for name, rows in _by_topic(operation.partitions)
            ],
        )
        found = await self._ask(_NOBODY, request, 0)
        return "offsets deleted", found.error_code, *_errors(found.topics)

    async def _delete(self, operation: DeleteGroup) -> Outcome:
        request = delete_groups.DeleteGroupsRequest(groups_names=[self.name])
        found = await self._ask(_NOBODY, request, operation.version)
        return "deleted", *(row.error_code for row in found.results)

    # transactions

    async def _commit_in_transaction(self, operation: CommitInTransaction) -> Outcome:
        producer_id, epoch = await self._producer_id()
        add = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self.name,
        )
        added = await self._settled(add, 3)
        number, version = operation.member, operation.version
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=self._generation(number, operation.generation_shift),
            member_id=self._id(number, operation.identity),
            group_instance_id=self._instance(number, version, 3),
            topics=_committed(
                operation.rows,
                txn_offset_commit.TxnOffsetCommitRequestTopic,
                txn_offset_commit.TxnOffsetCommitRequestPartition,
            ),
        )
        found = await self._settled(request, version)
        return "commit in transaction", added.error_code, *_errors(found.topics)

    async def _producer_id(self) -> tuple[int, int]:
        if self._producer is None:
            request = init_producer_id.InitProducerIdRequest(
                transactional_id=self.name, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
            )
            found = await self._settled(request, 4)
            assert not found.error_code, found
            self._producer = found.producer_id, found.producer_epoch
        return self._producer

    async def _end_transaction(self, operation: EndTransaction) -> Outcome:
        if self._producer is None:
            return ("no transaction",)
        producer_id, epoch = self._producer
        request = end_txn.EndTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=operation.is_commit,
        )
        ended = await self._settled(request, 3)
        state = describe_transactions.DescribeTransactionsRequest(transactional_ids=[self.name])
        for _ in range(_ATTEMPTS):
            [found] = (await self._ask(_NOBODY, state, 0)).transaction_states
            if not found.transaction_state.startswith("Prepare"):
                return "end", ended.error_code, found.transaction_state
            await asyncio.sleep(_PAUSE_S)
        return "end", ended.error_code, "no markers"

    async def _settled(self, request: Any, version: int) -> Any:
        """Repeat a request until its answer is not a transient error; returns the answer."""
        found = None
        for _ in range(_ATTEMPTS):
            found = await self._ask(_NOBODY, request, version)
            if _RETRIABLE.isdisjoint(_codes(found)):
                break
            await asyncio.sleep(_PAUSE_S)
        return found

    # the group's state

    async def _describe(self, operation: Describe) -> Outcome:
        request = describe_groups.DescribeGroupsRequest(groups=[self.name])
        [found] = (await self._ask(_NOBODY, request, operation.version)).groups
        rows = sorted(
            (m.client_id, m.client_host, m.group_instance_id or "", self._who(m.member_id),
             bytes(m.member_metadata), bytes(m.member_assignment))
            for m in found.members
        )  # fmt: skip
        head = found.error_code, found.group_state, found.protocol_type, found.protocol_data
        return "described", *head, *rows

    async def _list(self, operation: ListStates) -> Outcome:
        states = list(operation.states) if operation.version >= 4 else []
        request = list_groups.ListGroupsRequest(states_filter=states)
        found = await self._ask(_NOBODY, request, operation.version)
        rows = [
            (row.protocol_type, row.group_state)
            for row in found.groups
            if row.group_id == self.name
        ]
        return "listed", found.error_code, *rows


def _subscription(number: int) -> bytes:
    """A consumer's subscription to the first topic, with user data (`ConsumerProtocol`, version 0).

    Apache Kafka never answers a join with other bytes.
    """
    topic, data = TOPICS[0].encode(), b"of %d" % number
    return pack(f">hih{len(topic)}si{len(data)}s", 0, 1, len(topic), topic, len(data), data)


def _by_topic(rows: Sequence[Any]) -> list[tuple[str, list[Any]]]:
    """Rows by their first field."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return list(found.items())


def _committed(
    rows: Sequence[Row], topic: Callable[..., Any], partition: Callable[..., Any]
) -> list[Any]:
    """The topics of a request that commits offsets, as rows of these two classes."""
    return [
        topic(
            name=name,
            partitions=[
                partition(
                    partition_index=index,
                    committed_offset=offset,
                    committed_leader_epoch=0,
                    committed_metadata="m" * size,
                )
                for _, index, offset, size in of_topic
            ],
        )
        for name, of_topic in _by_topic(rows)
    ]


def _codes(found: Any) -> list[int]:
    """The error of an answer, or those of its partitions."""
    if isinstance(found, txn_offset_commit.TxnOffsetCommitResponse):
        return [row.error_code for topic in found.topics for row in topic.partitions]
    return [found.error_code]


def _errors(topics: Iterable[Any]) -> list[Outcome]:
    return sorted((t.name, p.partition_index, p.error_code) for t in topics for p in t.partitions)
