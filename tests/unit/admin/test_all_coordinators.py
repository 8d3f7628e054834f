"""Questions to every coordinator, some of which load."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.admin.groups import list_groups
from kafkapy.admin.share_groups import list_share_groups
from kafkapy.admin.transactions import list_transactions
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from kafkapy.protocol.messages.list_transactions import (
    ListTransactionsResponse,
    TransactionState,
)
from tests.harness.scripted.scripted_groups import group_cluster

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def cluster_with(*answers: Any) -> Cluster:
    left = list(answers)
    kind = type(answers[0]).__name__
    name = {"ListGroupsResponse": "LIST_GROUPS"}.get(kind, "LIST_TRANSACTIONS")
    scripted = group_cluster(**{name: lambda request, port: left.pop(0)})
    return Cluster("b:1", {"retry.backoff.ms": "0"}, connector=scripted.connect)


@pytest.mark.parametrize("code", [LOADING, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_one_that_loads_is_asked_again(code: ErrorCode) -> None:
    group = ListedGroup(group_id="g", protocol_type="consumer", group_state="Empty")
    answers = (ListGroupsResponse(error_code=code), ListGroupsResponse(groups=[group]))
    for listed in (list_groups, list_share_groups):
        assert [each.group_id for each in listed(cluster_with(*answers))] == ["g"]
    state = TransactionState(transactional_id="x", producer_id=1, transaction_state="Ongoing")
    done = ListTransactionsResponse(transaction_states=[state])
    found = list_transactions(cluster_with(ListTransactionsResponse(error_code=code), done))
    assert [each.transactional_id for each in found] == ["x"]


def test_one_that_hangs_is_asked_again() -> None:
    answers = iter([TimeoutError(), ListGroupsResponse()])
    scripted = group_cluster(LIST_GROUPS=lambda request, port: next(answers))
    assert list_groups(Cluster("b:1", connector=scripted.connect)) == []


def test_one_that_refuses_is_not() -> None:
    refused = ListGroupsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError, match="Cluster authorization failed"):
        list_groups(cluster_with(refused))
