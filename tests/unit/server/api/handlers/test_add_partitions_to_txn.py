"""AddPartitionsToTxn: partitions that a client may not add, and many partitions."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.coordinator.transactions.messages import PartitionsResult
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkapy.server.api.handlers import add_partitions_to_txn
from kafkapy.server.requests.turns import ROWS_AT_ONCE, SLICE_UNITS, STEP_UNITS_MAX, run_now
from tests.harness.cores.request_contexts import request_context

MANY = 10_000


@pytest.mark.parametrize("version", [3, 4])
def test_the_rows_of_a_response_are_made_a_few_at_a_time(version: int) -> None:
    """46,490 rows were one step of 46 ms."""
    topics = [AddPartitionsToTxnTopic(name="missing", partitions=list(range(MANY)))]
    request = AddPartitionsToTxnRequest(
        v3_and_below_topics=topics, transactions=[AddPartitionsToTxnTransaction(topics=topics)]
    )
    context = request_context(24, version)
    metadata = Mock()
    metadata.image.partition.return_value = None

    def work() -> Any:
        return add_partitions_to_txn.handle(Mock(), metadata, context, request)

    assert max(work()) <= 2 * ROWS_AT_ONCE
    response = run_now(work())
    rows = response.results_by_topic_v3_and_below
    if version == 4:
        [transaction] = response.results_by_transaction
        rows = transaction.topic_results
    assert [row.partition_index for row in rows[0].results_by_partition] == list(range(MANY))
    codes = {row.partition_error_code for row in rows[0].results_by_partition}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_long_ids_do_not_stop_other_clients() -> None:
    """Their hashes are slow: 250 ids of 32 KB were one step of seconds."""
    ids = [str(number) * 30_000 for number in range(9)]
    request = AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction(transactional_id=each) for each in ids]
    )
    work: Any = add_partitions_to_txn.handle(Mock(), Mock(), request_context(24, 4), request)
    costs = list(work)
    assert sum(SLICE_UNITS < cost < STEP_UNITS_MAX for cost in costs) == len(ids)


@pytest.mark.parametrize("version", [0, 3])
def test_a_client_adds_no_partition_of_an_internal_topic(version: int) -> None:
    """The marker of its transaction would be appended there. Nor does Kafka allow it, with or
    without an authorizer (`KafkaApis.handleAddPartitionsToTxnRequest`).
    """
    transactions = Mock()
    request = AddPartitionsToTxnRequest(
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name="t", partitions=[0]),
            AddPartitionsToTxnTopic(name=TRANSACTION_STATE_TOPIC, partitions=[0, 99]),
            AddPartitionsToTxnTopic(name=GROUP_METADATA_TOPIC, partitions=[0]),
        ]
    )
    context = request_context(24, version)
    response: Any = run_now(add_partitions_to_txn.handle(transactions, Mock(), context, request))
    rows = {
        (topic.name, row.partition_index): row.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for row in topic.results_by_partition
    }
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert rows == {
        ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        (TRANSACTION_STATE_TOPIC, 0): refused,
        (TRANSACTION_STATE_TOPIC, 99): refused,
        (GROUP_METADATA_TOPIC, 0): refused,
    }
    assert not transactions.ask.called


def test_a_broker_adds_the_partition_of_a_group() -> None:
    """TxnOffsetCommit v5 is served so."""
    topics = [AddPartitionsToTxnTopic(name=GROUP_METADATA_TOPIC, partitions=[0])]
    request = AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction(topics=topics)])
    transactions = Mock(run_internal=lambda _, __, answered: answered(PartitionsResult()))
    response: Any = run_now(
        add_partitions_to_txn.handle(transactions, Mock(), request_context(24, 5), request)
    )
    [transaction] = response.results_by_transaction
    [topic] = transaction.topic_results
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.NONE
