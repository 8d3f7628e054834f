"""DescribeTransactions: long transactional ids, and transactions with many partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import AddPartitions, InitProducerId
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.server.api.handlers import describe_transactions
from kafkapy.server.requests.turns import SLICE_UNITS, STEP_UNITS_MAX
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts


def test_long_ids_do_not_stop_other_clients(tmp_path: Path) -> None:
    """A request for 250 ids of 32 KB, whose hashes are slow, was one step of 5 s."""
    transactions = Parts(tmp_path).transactions
    ids = [str(number) * 30_000 for number in range(9)]
    request = DescribeTransactionsRequest(transactional_ids=ids)
    work: Any = describe_transactions.handle(transactions, request_context(65, 0), request)
    costs = list(work)
    assert len(costs) == len(ids)
    assert all(SLICE_UNITS < cost < STEP_UNITS_MAX for cost in costs)


def test_transactions_with_many_partitions_do_not_stop_other_clients(tmp_path: Path) -> None:
    """The partitions did not count as work: 500 transactions of 1,000 took 0.4 s in one turn."""
    parts = Parts(tmp_path, properties={"transaction.state.log.num.partitions": "1"})
    parts.lead("__transaction_state")
    transactions = parts.transactions
    transactions.call_now(
        transactions.coordinator.init_producer_id,
        InitProducerId("x", 1_000, new_producer_id=7),
        lambda result: result,
    )
    partitions = [TopicPartition("t", index) for index in range(1_000)]
    transactions.call_now(
        transactions.coordinator.add_partitions,
        AddPartitions("x", Producer(7, 0), partitions),
        lambda result: result,
    )
    request = DescribeTransactionsRequest(transactional_ids=["x"])
    work: Any = describe_transactions.handle(transactions, request_context(65, 0), request)
    [cost] = list(work)
    assert cost >= len(partitions)
