"""A request with many partitions is answered in slices."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkapy.server.api.handlers import add_partitions_to_txn
from kafkapy.server.requests.turns import ROWS_AT_ONCE, finished
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
    response = finished(work())
    rows = response.results_by_topic_v3_and_below
    if version == 4:
        [transaction] = response.results_by_transaction
        rows = transaction.topic_results
    assert [row.partition_index for row in rows[0].results_by_partition] == list(range(MANY))
    codes = {row.partition_error_code for row in rows[0].results_by_partition}
    assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
