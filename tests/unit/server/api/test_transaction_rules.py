"""The rules of transactions, in front of a handler that writes down what it was asked."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_producers,
    describe_transactions,
    end_txn,
    list_transactions,
    txn_offset_commit,
    write_txn_markers,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.handlers import SERVED
from tests.harness.scripted.recording_handler import RecordingHandler

TOPIC, GROUP, CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
ID = ResourceKind.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
MINE, IN_GROUP = (ID, "mine", WRITE), (GROUP, "g", READ)
ID_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def added(transactional_id: str, *topics: str) -> Any:
    return add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_topics=[
            add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0])
            for name in topics
        ],
    )


@pytest.mark.parametrize(
    ("key", "request_of", "grants", "refusal"),
    [
        (ApiKey.END_TXN, end_txn.EndTxnRequest, (), ID_REFUSED),
        (ApiKey.END_TXN, end_txn.EndTxnRequest, (MINE,), None),
        (ApiKey.ADD_OFFSETS_TO_TXN, add_offsets_to_txn.AddOffsetsToTxnRequest, (), ID_REFUSED),
        (
            ApiKey.ADD_OFFSETS_TO_TXN,
            add_offsets_to_txn.AddOffsetsToTxnRequest,
            (MINE,),
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ),
        (
            ApiKey.ADD_OFFSETS_TO_TXN,
            add_offsets_to_txn.AddOffsetsToTxnRequest,
            (MINE, IN_GROUP),
            None,
        ),
    ],
)
def test_a_transaction_is_of_who_may_write_its_id(
    key: ApiKey, request_of: Any, grants: Any, refusal: ErrorCode | None
) -> None:
    handler = RecordingHandler(key, 3, *grants)
    request = request_of(transactional_id="mine")
    if key is ApiKey.ADD_OFFSETS_TO_TXN:
        request.group_id = "g"
    if refusal is None:
        assert handler.ask(request, "done") == "done"
        return
    with pytest.raises(ApiError) as error:
        handler.ask(request)
    assert error.value.code is refusal


def test_of_the_topics_of_a_transaction_all_are_added_or_none() -> None:
    handler = RecordingHandler(ApiKey.ADD_PARTITIONS_TO_TXN, 3, MINE, (TOPIC, "t", WRITE))
    assert handler.ask(added("mine", "t"), "done") == "done"
    rows = handler.ask(added("mine", "t", "other")).results_by_topic_v3_and_below
    assert {row.name: row.results_by_partition[0].partition_error_code for row in rows} == {
        "t": ErrorCode.OPERATION_NOT_ATTEMPTED,
        "other": TOPIC_REFUSED,
    }
    assert len(handler.requests) == 1
    with pytest.raises(ApiError) as error:
        handler.ask(added("others", "t"))
    assert error.value.code is ID_REFUSED


@pytest.mark.parametrize(
    ("key", "request_of", "operations"),
    [
        (
            ApiKey.ADD_PARTITIONS_TO_TXN,
            add_partitions_to_txn.AddPartitionsToTxnRequest,
            (Operation.CLUSTER_ACTION,),
        ),
        (
            ApiKey.WRITE_TXN_MARKERS,
            write_txn_markers.WriteTxnMarkersRequest,
            (Operation.CLUSTER_ACTION, Operation.ALTER),
        ),
    ],
)
def test_what_brokers_tell_each_other(
    key: ApiKey, request_of: Any, operations: tuple[Operation, ...]
) -> None:
    for operation in operations:
        handler = RecordingHandler(key, 4, (CLUSTER, "kafka-cluster", operation))
        assert handler.ask(request_of(), "done") == "done"
    with pytest.raises(ApiError) as error:
        RecordingHandler(key, 4, MINE).ask(request_of())
    assert error.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_refused_markers_have_their_rows() -> None:
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=7,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
    )
    request = write_txn_markers.WriteTxnMarkersRequest(markers=[marker])
    refusal = ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    [row] = SERVED[ApiKey.WRITE_TXN_MARKERS].refuse(request, refusal, 1).markers
    assert row.topics[0].partitions[0].error_code == refusal.code


def test_offsets_of_a_transaction_need_id_group_and_topics() -> None:
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id="mine",
        group_id="g",
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=name,
                partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0)],
            )
            for name in ("t", "other")
        ],
    )
    handler = RecordingHandler(ApiKey.TXN_OFFSET_COMMIT, 3, MINE, IN_GROUP, (TOPIC, "t", READ))
    answer = txn_offset_commit.TxnOffsetCommitResponse(topics=[])
    [row] = handler.ask(request, answer).topics
    assert (row.name, row.partitions[0].error_code) == ("other", TOPIC_REFUSED)
    for grants in ((), (MINE,)):
        with pytest.raises(ApiError):
            RecordingHandler(ApiKey.TXN_OFFSET_COMMIT, 3, *grants).ask(request)


def test_transactions_and_producers_are_told_to_who_may_see_them() -> None:
    handler = RecordingHandler(
        ApiKey.DESCRIBE_TRANSACTIONS, 0, (ID, "mine", DESCRIBE), (TOPIC, "t", DESCRIBE)
    )
    topics = [describe_transactions.TopicData(topic=name) for name in ("t", "other")]
    row = describe_transactions.TransactionState(transactional_id="mine", topics=topics)
    request = describe_transactions.DescribeTransactionsRequest(transactional_ids=["mine", "x"])
    answer = describe_transactions.DescribeTransactionsResponse(transaction_states=[row])
    mine, other = handler.ask(request, answer).transaction_states
    assert [each.topic for each in mine.topics] == ["t"]
    assert (other.transactional_id, other.error_code) == ("x", ID_REFUSED)
    handler = RecordingHandler(ApiKey.LIST_TRANSACTIONS, 1, (ID, "mine", DESCRIBE))
    listed = list_transactions.ListTransactionsResponse(
        transaction_states=[
            list_transactions.TransactionState(transactional_id=name) for name in ("mine", "x")
        ]
    )
    found = handler.ask(list_transactions.ListTransactionsRequest(), listed)
    assert [each.transactional_id for each in found.transaction_states] == ["mine"]
    handler = RecordingHandler(ApiKey.DESCRIBE_PRODUCERS, 0)
    asked = describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name="t", partition_indexes=[0])]
    )
    [topic] = handler.ask(asked).topics
    assert topic.partitions[0].error_code == TOPIC_REFUSED
