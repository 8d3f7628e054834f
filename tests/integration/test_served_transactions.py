"""Every transactional API in every version it is served in, asked of a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.effects import Producer
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    find_coordinator,
    init_producer_id,
    list_transactions,
    offset_fetch,
    produce,
    request_class,
    txn_offset_commit,
    write_txn_markers,
)
from kafkapy.record.builder import build_batch
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.waiting import wait_until
from tests.harness.processes.wire import RECORDS, Wire
from tests.harness.protocol.served_versions import each_version

TOPIC = "transactional"
GROUP = "exactly"
_NAMES = (f"x{number}" for number in count())


@pytest.fixture(scope="module")
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    connection = Wire(broker)
    connection.create(TOPIC, 2)
    for key_type in (0, 1):

        def is_ready(key_type: int = key_type) -> bool:
            request = find_coordinator.FindCoordinatorRequest(
                key_type=key_type, coordinator_keys=[GROUP]
            )
            return bool(connection.ask(request, 6).coordinators[0].error_code == 0)

        wait_until(is_ready, "the coordinators")
    yield connection
    connection.close()


class Session:
    """One transactional producer."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.name = next(_NAMES)
        self.producer = self.init()

    def init(self) -> Producer:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=60_000
        )

        given: list[Producer] = []

        def is_free() -> bool:
            answer = self.wire.ask(request, 5)
            if answer.error_code == 0:
                given.append(Producer(answer.producer_id, answer.producer_epoch))
            return bool(given)

        wait_until(is_free, "the producer id")
        return given[0]

    def add(self, *partitions: int, topic: str = TOPIC, version: int = 3) -> list[int]:
        topics = [
            add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))
        ]
        transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
            transactional_id=self.name,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            topics=topics,
        )
        answer = self.wire.ask(
            add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.producer.producer_id,
                v3_and_below_producer_epoch=self.producer.producer_epoch,
                v3_and_below_topics=topics,
                transactions=[transaction],
            ),
            version,
        )
        results = (
            answer.results_by_topic_v3_and_below
            if version < 4
            else answer.results_by_transaction[0].topic_results
        )
        return [row.partition_error_code for row in results[0].results_by_partition]

    def batch(self, partition: int, sequence: int = 0) -> produce.PartitionProduceData:
        records = build_batch(
            RECORDS,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        return produce.PartitionProduceData(index=partition, records=records)

    def send(
        self, name: str | None, *batches: produce.PartitionProduceData, version: int = 11
    ) -> list[int]:
        request = produce.ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[produce.TopicProduceData(name=TOPIC, partition_data=list(batches))],
        )
        rows = self.wire.ask(request, version).responses[0].partition_responses
        return [int(row.error_code) for row in rows]

    def produce(self, partition: int, sequence: int = 0, version: int = 11) -> int:
        [code] = self.send(self.name, self.batch(partition, sequence), version=version)
        return code

    def end(self, commit: bool = True, version: int = 4) -> int:
        request = end_txn.EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            committed=commit,
        )
        return int(self.wire.ask(request, version).error_code)

    def describe(self) -> Any:
        request = describe_transactions.DescribeTransactionsRequest(transactional_ids=[self.name])
        return self.wire.ask(request, 0).transaction_states[0]

    def wait_for(self, state: str) -> None:
        wait_until(lambda: self.describe().transaction_state == state, state)


@each_version(ApiKey.INIT_PRODUCER_ID)
def test_init_producer_id(wire: Wire, version: int) -> None:
    def ask(producer: Producer) -> Any:
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=f"of-version-{version}",
            transaction_timeout_ms=60_000,
            **producer._asdict(),
        )
        return wire.ask(request, version)

    first, second = ask(Producer(-1, -1)), ask(Producer(-1, -1))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)
    if version >= 3:
        stranger = ask(Producer(first.producer_id + 1000, 0))
        fenced = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert stranger.error_code == fenced
        assert ask(Producer(first.producer_id, -1)).error_code == ErrorCode.INVALID_REQUEST


