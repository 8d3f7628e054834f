"""transaction: ids, partitions and ends, asked of the coordinator until it can answer."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.transaction import ProducerIdentity, Transaction, new_identity
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kafkapy.protocol.messages.end_txn import EndTxnResponse
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kafkapy.protocol.messages.init_producer_id import InitProducerIdResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def coordinator(node: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key="x", node_id=node, host="b", port=9000 + node)]
    )


def identity(code: ErrorCode = ErrorCode.NONE) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=2)


def added(*codes: ErrorCode) -> AddPartitionsToTxnResponse:
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=i, partition_error_code=code)
        for i, code in enumerate(codes)
    ]
    topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])


def begun(script: dict[ApiKey, Any] | None = None) -> tuple[ScriptedCluster, Transaction]:
    given = {
        ApiKey.FIND_COORDINATOR: coordinator(3),
        ApiKey.INIT_PRODUCER_ID: identity(),
        ApiKey.ADD_PARTITIONS_TO_TXN: added(ErrorCode.NONE),
        ApiKey.END_TXN: EndTxnResponse(),
    }
    scripted = ScriptedCluster(given | (script or {}))
    return scripted, Transaction(Cluster("b:1", connector=scripted.connect), "x", 5000)


def test_a_producer_without_a_transaction_gets_an_id_of_any_broker() -> None:
    scripted = ScriptedCluster(
        {ApiKey.INIT_PRODUCER_ID: [identity(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), identity()]}
    )
    cluster = Cluster("b:1", connector=scripted.connect)
    assert new_identity(cluster) == ProducerIdentity(7, 2)
    assert scripted.requests_of(ApiKey.INIT_PRODUCER_ID)[0].transactional_id is None


def test_one_coordinator_is_asked_for_everything_and_found_once() -> None:
    scripted, transaction = begun()
    transaction.add([FIRST])
    transaction.add([FIRST])
    transaction.end(committed=True)
    assert transaction.identity == (7, 2)
    (begin,) = scripted.requests_of(ApiKey.INIT_PRODUCER_ID)
    assert (begin.transactional_id, begin.transaction_timeout_ms) == ("x", 5000)
    (add,) = scripted.requests_of(ApiKey.ADD_PARTITIONS_TO_TXN)
    assert [(topic.name, topic.partitions) for topic in add.v3_and_below_topics] == [("t", [0])]
    (end,) = scripted.requests_of(ApiKey.END_TXN)
    assert (end.producer_id, end.producer_epoch, end.committed) == (7, 2, True)
    assert len(scripted.requests_of(ApiKey.FIND_COORDINATOR)) == 1
    assert {port for port, request, _ in scripted.requests if request == end} == {9003}


def test_a_transaction_without_partitions_is_over_as_it_is() -> None:
    scripted, transaction = begun()
    transaction.end(committed=True)
    assert scripted.requests_of(ApiKey.END_TXN) == []


def test_a_coordinator_that_moved_is_found_again_and_one_that_is_busy_is_not() -> None:
    moved = EndTxnResponse(error_code=ErrorCode.NOT_COORDINATOR)
    busy = added(ErrorCode.CONCURRENT_TRANSACTIONS)
    scripted, transaction = begun(
        {
            ApiKey.FIND_COORDINATOR: [coordinator(3), coordinator(4)],
            ApiKey.ADD_PARTITIONS_TO_TXN: [busy, busy, added(ErrorCode.NONE)],
            ApiKey.END_TXN: [moved, EndTxnResponse()],
        }
    )
    transaction.add([FIRST])
    assert len(scripted.requests_of(ApiKey.FIND_COORDINATOR)) == 1
    transaction.end(committed=False)
    ports = [port for port, request, _ in scripted.requests if request.API_KEY == ApiKey.END_TXN]
    assert ports == [9003, 9004]


def test_a_lost_connection_to_the_coordinator_is_tried_again() -> None:
    lost = ConnectionResetError(104, "reset")
    _, transaction = begun({ApiKey.ADD_PARTITIONS_TO_TXN: [lost, added(ErrorCode.NONE)]})
    transaction.add([FIRST])


def test_refusals_name_the_id_and_what_tells_most() -> None:
    with pytest.raises(ApiError, match="Transaction x: TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        begun({ApiKey.INIT_PRODUCER_ID: identity(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)})
    refused = added(ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    scripted, transaction = begun({ApiKey.ADD_PARTITIONS_TO_TXN: refused})
    with pytest.raises(ApiError, match="Transaction x: TOPIC_AUTHORIZATION_FAILED"):
        transaction.add([FIRST, SECOND])
    transaction.end(committed=True)
    assert scripted.requests_of(ApiKey.END_TXN) == []  # nothing takes part


def test_a_coordinator_that_is_never_ready_is_given_up() -> None:
    with pytest.raises(ApiError, match="Transaction x: COORDINATOR_LOAD_IN_PROGRESS"):
        begun({ApiKey.INIT_PRODUCER_ID: identity(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)})
