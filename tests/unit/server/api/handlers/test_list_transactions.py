"""ListTransactions: many transactional ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkapy.coordinator.transactions.messages import InitProducerId
from kafkapy.protocol.messages.list_transactions import ListTransactionsRequest
from kafkapy.server.api.handlers import list_transactions
from kafkapy.server.requests.turns import STEP_UNITS_MAX, run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts

IDS = 600


def test_many_ids_do_not_stop_other_clients(tmp_path: Path) -> None:
    """A response with 100,000 ids was made in one step of 0.7 s."""
    parts = Parts(tmp_path, properties={"transaction.state.log.num.partitions": "1"})
    parts.lead("__transaction_state")
    transactions = parts.transactions
    for number in range(IDS):
        transactions.call_now(
            transactions.coordinator.init_producer_id,
            InitProducerId(f"id-{number}", 1_000, new_producer_id=number),
            lambda result: result,
        )

    def handle(request: ListTransactionsRequest) -> Any:
        return list_transactions.handle(transactions, request_context(66, 0), request)

    for request in (ListTransactionsRequest(), ListTransactionsRequest(state_filters=["Ongoing"])):
        costs = [*handle(request)]
        assert len(costs) >= 3
        assert sum(costs) >= IDS
        assert max(costs) < STEP_UNITS_MAX
    listed = run_now(handle(ListTransactionsRequest())).transaction_states
    assert [row.transactional_id for row in listed] == [f"id-{number}" for number in range(IDS)]
