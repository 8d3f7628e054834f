"""Transactional producers of the simulated cluster (KIP-98).

The plan may give them transaction version 2 (KIP-890): then brokers add partitions, and each end
assigns the next epoch.

Transaction n of a transactional id writes n to each partition of its topic, and commits offset
n + 1 of its group. Readers must find whole transactions, and the offset of the last one. Several
live producers may use one id: each fences the one before, which goes on until it is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC
from kafkapy.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    create_topics,
    end_txn,
    find_coordinator,
    init_producer_id,
    metadata,
    offset_fetch,
    txn_offset_commit,
)
from kafkapy.protocol.messages import produce as produce_messages
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.simulation.clients import Client, Refused
from tests.simulation.history import LEDGER, SimHistory

if TYPE_CHECKING:
    from tests.simulation.world import World

R = TypeVar("R")

PARTITIONS: Final = 2
ID_STEP: Final = 10**6
"""Transactions of transactional id i have the numbers i * ID_STEP + 0, 1, 2, ..."""
CONFIG: Final = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "700",
    "request.timeout.ms": "1500",
}
_TIMEOUTS_MS: Final = (900, 4000, 4000)
_SLOW_COMMIT_PROBABILITY: Final = 0.04
_TRANSACTION: Final = 1
_NONE: Final = int(ErrorCode.NONE)

_FATAL_ERRORS: Final = frozenset(
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
    """Outcome of a transaction, from its producer's responses."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The producer requested a commit, and received no decision."""


@dataclass(slots=True)
class TransactionRecord:
    """One transaction: its start time and its outcome."""

    begun_us: int
    fate: Fate = Fate.ABORTED


@dataclass(slots=True)
class TransactionalIdSpec:
    """A transactional id with the topic, partitions and group of its producers. `rivals` is the
    number of live producers that use it. With `aborts_in_flight`, they may abort records that they
    have just sent, without a response."""

    transactional_id: str
    index: int
    topic: str
    partitions: int
    source: str
    rivals: int = 1
    aborts_in_flight: bool = True
    is_v2: bool = False
    taken: int = 0

    @property
    def group(self) -> str:
        return f"readers-of-{self.transactional_id}"

    def next_number(self) -> int:
        """The number of the next transaction of any producer."""
        self.taken += 1
        return self.index * ID_STEP + self.taken - 1


class InstanceEnded(Exception):
    """Raised if this instance cannot go on. Another one with the same transactional id can."""


def _check(code: int) -> None:
    if code == _NONE:
        return
    error = ErrorCode(code)
    if error in _FATAL_ERRORS:
        raise InstanceEnded(error.name)
    raise Refused(error.name)


