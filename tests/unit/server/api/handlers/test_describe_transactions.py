"""DescribeTransactions: long transactional ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
