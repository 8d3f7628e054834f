"""Verification of transactional batches, and the errors that producers get if it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    EndTransaction,
    InitProducerId,
    TransactionEffects,
)
from kafkapy.coordinator.transactions.state import EPOCH_BUMP_VERSION
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.server.coordinators.transaction_verifier import PendingWrite, TransactionVerifier
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.storage.log_append import AppendOrigin
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import Parts
from tests.harness.scripted.scripted_node import (
    DISCONNECT,
    LIMIT_MS,
    RecordedItems,
    ScriptedNode,
    in_loop,
)
from tests.harness.storage.partitions import TOPIC_ID, partition_state

T0 = TopicPartition("t", 0)
WRITING = PendingWrite(T0, Producer(4000, 0))


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = Parts(tmp_path)
    made.announce("t", TRANSACTION_STATE_TOPIC)
    made.lead("t")
    made.lead_transactions()
    return made


def verify(parts: Parts, writing: PendingWrite = WRITING) -> dict[TopicPartition, ErrorCode]:
    found: list[dict[TopicPartition, ErrorCode]] = []
    parts.verifier.verify("x", [writing], found.append)
    return found[0]


def begin(parts: Parts, *partitions: TopicPartition) -> None:
    call, coordinator = parts.transactions.call, parts.transactions.coordinator
    call(coordinator.init_producer_id, InitProducerId("x", 60_000), lambda result: result)
    if partitions:
        request = AddPartitions("x", WRITING.producer, partitions)
        call(coordinator.add_partitions, request, lambda result: result)


def test_only_what_is_led_here_and_not_vouched_for_is_asked_about(parts: Parts) -> None:
    elsewhere = PendingWrite(TopicPartition("u", 0), WRITING.producer)
    assert parts.verifier.writes_to_verify([WRITING, elsewhere]) == [WRITING]
    begin(parts, T0)
    assert verify(parts) == {}
    assert parts.verifier.writes_to_verify([WRITING]) == []


def test_a_partition_outside_the_transaction_may_not_be_written_to(parts: Parts) -> None:
    begin(parts)
    assert verify(parts) == {T0: ErrorCode.TRANSACTION_ABORTABLE}
    assert parts.verifier.writes_to_verify([WRITING]) == [WRITING]


def test_a_fenced_producer_hears_that_its_epoch_is_old(parts: Parts) -> None:
    begin(parts)
    begin(parts, T0)
    assert verify(parts) == {T0: ErrorCode.INVALID_PRODUCER_EPOCH}


@pytest.mark.parametrize("wrong", [Producer(4000, 2), Producer(4001, 0)])
def test_a_batch_of_a_wrong_producer_leaves_nothing_behind(parts: Parts, wrong: Producer) -> None:
    """Neither memory for ids that a client makes up, nor a refusal of the right producer."""
    begin(parts, T0)
    assert verify(parts, PendingWrite(T0, wrong))
    verification = parts.replicas.partitions["t"][0].log.producers.verification
    assert verification.expire(NOW_MS, 0) == 0
    assert verify(parts) == {}
    verification.check(*WRITING.producer, 0)
    with pytest.raises(ApiError, match="not part of an ongoing transaction"):
        verification.check(*wrong, 0)


def test_without_coordinator_the_producer_is_told_to_try_again(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.lead("t")
    assert verify(parts) == {T0: ErrorCode.NOT_ENOUGH_REPLICAS}
    parts.announce(TRANSACTION_STATE_TOPIC, leader=-1)
    assert verify(parts) == {T0: ErrorCode.NOT_ENOUGH_REPLICAS}


def test_coordinators_do_not_move_ids_when_their_topic_grows(parts: Parts) -> None:
    begin(parts, T0)
    rows = [
        UpdateMetadataPartition(
            TRANSACTION_STATE_TOPIC, TOPIC_ID, index, partition_state(leader=2).state, (2,)
        )
        for index in range(1, 50)
    ]
    parts.metadata.apply(UpdateMetadataCommand(1, 1, 1, rows, []))
    assert verify(parts) == {}


def verified_by_another(
    tmp_path: Path, answer: Any, writing: PendingWrite = WRITING
) -> dict[TopicPartition, ErrorCode]:
    """The errors that a producer gets when broker 2 coordinates and sends this answer."""
    parts = Parts(tmp_path)
    parts.lead("t")
    parts.transactions.coordinator.set_num_partitions(1)
    heard: list[dict[TopicPartition, ErrorCode]] = []

    async def scenario() -> None:
        async with ScriptedNode(answer) as node:
            row = UpdateMetadataPartition(
                TRANSACTION_STATE_TOPIC, TOPIC_ID, 0, partition_state(leader=2).state, (2,)
            )
            brokers = [BrokerInfo(2, (Endpoint("I", "127.0.0.1", node.port),))]
            parts.metadata.apply(UpdateMetadataCommand(1, 1, 1, [row], brokers))
            nodes = NodeClients(parts.metadata, "I", "1", request_timeout_ms=LIMIT_MS)
            verifier = TransactionVerifier(
                1, parts.metadata, parts.replicas, parts.transactions, nodes, parts.clock,
                parts.timers.call_later,
            )  # fmt: skip
            seen = RecordedItems()
            verifier.verify("x", [writing], seen.add)
            heard.extend(await seen.at_least(1))
            verifier.close()

    in_loop(scenario)
    return heard[0]


@pytest.mark.parametrize(
    ("code", "heard"),
    [
        (ErrorCode.NONE, {}),
        (ErrorCode.TRANSACTION_ABORTABLE, {T0: ErrorCode.TRANSACTION_ABORTABLE}),
        (ErrorCode.PRODUCER_FENCED, {T0: ErrorCode.INVALID_PRODUCER_EPOCH}),
        (ErrorCode.NOT_COORDINATOR, {T0: ErrorCode.NOT_ENOUGH_REPLICAS}),
        (ErrorCode.CONCURRENT_TRANSACTIONS, {T0: ErrorCode.NOT_ENOUGH_REPLICAS}),
    ],
)
def test_another_broker_is_asked_to_verify_not_to_add(
    tmp_path: Path, code: ErrorCode, heard: dict[TopicPartition, ErrorCode]
) -> None:
    def answer(request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnResponse:
        (transaction,) = request.transactions
        assert (version, transaction.verify_only) == (4, True)
        assert (transaction.transactional_id, transaction.producer_id) == ("x", 4000)
        row = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
        topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[row])
        result = AddPartitionsToTxnResult(transactional_id="x", topic_results=[topic])
        return AddPartitionsToTxnResponse(results_by_transaction=[result])

    assert verified_by_another(tmp_path, answer) == heard


ADDING = WRITING._replace(sequence=5, adds=True)


def test_with_version_2_the_partition_is_added(parts: Parts) -> None:
    begin(parts)
    assert parts.verifier.writes_to_verify([ADDING]) == [ADDING]
    assert verify(parts, ADDING) == {}
    assert parts.verifier.writes_to_verify([ADDING]) == []
    assert verify(parts) == {}, "it is part of the transaction"


def test_what_the_metadata_does_not_have_yet_is_not_added(tmp_path: Path) -> None:
    """LeaderAndIsr comes before UpdateMetadata. A transaction that ends in between would take the
    partition for deleted, give it no marker, and stay open there."""
    parts = Parts(tmp_path)
    parts.announce(TRANSACTION_STATE_TOPIC)
    log = parts.lead("t").log
    parts.lead_transactions()
    begin(parts)
    errors = verify(parts, ADDING)
    end = EndTransaction("x", WRITING.producer, True, EPOCH_BUMP_VERSION)
    if not errors:
        batch = build_batch(
            [RecordData(None, b"v", 1)], producer_id=4000, producer_epoch=0, base_sequence=0,
            is_transactional=True,
        )  # fmt: skip
        parts.replicas.append("t", 0, batch, -1, 12, AppendOrigin.CLIENT)
        parts.transactions.call(parts.transactions.coordinator.end_transaction, end, lambda r: r)
        for _ in range(5):
            parts.timers.fire()
    assert log.last_stable_offset == log.high_watermark, "the transaction is open for ever"
    assert errors == {T0: ErrorCode.NOT_ENOUGH_REPLICAS}
    parts.announce("t")
    assert verify(parts, ADDING) == {}


def test_a_transaction_with_an_epoch_of_its_own_begins_with_sequence_0(parts: Parts) -> None:
    begin(parts)
    verify(parts, ADDING)
    verification = parts.replicas.get("t", 0).log.producers.verification
    with pytest.raises(ApiError, match="begins with 0"):
        verification.check(*ADDING.producer, 5)


def test_a_partition_is_added_once_the_previous_transaction_is_completed(parts: Parts) -> None:
    begin(parts, T0)
    end = EndTransaction("x", WRITING.producer, True, EPOCH_BUMP_VERSION)
    parts.transactions.call(parts.transactions.coordinator.end_transaction, end, lambda each: each)
    following = ADDING._replace(producer=Producer(4000, 1))
    heard: list[dict[TopicPartition, ErrorCode]] = []
    parts.verifier.verify("x", [following], heard.append)
    assert heard == [], "the markers are not written yet"
    parts.timers.fire()
    parts.timers.fire()
    assert heard == [{}]
    assert parts.verifier.writes_to_verify([following]) == [], (
        "the marker was that of the previous one"
    )


def test_a_partition_is_not_tried_to_be_added_for_long(parts: Parts) -> None:
    begin(parts, T0)
    parts.transactions.coordinator.markers_written = (  # type: ignore[method-assign]
        lambda *_: TransactionEffects()
    )
    end = EndTransaction("x", WRITING.producer, True, EPOCH_BUMP_VERSION)
    parts.transactions.call(parts.transactions.coordinator.end_transaction, end, lambda each: each)
    following = ADDING._replace(producer=Producer(4000, 1))
    heard: list[dict[TopicPartition, ErrorCode]] = []
    parts.verifier.verify("x", [following], heard.append)
    for _ in range(6):
        parts.clock.now_ms += 20
        parts.timers.fire()
    assert heard == [{T0: ErrorCode.NOT_ENOUGH_REPLICAS}]


def test_another_broker_is_asked_to_add(tmp_path: Path) -> None:
    def answer(request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnResponse:
        (transaction,) = request.transactions
        assert (version, transaction.verify_only) == (4, False)
        row = AddPartitionsToTxnPartitionResult(partition_index=0)
        topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[row])
        result = AddPartitionsToTxnResult(transactional_id="x", topic_results=[topic])
        return AddPartitionsToTxnResponse(results_by_transaction=[result])

    assert verified_by_another(tmp_path, answer, ADDING) == {}


def test_a_coordinator_that_is_gone_is_to_be_asked_again(tmp_path: Path) -> None:
    heard = verified_by_another(tmp_path, lambda request, version: DISCONNECT)
    assert heard == {T0: ErrorCode.NOT_ENOUGH_REPLICAS}