class TransactionalClient(Client):
    """Uses a transactional id for one transaction after another until it is fenced; then it
    initializes the id again."""

    def __init__(
        self, world: World, history: SimHistory, host: str, spec: TransactionalIdSpec
    ) -> None:
        super().__init__(world, host)
        self.spec = spec
        self._is_v2 = spec.is_v2
        self.history = history
        self._coordinators: dict[int, int] = {}
        self._producer = {"producer_id": -1, "producer_epoch": -1}
        self._sequences = [0] * spec.partitions
        self.spawn(self._run())

    async def transaction(self) -> None:
        """Run one transaction. Raises InstanceEnded."""
        raise AssertionError("a transactional client says what it does")

    async def _run(self) -> None:
        await self.until_done(self._create_topic)
        while not self.is_stopping:
            try:
                await self._init_producer_id()
                is_last = False
                while not (self.is_stopping or is_last):
                    await self.transaction()
                    await self.pause(10, 120 * self.spec.rivals)
                    # Like a job that ends and runs again.
                    is_last = self.spec.rivals > 1 and self.world.random.random() < 0.3
            except InstanceEnded as reason:
                self.world.counts["transactional producers that began anew"] += 1
                self.world.trace.note(self.host, f"begins anew: {reason}")
                if self.spec.rivals > 1:
                    await self.pause(200, 1200)
        await self._init_producer_id()  # this aborts a transaction that the last one left open
        self.is_done = True

    async def until_done(self, step: Callable[[], Awaitable[R]]) -> R:
        """Repeat `step` while a broker is unavailable or refuses; returns its result."""
        while True:
            try:
                return await step()
            except (NodeUnavailable, Refused):
                self._coordinators.clear()
                await self.pause(40, 120)

    async def pause_at_times(self) -> None:
        """Pause at times, so that a rival may overtake."""
        if self.spec.rivals > 1 and self.world.random.random() < 0.08:
            await self.pause(150, 900)

    async def _create_topic(self) -> None:
        topic = create_topics.CreatableTopic(
            name=self.spec.topic, num_partitions=self.spec.partitions, replication_factor=3
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

    async def _send_to_coordinator(self, key_type: int, request: Any, version: int) -> Any:
        """Send a request to the coordinator of the group (0) or of the transactional id (1)."""
        found = self._coordinators.get(key_type)
        if found is None:
            is_transaction = key_type == _TRANSACTION
            question = find_coordinator.FindCoordinatorRequest(
                key=self.spec.transactional_id if is_transaction else self.spec.group,
                key_type=key_type,
            )
            response = await self.node(self.any_broker()).request(question, 3)
            if response.error_code != _NONE:
                raise Refused("no coordinator")
            found = self._coordinators[key_type] = int(response.node_id)
        return await self.node(found).request(request, version)

    # the steps of a transaction

    async def _init_producer_id(self) -> None:
        timeout_ms = self.world.random.choice(_TIMEOUTS_MS)

        async def step() -> None:
            request = init_producer_id.InitProducerIdRequest(
                transactional_id=self.spec.transactional_id, transaction_timeout_ms=timeout_ms
            )
            response = await self._send_to_coordinator(_TRANSACTION, request, 4)
            if response.error_code != _NONE:
                raise Refused(ErrorCode(response.error_code).name)
            self._producer = {
                "producer_id": response.producer_id,
                "producer_epoch": response.producer_epoch,
            }

        await self.until_done(step)
        self._sequences = [0] * self.spec.partitions

    async def add_partitions(self) -> None:
        """Add all partitions of the topic to the transaction."""
        if self._is_v2:
            return
        await self.pause_at_times()
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic(
            name=self.spec.topic, partitions=list(range(self.spec.partitions))
        )
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.spec.transactional_id,
            v3_and_below_producer_id=self._producer["producer_id"],
            v3_and_below_producer_epoch=self._producer["producer_epoch"],
            v3_and_below_topics=[topic],
        )

        async def step() -> None:
            response = await self._send_to_coordinator(_TRANSACTION, request, 3)
            for row in response.results_by_topic_v3_and_below[0].results_by_partition:
                _check(row.partition_error_code)

        await self.until_done(step)

    async def produce(self, partition: int, values: list[int]) -> None:
        """Append one batch, with retries until it is acknowledged."""
        await self.pause_at_times()
        request = self.batch(partition, values)
        await self.until_done(lambda: self.send(partition, request))
        self._sequences[partition] += len(values)

    def batch(self, partition: int, values: list[int]) -> produce_messages.ProduceRequest:
        """The request that produces the values with the next sequence numbers."""
        records = [RecordData(None, b"%d" % value, 1_700_000_000_000) for value in values]
        batch = build_batch(
            records,
            **self._producer,
            base_sequence=self._sequences[partition],
            is_transactional=True,
        )
        row = produce_messages.PartitionProduceData(index=partition, records=batch)
        topic = produce_messages.TopicProduceData(name=self.spec.topic, partition_data=[row])
        return produce_messages.ProduceRequest(
            transactional_id=self.spec.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[topic],
        )

    async def send(self, partition: int, request: produce_messages.ProduceRequest) -> None:
        """Send a request to the partition's leader."""
        leader = await self.leader(self.spec.topic, partition)
        response = await self.node(leader).request(request, 12 if self._is_v2 else 11)
        [answer] = response.responses[0].partition_responses
        if answer.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            _check(answer.error_code)

    async def commit_offset(self, offset: int) -> None:
        """Commit the group's offset as part of the transaction."""
        await self.pause_at_times()
        name, group = self.spec.transactional_id, self.spec.group
        added = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=name, group_id=group, **self._producer
        )

        async def add() -> None:
            _check((await self._send_to_coordinator(_TRANSACTION, added, 3)).error_code)

        if not self._is_v2:
            await self.until_done(add)
            await self.pause_at_times()
        row = txn_offset_commit.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset
        )
        topic = txn_offset_commit.TxnOffsetCommitRequestTopic(
            name=self.spec.source, partitions=[row]
        )
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=name, group_id=group, **self._producer, topics=[topic]
        )

        async def commit() -> None:
            response = await self._send_to_coordinator(0, request, 5 if self._is_v2 else 3)
            _check(response.topics[0].partitions[0].error_code)

        await self.until_done(commit)

    async def end(self, commits: bool) -> None:
        """Commit or abort, with retries until it is decided."""
        await self.pause_at_times()
        request = end_txn.EndTxnRequest(
            transactional_id=self.spec.transactional_id, committed=commits, **self._producer
        )

        async def step() -> Any:
            response = await self._send_to_coordinator(
                _TRANSACTION, request, 5 if self._is_v2 else 3
            )
            _check(response.error_code)
            return response

        response = await self.until_done(step)
        if self._is_v2:
            self._producer = {
                "producer_id": response.producer_id,
                "producer_epoch": response.producer_epoch,
            }
            self._sequences = [0] * self.spec.partitions
            self.world.counts["producer epochs bumped by the end"] += 1

    async def committed_offset(self) -> int:
        """The group's offset, once it is stable; -1 for none."""

        async def step() -> int:
            topic = offset_fetch.OffsetFetchRequestTopic(
                name=self.spec.source, partition_indexes=[0]
            )
            request = offset_fetch.OffsetFetchRequest(
                group_id=self.spec.group, topics=[topic], require_stable=True
            )
            response = await self._send_to_coordinator(0, request, 7)
            if response.error_code != _NONE:
                raise Refused("not the coordinator")
            row = response.topics[0].partitions[0]
            if row.error_code != _NONE:
                raise Refused("no stable offset")
            if not self.leads(self._coordinators.get(0, -1), GROUP_METADATA_TOPIC):
                raise Refused("a coordinator that was replaced, and has not heard of it")
            return int(row.committed_offset)

        return await self.until_done(step)