@each_version(ApiKey.ADD_PARTITIONS_TO_TXN)
def test_add_partitions_to_txn(wire: Wire, version: int) -> None:
    session = Session(wire)
    assert session.add(0, 1, version=version) == [0, 0]
    unknown = [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert session.add(0, 9, version=version) == unknown
    [topic] = session.describe().topics
    assert (topic.topic, topic.partitions) == (TOPIC, [0, 1])
    session.producer = Producer(session.producer.producer_id, 5)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert session.add(0, version=version) == [fenced]


@each_version(ApiKey.END_TXN)
@pytest.mark.parametrize("commit", [True, False])
def test_end_txn(wire: Wire, version: int, commit: bool) -> None:
    session = Session(wire)
    if commit or version < 5:  # with version 2 a producer may abort what it has not begun
        assert session.end(commit, version) == ErrorCode.INVALID_TXN_STATE
    session.add(0)
    assert session.produce(0) == 0
    assert session.end(commit, version) == 0
    session.wait_for("CompleteCommit" if commit else "CompleteAbort")
    session.producer = Producer(session.producer.producer_id, 5)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert session.end(commit, version) == fenced


@pytest.mark.parametrize("version", [9, 11])
def test_a_partition_outside_the_transaction_is_not_written_to(wire: Wire, version: int) -> None:
    session = Session(wire)
    session.add(0)
    refusal = ErrorCode.TRANSACTION_ABORTABLE if version >= 11 else ErrorCode.INVALID_TXN_STATE
    assert session.produce(1, version=version) == refusal
    assert session.produce(0, version=version) == 0


def test_a_request_is_of_one_producer_and_says_whose(wire: Wire) -> None:
    one, other = Session(wire), Session(wire)
    one.add(0, 1)
    assert one.send(None, one.batch(0)) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    mixed = one.send(one.name, one.batch(0), other.batch(1))
    assert mixed == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert one.send(one.name, one.batch(0), one.batch(1)) == [0, 0]


@each_version(ApiKey.TXN_OFFSET_COMMIT)
def test_offsets_in_a_transaction(wire: Wire, version: int) -> None:
    """From version 5 on the group is added to the transaction by its coordinator."""
    session = Session(wire)
    group = f"{GROUP}-{session.name}"
    producer = session.producer._asdict()
    commit = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=session.name,
        group_id=group,
        **producer,
        generation_id=-1,
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=TOPIC,
                topic_id=wire.topic_ids[TOPIC],
                partitions=[
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=7, committed_metadata="m"
                    ),
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        partition_index=9, committed_offset=7, committed_metadata="m"
                    ),
                ],
            )
        ],
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def codes() -> list[int]:
        [topic] = wire.ask(commit, version).topics
        return [row.error_code for row in topic.partitions]

    if version < 5:
        is_old = version < 4
        refusal = ErrorCode.INVALID_TXN_STATE if is_old else ErrorCode.TRANSACTION_ABORTABLE
        assert codes() == [refusal] * 2, "the group is not in the transaction"
        add = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=session.name, group_id=group, **producer
        )
        assert wire.ask(add, version).error_code == 0
    assert codes() == [0, unknown]
    assert session.end() == 0
    question = offset_fetch.OffsetFetchRequest(
        group_id=group,
        topics=[offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
        require_stable=True,
    )
    wait_until(
        lambda: wire.ask(question, 7).topics[0].partitions[0].committed_offset == 7, "the offset"
    )


@each_version(ApiKey.WRITE_TXN_MARKERS)
def test_write_txn_markers(wire: Wire, version: int) -> None:
    session = Session(wire)
    session.add(0)
    assert session.produce(0) == 0
    topic = write_txn_markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0, 9, 0])
    marker = write_txn_markers.WritableTxnMarker(
        **session.producer._asdict(), transaction_result=False, topics=[topic]
    )
    request = write_txn_markers.WriteTxnMarkersRequest(markers=[marker])
    [result] = wire.ask(request, version).markers
    assert result.producer_id == session.producer.producer_id
    codes = [row.error_code for row in result.topics[0].partitions]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
    assert session.produce(0, sequence=3) == 0, "the coordinator's transaction is still open"


def test_describe_producers(wire: Wire) -> None:
    session = Session(wire)
    session.add(1)
    session.produce(1)
    topic = describe_producers.TopicRequest(name=TOPIC, partition_indexes=[1, 9])
    request = describe_producers.DescribeProducersRequest(topics=[topic])
    [answer] = wire.ask(request, 0).topics
    here, missing = answer.partitions
    found = {p.producer_id: p for p in here.active_producers}[session.producer.producer_id]
    assert (found.producer_epoch, found.last_sequence) == (0, 2)
    assert found.current_txn_start_offset >= 0
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_describe_transactions(wire: Wire) -> None:
    session = Session(wire)
    session.add(0)
    described = session.describe()
    assert (described.transaction_state, described.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert described.producer_id == session.producer.producer_id
    session.name = "nobody"
    assert session.describe().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@each_version(ApiKey.LIST_TRANSACTIONS)
def test_list_transactions(wire: Wire, version: int) -> None:
    session = Session(wire)
    session.add(0)

    def listed(**filters: Any) -> list[str]:
        request = list_transactions.ListTransactionsRequest(**filters)
        answer = wire.ask(request, version)
        assert (answer.error_code, answer.unknown_state_filters) == (0, [])
        return [row.transactional_id for row in answer.transaction_states]

    assert session.name in listed()
    assert session.name in listed(state_filters=["Ongoing"])
    assert session.name not in listed(state_filters=["Empty"])
    assert listed(producer_id_filters=[session.producer.producer_id]) == [session.name]
    if version >= 1:
        assert session.name not in listed(duration_filter=60_000)


@pytest.mark.parametrize("key", [ApiKey.END_TXN, ApiKey.ADD_OFFSETS_TO_TXN])
def test_an_empty_transactional_id_is_refused(wire: Wire, key: ApiKey) -> None:
    request = request_class(key)(transactional_id="", producer_id=1, producer_epoch=0)
    assert wire.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST
