"""A transactional producer of the simulated cluster, and readers of what it committed (KIP-98).

Transaction n writes n to each partition of its topic, and commits offset n + 1 of its group: what
a reader finds must be whole transactions, and the offset that of the last of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    create_topics,
    end_txn,
    fetch,
    find_coordinator,
    init_producer_id,
    metadata,
    offset_fetch,
    txn_offset_commit,
)
from kafkapy.protocol.messages import produce as produce_messages
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.control import ControlRecordType, control_type_id
from kafkapy.record.records import batch_records
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.simulation.clients import Client, Refused
from tests.simulation.history import LEDGER, SimHistory

if TYPE_CHECKING:
    from tests.simulation.world import World

R = TypeVar("R")

PARTITIONS: Final = 2
GROUP: Final = "ledger-readers"
CONFIG: Final = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "700",
    "request.timeout.ms": "1500",
}
_ID: Final = "bookkeeper"
_TIMEOUT_MS: Final = 4000
_TRANSACTION: Final = 1
_NONE: Final = int(ErrorCode.NONE)
_FETCH_BYTES: Final = 8192

_ENDS_THE_PRODUCER: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


class Fate(Enum):
    """Outcome of a transaction, as far as its producer knows it."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """It asked for a commit, and was not told whether that is decided."""


class BeginsAnew(Exception):
    """This instance cannot go on: another one, with the same transactional id, can."""


def _check(code: int) -> None:
    if code == _NONE:
        return
    error = ErrorCode(code)
    if error in _ENDS_THE_PRODUCER:
        raise BeginsAnew(error.name)
    raise Refused(error.name)


class Bookkeeper(Client):
    """Writes transactions one after another, and aborts some of them."""

    def __init__(self, world: World, history: SimHistory) -> None:
        super().__init__(world, "tx")
        self._history = history
        self._coordinators: dict[int, int] = {}
        self._producer_id = -1
        self._epoch = -1
        self._sequences = [0] * PARTITIONS
        self._next = 0
        self.spawn(self._run())

    async def _run(self) -> None:
        await self._until_done(self._create_topic)
        while not self.is_stopping:
            try:
                await self._begin()
                while not self.is_stopping:
                    await self._transaction()
                    await self.pause(10, 120)
            except BeginsAnew as why:
                self.world.counts["transactional producers that began anew"] += 1
                self.world.trace.note(self.host, f"begins anew: {why}")
        await self._begin()  # which aborts what the last one left open
        self.is_done = True

    async def _until_done(self, step: Callable[[], Awaitable[R]]) -> R:
        """Repeat `step` while a broker is unavailable or refuses; returns its result."""
        while True:
            try:
                return await step()
            except (NodeUnavailable, Refused):
                self._coordinators.clear()
                await self.pause(40, 120)

    async def _create_topic(self) -> None:
        topic = create_topics.CreatableTopic(
            name=LEDGER, num_partitions=PARTITIONS, replication_factor=3
        )
        wanted = metadata.MetadataRequest(topics=[])
        known = await self.node(self.any_broker()).request(wanted, 8)
        if known.controller_id < 0:
            raise Refused("no controller")
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=1000)
        response = await self.node(known.controller_id).request(request, 7)
        code = response.topics[0].error_code
        if code not in (_NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise Refused(ErrorCode(code).name)

    async def _ask(self, key_type: int, request: Any, version: int) -> Any:
        """Ask the coordinator of the group (0) or of the transactional id (1)."""
        found = self._coordinators.get(key_type)
        if found is None:
            question = find_coordinator.FindCoordinatorRequest(
                key=_ID if key_type == _TRANSACTION else GROUP, key_type=key_type
            )
            response = await self.node(self.any_broker()).request(question, 3)
            if response.error_code != _NONE:
                raise Refused("no coordinator")
            found = self._coordinators[key_type] = int(response.node_id)
        return await self.node(found).request(request, version)

    # one instance

    async def _begin(self) -> None:
        async def step() -> None:
            request = init_producer_id.InitProducerIdRequest(
                transactional_id=_ID, transaction_timeout_ms=_TIMEOUT_MS
            )
            response = await self._ask(_TRANSACTION, request, 4)
            if response.error_code != _NONE:
                raise Refused(ErrorCode(response.error_code).name)
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch

        await self._until_done(step)
        self._sequences = [0] * PARTITIONS

    async def _transaction(self) -> None:
        number = self._next
        self._next += 1
        fates = self._history.transactions
        fates[number] = Fate.ABORTED
        await self._until_done(self._add_partitions)
        for partition in range(PARTITIONS):
            await self._until_done(partial(self._produce, partition, number))
            self._sequences[partition] += 1
        await self._until_done(self._add_offsets)
        await self._until_done(lambda: self._commit_offset(number + 1))
        commits = self.world.random.random() < 0.7
        if commits:
            fates[number] = Fate.UNKNOWN
        await self._until_done(lambda: self._end(commits))
        if commits:
            fates[number] = Fate.COMMITTED
            self.world.counts["transactions committed"] += 1

    @property
    def _producer(self) -> dict[str, int]:
        return {"producer_id": self._producer_id, "producer_epoch": self._epoch}

    async def _add_partitions(self) -> None:
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic(
            name=LEDGER, partitions=list(range(PARTITIONS))
        )
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=_ID,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )
        response = await self._ask(_TRANSACTION, request, 3)
        for row in response.results_by_topic_v3_and_below[0].results_by_partition:
            _check(row.partition_error_code)

    async def _produce(self, partition: int, number: int) -> None:
        batch = build_batch(
            [RecordData(None, b"%d" % number, 1_700_000_000_000)],
            **self._producer,
            base_sequence=self._sequences[partition],
            is_transactional=True,
        )
        row = produce_messages.PartitionProduceData(index=partition, records=batch)
        request = produce_messages.ProduceRequest(
            transactional_id=_ID,
            acks=-1,
            timeout_ms=1000,
            topic_data=[produce_messages.TopicProduceData(name=LEDGER, partition_data=[row])],
        )
        leader = await self.leader(LEDGER, partition)
        response = await self.node(leader).request(request, 11)
        [answer] = response.responses[0].partition_responses
        if answer.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            _check(answer.error_code)

    async def _add_offsets(self) -> None:
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=_ID, group_id=GROUP, **self._producer
        )
        _check((await self._ask(_TRANSACTION, request, 3)).error_code)

    async def _commit_offset(self, offset: int) -> None:
        row = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset
        )
        topic = txn_offset_commit.TxnOffsetCommitRequestTopic(name=LEDGER, partitions=[row])
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=_ID, group_id=GROUP, **self._producer, topics=[topic]
        )
        response = await self._ask(0, request, 3)
        _check(response.topics[0].partitions[0].error_code)

    async def _end(self, commits: bool) -> None:
        request = end_txn.EndTxnRequest(transactional_id=_ID, committed=commits, **self._producer)
        _check((await self._ask(_TRANSACTION, request, 3)).error_code)

    # afterwards

    async def committed_offset(self) -> int:
        """The group's offset, once it is stable; -1 for none."""

        async def step() -> int:
            topic = offset_fetch.OffsetFetchRequestTopic(name=LEDGER, partition_indexes=[0])
            request = offset_fetch.OffsetFetchRequest(
                group_id=GROUP, topics=[topic], require_stable=True
            )
            response = await self._ask(0, request, 7)
            if response.error_code != _NONE:
                raise Refused("not the coordinator")
            row = response.topics[0].partitions[0]
            if row.error_code != _NONE:
                raise Refused("no stable offset")
            return int(row.committed_offset)

        return await self._until_done(step)


