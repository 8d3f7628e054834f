"""Applies operations to one partition of a broker; each operation has an outcome to compare."""

from __future__ import annotations

from typing import Any, Final

from dev.differential.batches import NO_PRODUCER, encode, encode_old, next_offset, observed
from dev.differential.difference import Outcome
from dev.differential.operations import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    TRANSACTIONAL,
    AddPartition,
    DeleteRecords,
    DescribeProducers,
    EndTransaction,
    EpochEnd,
    Fetch,
    InitProducer,
    ListOffsets,
    Operation,
    Produce,
    ProduceOld,
    ReadAll,
)
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import (
    add_partitions_to_txn,
    delete_records,
    describe_producers,
    describe_transactions,
    end_txn,
    fetch,
    init_producer_id,
    list_offsets,
    offset_for_leader_epoch,
)
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.wire import Wire, produce_request

_NO_TIMESTAMP: Final = -1
_ALL_BYTES: Final = 1 << 20
_PAUSE_S: Final = 0.002
_TRANSACTION_TIMEOUT_MS: Final = 900_000
_RETRIABLE: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""Temporary errors. The operation is repeated, because they last longer on one broker than on
another."""


class Partition:
    """A partition, and the producers that write to it."""

    def __init__(self, wire: Wire, topic: str, index: int, now_ms: int, name: str) -> None:
        """`name` makes the transactional ids of the partition unique."""
        self._wire = wire
        self._topic = topic
        self._index = index
        self._now_ms = now_ms
        self._name = name
        self._producers: dict[int, tuple[int, int]] = {}
        self._next_sequence: dict[int, int] = {}
        self._labels: dict[int, str] = {-1: "none"}
        self.has_refused = False

    def reconnect(self, wire: Wire) -> None:
        """Continue over another connection, after a restart."""
        self._wire = wire

    def label(self, producer_id: int) -> str:
        """The label of a producer id: its producer, and the number of the id."""
        return self._labels.get(producer_id, "unknown")

    def apply(self, operation: Operation) -> Outcome:
        """Apply an operation, again after a transient error. Returns its outcome."""
        outcomes: list[Outcome] = []

        def is_final() -> bool:
            outcomes[:] = [self._apply_once(operation)]
            return outcomes[0][0] not in _RETRIABLE

        wait_until(is_final, f"an outcome of {operation}", poll_interval_s=_PAUSE_S)
        return outcomes[0]

    def _apply_once(self, operation: Operation) -> Outcome:
        match operation:
            case Produce():
                return self._produce(operation)
            case ProduceOld():
                return self._produced(encode_old(operation, self._now_ms), operation.version, -1)
            case InitProducer():
                return self._init(operation)
            case AddPartition():
                return self._add(operation)
            case EndTransaction():
                return self._end_transaction(operation)
            case DeleteRecords():
                return self._delete(operation)
            case ListOffsets():
                return self._list_offsets(operation)
            case Fetch():
                return self._fetch(operation)
            case ReadAll():
                return self._read_all(operation)
            case DescribeProducers():
                return self._describe()
            case EpochEnd():
                return self._epoch_end(operation)

    def _produce(self, operation: Produce) -> Outcome:
        number = operation.producer
        producer = self._producer(number)
        sequence = 0 if number is None else self._next_sequence.get(number, 0)
        data = b"".join(
            encode(batch, self._now_ms, producer, sequence) for batch in operation.batches
        )
        # As in clients, only a request with transactional batches has a transactional id.
        is_transactional = any(batch.is_transactional for batch in operation.batches)
        name = self._id_of(number) if is_transactional and number in TRANSACTIONAL else None
        outcome = self._produced(data, operation.version, operation.acks, name)
        if outcome[0] == ErrorCode.NONE and number is not None and len(operation.batches) == 1:
            [batch] = operation.batches
            self._next_sequence[number] = sequence + batch.sequence_shift + len(batch.rows)
        return outcome

    def _produced(
        self, data: bytes, version: int, acks: int, transactional_id: str | None = None
    ) -> Outcome:
        request = produce_request(self._topic, data, acks, self._index)
        request.transactional_id = transactional_id
        [topic] = self._wire.ask(request, version).responses
        [row] = topic.partition_responses
        errors = tuple(each.batch_index for each in row.record_errors)
        if row.error_code:
            self.has_refused = True
            is_named = row.error_code != ErrorCode.INVALID_TIMESTAMP
            return row.error_code, row.base_offset, errors if is_named else ()
        return row.error_code, row.base_offset, row.log_start_offset

    def _producer(self, number: int | None) -> tuple[int, int]:
        if number is None:
            return NO_PRODUCER
        if number not in self._producers:
            self.apply(InitProducer(number, keeps=False))
        return self._producers[number]

    def _id_of(self, number: int | None) -> str:
        return f"{self._name}-{number}"

    def _init(self, operation: InitProducer) -> Outcome:
        number = operation.producer
        known = self._producers.get(number, NO_PRODUCER) if operation.keeps else NO_PRODUCER
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self._id_of(number) if number in TRANSACTIONAL else None,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            producer_id=known[0],
            producer_epoch=known[1],
        )
        found = self._wire.ask(request, 4)
        if found.error_code == ErrorCode.NONE:
            if found.producer_id not in self._labels:
                self._labels[found.producer_id] = f"{number}.{len(self._labels)}"
            self._producers[number] = (found.producer_id, found.producer_epoch)
            self._next_sequence[number] = 0
        return found.error_code, self.label(found.producer_id), found.producer_epoch

    def _add(self, operation: AddPartition) -> Outcome:
        producer_id, epoch = self._producer(operation.producer)
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id_of(operation.producer),
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=max(0, epoch + operation.epoch_shift),
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(
                    name=self._topic, partitions=[self._index]
                )
            ],
        )
        [topic] = self._wire.ask(request, 3).results_by_topic_v3_and_below
        [row] = topic.results_by_partition
        return (row.partition_error_code,)

    def _end_transaction(self, operation: EndTransaction) -> Outcome:
        producer_id, epoch = self._producer(operation.producer)
        request = end_txn.EndTxnRequest(
            transactional_id=self._id_of(operation.producer),
            producer_id=producer_id,
            producer_epoch=max(0, epoch + operation.epoch_shift),
            committed=operation.is_commit,
        )
        found = self._wire.ask(request, 3)
        return found.error_code, self._settled(operation.producer)

    def _settled(self, number: int) -> str:
        """The state of a transaction once its markers are written."""
        request = describe_transactions.DescribeTransactionsRequest(
            transactional_ids=[self._id_of(number)]
        )
        states: list[str] = []

        def is_settled() -> bool:
            [found] = self._wire.ask(request, 0).transaction_states
            states[:] = [found.transaction_state]
            return not states[0].startswith("Prepare")

        wait_until(is_settled, "the markers of a transaction", poll_interval_s=_PAUSE_S)
        return states[0]

    def _delete(self, operation: DeleteRecords) -> Outcome:
        offset = -1 if operation.per_mille < 0 else self._offset(operation.per_mille)
        row = delete_records.DeleteRecordsPartition(partition_index=self._index, offset=offset)
        topic = delete_records.DeleteRecordsTopic(name=self._topic, partitions=[row])
        request = delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)
        [found] = self._wire.ask(request, 2).topics[0].partitions
        return found.error_code, found.low_watermark

    def _offset(self, per_mille: int) -> int:
        end: int = self._list_offsets(ListOffsets(LATEST, 0, 7))[2]
        return end * per_mille // 1000 + (1 if per_mille > 1000 else 0)

    def _list_offsets(self, operation: ListOffsets) -> Outcome:
        is_named = operation.time in (LATEST, MAX_TIMESTAMP) or operation.time < 0
        row = list_offsets.ListOffsetsPartition(
            partition_index=self._index,
            timestamp=operation.time if is_named else self._now_ms - operation.time,
        )
        topic = list_offsets.ListOffsetsTopic(name=self._topic, partitions=[row])
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, isolation_level=operation.isolation_level, topics=[topic]
        )
        [found] = self._wire.ask(request, operation.version).topics[0].partitions
        # Only a control batch is newer than the run: the broker sets its time.
        newest = min(found.timestamp, self._now_ms + 1)
        if operation.time == MAX_TIMESTAMP and newest == _NO_TIMESTAMP:
            return found.error_code, newest
        return found.error_code, newest, found.offset, found.leader_epoch

    def _fetch(self, operation: Fetch) -> Outcome:
        offset = -1 if operation.per_mille < 0 else self._offset(operation.per_mille)
        level, max_bytes = operation.isolation_level, operation.max_bytes
        found = self._fetched(offset, level, max_bytes, operation.version)
        if found.error_code:
            return found.error_code, found.high_watermark, len(found.records or b"")
        is_bounded = max_bytes < _ALL_BYTES
        rows = observed(found.records, self.label)
        offsets = found.error_code, found.high_watermark, found.log_start_offset
        if is_bounded:
            # How many batches fit depends on the compressor.
            return *offsets, rows[:1]
        # A fetch ends with its segment, and Apache Kafka also rolls for batches that it refuses.
        _, _, aborted, more = self._read_on(found, level, operation.version)
        return *offsets, found.last_stable_offset, aborted, (*rows, *more)

    def _read_all(self, operation: ReadAll) -> Outcome:
        level = operation.isolation_level
        offset = self._list_offsets(ListOffsets(EARLIEST, level, 7))[2]
        found = self._fetched(offset, level, _ALL_BYTES, 12)
        rows = observed(found.records or b"", self.label)
        *head, more = self._read_on(found, level, 12)
        return *head, (*rows, *more)

    def _read_on(self, found: Any, level: int, version: int) -> Outcome:
        """Fetch the rest after one fetch. Returns the error, high watermark, aborted transactions
        and batches."""
        rows: list[Outcome] = []
        aborted = set(self._aborted(found))
        while found.records and not found.error_code:
            offset = next_offset(found.records)
            found = self._fetched(offset, level, _ALL_BYTES, version)
            aborted.update(self._aborted(found))
            rows += observed(found.records or b"", self.label)
        return found.error_code, found.high_watermark, sorted(aborted), rows

    def _fetched(self, offset: int, level: int, max_bytes: int, version: int) -> Any:
        row = fetch.FetchPartition(
            partition=self._index, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        request = fetch.FetchRequest(
            max_wait_ms=0,
            isolation_level=level,
            topics=[fetch.FetchTopic(topic=self._topic, partitions=[row])],
        )
        [found] = self._wire.ask(request, version).responses[0].partitions
        return found

    def _aborted(self, found: Any) -> tuple[tuple[str, int], ...]:
        """Aborted transactions below the last stable offset, sorted.

        Apache Kafka also lists later ones, in the order in which the transactions ended.
        """
        return tuple(
            sorted(
                (self.label(each.producer_id), each.first_offset)
                for each in found.aborted_transactions or ()
                if each.first_offset < found.last_stable_offset
            )
        )

    def _describe(self) -> Outcome:
        topic = describe_producers.TopicRequest(name=self._topic, partition_indexes=[self._index])
        request = describe_producers.DescribeProducersRequest(topics=[topic])
        [found] = self._wire.ask(request, 0).topics[0].partitions
        rows = sorted(
            (
                *(self.label(each.producer_id), each.producer_epoch, each.last_sequence),
                *(each.coordinator_epoch, each.current_txn_start_offset),
            )
            for each in found.active_producers
        )
        return found.error_code, tuple(rows)

    def _epoch_end(self, operation: EpochEnd) -> Outcome:
        row = offset_for_leader_epoch.OffsetForLeaderPartition(
            partition=self._index, leader_epoch=operation.leader_epoch
        )
        topic = offset_for_leader_epoch.OffsetForLeaderTopic(topic=self._topic, partitions=[row])
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(topics=[topic])
        [found] = self._wire.ask(request, 3).topics[0].partitions
        return found.error_code, found.leader_epoch, found.end_offset