class LedgerProducer(TransactionalClient):
    """Writes numbered transactions, and aborts some of them."""

    async def transaction(self) -> None:
        number = self.spec.next_number()
        record = self.history.transactions[number] = TransactionRecord(self.world.events.now_us)
        await self.add_partitions()
        random = self.world.random
        if self.spec.aborts_in_flight and random.random() < 0.12:
            await self._abort_in_flight(number)
        for partition in range(self.spec.partitions):
            await self.produce(partition, [number])
        await self.commit_offset(number + 1)
        if random.random() < _SLOW_COMMIT_PROBABILITY:
            await self.pause(900, 2500)  # the coordinator may abort it
        commits = random.random() < 0.7
        if commits:
            record.fate = Fate.UNKNOWN
        await self.end(commits)
        if commits:
            record.fate = Fate.COMMITTED
            self.world.counts["transactions committed"] += 1

    async def _abort_in_flight(self, number: int) -> None:
        """Abort while the batches are in flight, as a client does that shuts down. Late batches
        belong to no transaction, and must be refused (KIP-890)."""
        self.world.counts["transactions aborted in a hurry"] += 1
        for partition in range(self.spec.partitions):
            self.spawn(self._send_late(partition, self.batch(partition, [number])))
        await self.end(False)
        raise InstanceEnded("what became of the last batches is not known")

    async def _send_late(self, partition: int, request: produce_messages.ProduceRequest) -> None:
        await self.pause(1, 400)
        try:
            await self.send(partition, request)
        except (NodeUnavailable, Refused, InstanceEnded) as refused:
            self.world.trace.note(self.host, f"a late batch was refused: {refused}")


def ledger_specs(
    count: int, rivals: int, aborts_in_flight: bool, is_v2: bool
) -> list[TransactionalIdSpec]:
    """Specs of this many transactional ids, all of which write to the ledger."""
    return [
        TransactionalIdSpec(
            f"bookkeeper-{i}", i, LEDGER, PARTITIONS, LEDGER, rivals, aborts_in_flight, is_v2
        )
        for i in range(count)
    ]
