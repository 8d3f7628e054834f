"""DescribeTransactions: a state, no such id, or a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.transaction_states import transaction_state
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kafkapy.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster

FOUND = FindCoordinatorResponse(coordinators=[Coordinator(key="x", node_id=3, host="b", port=9003)])


def scripted(code: ErrorCode, state: str = "") -> ScriptedCluster:
    answer = TransactionState(error_code=code, transactional_id="x", transaction_state=state)
    described = DescribeTransactionsResponse(transaction_states=[answer])
    return ScriptedCluster(
        {ApiKey.FIND_COORDINATOR: FOUND, ApiKey.DESCRIBE_TRANSACTIONS: described}
    )


def test_a_state_is_asked_of_the_transactions_coordinator() -> None:
    cluster = scripted(ErrorCode.NONE, "CompleteCommit")
    assert transaction_state(Cluster("b:1", connector=cluster.connect), "x") == "CompleteCommit"
    (found,) = cluster.requests_of(ApiKey.FIND_COORDINATOR)
    assert found.key_type == 1
    assert cluster.requests[-1][0] == 9003


def test_an_unknown_id_has_no_state() -> None:
    cluster = scripted(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    assert transaction_state(Cluster("b:1", connector=cluster.connect), "x") is None


def test_a_refusal_is_raised_and_a_coordinator_that_loads_is_asked_again() -> None:
    refused = scripted(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="Transaction x: TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        transaction_state(Cluster("b:1", connector=refused.connect), "x")
    loading = scripted(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    with pytest.raises(ApiError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        transaction_state(Cluster("b:1", connector=loading.connect), "x")
    assert len(loading.requests_of(ApiKey.DESCRIBE_TRANSACTIONS)) > 1


def test_a_task_waits_for_a_broker_that_restarts_before_it_writes() -> None:
    """Without the state, a task with `exactlyOnce` fails."""
    cluster = scripted(ErrorCode.NONE, "CompleteCommit")
    is_up = iter([True, False, True, True])

    def connect(host: str, port: int, security: Any, timeout_s: float) -> Any:
        cluster.refuse = set() if next(is_up) else {port}
        return cluster.connect(host, port, security, timeout_s)

    kept = Cluster("b:1", connector=connect)
    kept.channel().close()  # the broker stops
    assert transaction_state(kept, "x") == "CompleteCommit"


def test_a_task_waits_for_another_coordinator_when_its_own_hangs() -> None:
    cluster = scripted(ErrorCode.NONE, "CompleteCommit")
    described = cluster.script[ApiKey.DESCRIBE_TRANSACTIONS]
    cluster.script[ApiKey.DESCRIBE_TRANSACTIONS] = [TimeoutError(), described]
    assert transaction_state(Cluster("b:1", connector=cluster.connect), "x") == "CompleteCommit"


def test_a_broker_without_transactions_is_not_asked_for_a_coordinator() -> None:
    versions = {ApiKey.API_VERSIONS: (0, 3), ApiKey.FIND_COORDINATOR: (0, 4)}
    cluster = ScriptedCluster({}, versions)
    with pytest.raises(ApiError, match="does not support DESCRIBE_TRANSACTIONS"):
        transaction_state(Cluster("b:1", connector=cluster.connect), "x")
    assert cluster.requests_of(ApiKey.FIND_COORDINATOR) == []