class CommittedReader(Client):
    """Reads one partition up to offset `end` as a read_committed consumer does."""

    def __init__(self, world: World, history: SimHistory, partition: int, end: int) -> None:
        super().__init__(world, f"c{partition}")
        self.partition = partition
        self.position = 0
        self.end = end
        self.values: list[int] = []
        history.ledger[partition] = self.values
        self.spawn(self._run())

    async def _run(self) -> None:
        while self.position < self.end:
            try:
                await self._poll()
            except (NodeUnavailable, Refused):
                await self.pause(50, 150)
        self.is_done = True

    async def _poll(self) -> None:
        leader = await self.leader(LEDGER, self.partition)
        row = fetch.FetchPartition(
            partition=self.partition,
            fetch_offset=self.position,
            partition_max_bytes=_FETCH_BYTES,
        )
        request = fetch.FetchRequest(
            max_wait_ms=300,
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=1,
            topics=[fetch.FetchTopic(topic=LEDGER, partitions=[row])],
        )
        response = await self.node(leader).request(request, 10)
        [answer] = response.responses[0].partitions
        if answer.error_code != _NONE:
            raise Refused(ErrorCode(answer.error_code).name)
        begun = sorted((a.first_offset, a.producer_id) for a in answer.aborted_transactions or ())
        self._take(bytes(answer.records or b""), begun)

    def _take(self, records: bytes, begun: list[tuple[int, int]]) -> None:
        """Keep the values of committed transactions: `begun` are the aborted ones, as KIP-98 has
        consumers pass over them."""
        aborting: set[int] = set()
        for position, header in iter_headers(records):
            while begun and begun[0][0] <= header.last_offset:
                aborting.add(begun.pop(0)[1])
            for record in batch_records(records, header, position):
                if header.is_control:
                    if control_type_id(record.key) == ControlRecordType.ABORT:
                        aborting.discard(header.producer_id)
                elif header.producer_id not in aborting and record.offset >= self.position:
                    self.values.append(int(record.value or b""))
            self.position = header.next_offset
