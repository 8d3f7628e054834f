"""Transactions on the wire: who is asked, what comes back, brokers that have none."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafkapy.admin.transactions import (
    abort_transaction,
    describe_producers,
    describe_transaction,
    list_transactions,
    terminate_transaction,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.messages import describe_producers as producers
from kafkapy.protocol.messages import describe_transactions as described
from kafkapy.protocol.messages import list_transactions as listed
from kafkapy.protocol.messages import write_txn_markers as markers
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

T0 = TopicPartition("t", 0)
FOUND = FindCoordinatorResponse(coordinators=[Coordinator(key="x", node_id=1, host="b", port=9001)])


def scripted(script: dict[ApiKey, Any]) -> tuple[ScriptedCluster, Cluster]:
    topics = {"t": {0: (2, [1, 2], [1, 2])}}
    base = {
        ApiKey.METADATA: metadata(topics, brokers={1: 9001, 2: 9002}),
        ApiKey.FIND_COORDINATOR: FOUND,
    }
    made = ScriptedCluster({**base, **script})
    return made, Cluster("b:1", connector=made.connect)


def test_every_broker_is_asked_for_its_own() -> None:
    def answer(request: Any, port: int) -> listed.ListTransactionsResponse:
        state = listed.TransactionState(
            transactional_id=f"tx-{port}", producer_id=port, transaction_state="Ongoing"
        )
        return listed.ListTransactionsResponse(transaction_states=[state])

    script, cluster = scripted({ApiKey.LIST_TRANSACTIONS: answer})
    found = list_transactions(cluster, duration_ms=5)
    assert [(each.transactional_id, each.coordinator) for each in found] == [
        ("tx-9001", 1),
        ("tx-9002", 2),
    ]
    assert {r.duration_filter for r in script.requests_of(ApiKey.LIST_TRANSACTIONS)} == {5}


def test_ids_match_as_a_whole() -> None:
    states = [
        listed.TransactionState(transactional_id=name, producer_id=1, transaction_state="Empty")
        for name in ("pay-1", "repay-1", "pay-1-old")
    ]
    answer = listed.ListTransactionsResponse(transaction_states=states)
    _, cluster = scripted({ApiKey.METADATA: metadata(), ApiKey.LIST_TRANSACTIONS: answer})
    (found,) = list_transactions(cluster, id_pattern=re.compile("pay-[0-9]"))
    assert found.transactional_id == "pay-1"


def test_a_transactional_id_keeps_its_timeout_when_its_transaction_is_terminated() -> None:
    state = described.TransactionState(transaction_timeout_ms=7)
    answer = described.DescribeTransactionsResponse(transaction_states=[state])
    script, cluster = scripted(
        {ApiKey.DESCRIBE_TRANSACTIONS: answer, ApiKey.INIT_PRODUCER_ID: InitProducerIdResponse()}
    )
    terminate_transaction(cluster, "x")
    (request,) = script.requests_of(ApiKey.INIT_PRODUCER_ID)
    assert (request.transactional_id, request.transaction_timeout_ms) == ("x", 7)


def test_a_mistyped_transactional_id_is_not_created() -> None:
    """A request of Kafka's client creates it, and its tool ends with success."""
    state = described.TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    answer = described.DescribeTransactionsResponse(transaction_states=[state])
    script, cluster = scripted({ApiKey.DESCRIBE_TRANSACTIONS: answer})
    with pytest.raises(ApiError, match="the ID could not be found"):
        terminate_transaction(cluster, "x")
    assert script.requests_of(ApiKey.INIT_PRODUCER_ID) == []


def test_a_transaction_and_its_coordinator() -> None:
    state = described.TransactionState(
        transaction_state="Ongoing",
        transaction_start_time_ms=7,
        topics=[described.TopicData(topic="t", partitions=[0, 1])],
    )
    answer = described.DescribeTransactionsResponse(transaction_states=[state])
    found = describe_transaction(scripted({ApiKey.DESCRIBE_TRANSACTIONS: answer})[1], "x")
    assert (found.coordinator, found.start_ms) == (1, 7)
    assert found.partitions == (T0, TopicPartition("t", 1))


