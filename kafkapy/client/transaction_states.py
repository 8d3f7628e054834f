"""Outcomes of transactions, from their coordinator (DescribeTransactions, KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkapy.client.coordinators import TRANSACTION_KEY_TYPE, find_coordinator
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.describe_transactions import DescribeTransactionsRequest

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

COMPLETE_COMMIT: Final = "CompleteCommit"
PREPARE_COMMIT: Final = "PrepareCommit"


def transaction_state(cluster: Cluster, transactional_id: str) -> str | None:
    """The state under Kafka's name; None if the coordinator does not have the id.

    Retries while the coordinator moves or loads, until the API timeout.

    Raises:
        ApiError: UNSUPPORTED_VERSION, at once, from brokers without transactions; or the
          coordinator's error, such as TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
    """
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

    def describe() -> str | None:
        cluster.channel().version_for(request)  # brokers without it have no transactions
        coordinator = find_coordinator(cluster, transactional_id, TRANSACTION_KEY_TYPE)
        response = cluster.request(request, broker_id=coordinator)
        (found,) = response.transaction_states
        code = ErrorCode(found.error_code)
        if code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        if code is not ErrorCode.NONE:
            raise ApiError(code, f"Transaction {transactional_id}: {code.name}")
        return str(found.transaction_state)

    state: str | None = cluster.retry(describe, is_repeatable=True)
    return state