def test_an_unknown_transactional_id() -> None:
    state = described.TransactionState(error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    answer = described.DescribeTransactionsResponse(transaction_states=[state])
    with pytest.raises(ApiError, match="could not be found"):
        describe_transaction(scripted({ApiKey.DESCRIBE_TRANSACTIONS: answer})[1], "x")


def test_a_broker_without_transactions_is_not_asked_for_its_coordinator() -> None:
    script, cluster = scripted({})
    script.versions = {
        key: (each.first, each.last)
        for key, each in API_VERSIONS.items()
        if key is not ApiKey.DESCRIBE_TRANSACTIONS
    }
    with pytest.raises(ApiError) as refused:
        describe_transaction(cluster, "x")
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert script.requests_of(ApiKey.FIND_COORDINATOR) == []


def test_producers_are_the_leaders_unless_a_broker_is_named() -> None:
    states = [
        producers.ProducerState(producer_id=2, current_txn_start_offset=9),
        producers.ProducerState(producer_id=1),
    ]
    partition = producers.PartitionResponse(active_producers=states)
    answer = producers.DescribeProducersResponse(
        topics=[producers.TopicResponse(name="t", partitions=[partition])]
    )
    script, cluster = scripted({ApiKey.DESCRIBE_PRODUCERS: answer})
    found = describe_producers(cluster, T0)
    assert [(each.producer_id, each.start_offset) for each in found] == [(1, None), (2, 9)]
    describe_producers(cluster, T0, broker_id=1)
    asked = [p for p, r, _ in script.requests if r.API_KEY == ApiKey.DESCRIBE_PRODUCERS]
    assert asked == [9002, 9001]


def test_an_abort_is_a_marker_at_the_leader() -> None:
    def answer(request: Any, port: int) -> markers.WriteTxnMarkersResponse:
        code = ErrorCode.INVALID_PRODUCER_EPOCH if request.markers[0].producer_epoch else 0
        partition = markers.WritableTxnMarkerPartitionResult(error_code=code)
        topic = markers.WritableTxnMarkerTopicResult(name="t", partitions=[partition])
        return markers.WriteTxnMarkersResponse(
            markers=[markers.WritableTxnMarkerResult(producer_id=4, topics=[topic])]
        )

    script, cluster = scripted({ApiKey.WRITE_TXN_MARKERS: answer})
    abort_transaction(cluster, T0, 4, 0, -1)
    port, request, _ = script.requests[-1]
    (marker,) = request.markers
    assert (port, marker.transaction_result, marker.coordinator_epoch) == (9002, False, 0)
    with pytest.raises(ApiError):
        abort_transaction(cluster, T0, 4, 1, 3)


def test_a_leader_that_moved_is_found_again() -> None:
    leader = [2]

    def where(request: Any, port: int) -> Any:
        topics = {"t": {0: (leader[0], [1, 2], [1, 2])}}
        return metadata(topics, brokers={1: 9001, 2: 9002})(request, port)

    answered: list[int] = []

    def refuse_first(port: int) -> int:
        answered.append(port)
        leader[0] = 1
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if port == 9002 else ErrorCode.NONE

    def describe(request: Any, port: int) -> producers.DescribeProducersResponse:
        partition = producers.PartitionResponse(error_code=refuse_first(port))
        topic = producers.TopicResponse(name="t", partitions=[partition])
        return producers.DescribeProducersResponse(topics=[topic])

    def mark(request: Any, port: int) -> markers.WriteTxnMarkersResponse:
        partition = markers.WritableTxnMarkerPartitionResult(error_code=refuse_first(port))
        topic = markers.WritableTxnMarkerTopicResult(name="t", partitions=[partition])
        return markers.WriteTxnMarkersResponse(
            markers=[markers.WritableTxnMarkerResult(producer_id=4, topics=[topic])]
        )

    script, _ = scripted(
        {
            ApiKey.METADATA: where,
            ApiKey.DESCRIBE_PRODUCERS: describe,
            ApiKey.WRITE_TXN_MARKERS: mark,
        }
    )
    cluster = Cluster("b:1", {"retry.backoff.ms": "0"}, connector=script.connect)
    assert describe_producers(cluster, T0) == []
    cluster.invalidate_topics(["t"])
    leader[0] = 2
    abort_transaction(cluster, T0, 4, 0, 0)
    assert answered == [9002, 9001, 9002, 9001]
