"""Both coordinators' shells: partitions of their own topic only, timers, and one answer each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC
from kafkapy.coordinator.transactions.messages import InitProducerId, ListTransactions
from kafkapy.server.coordinators.coordinator_service import AnswerToken
from kafkapy.server.requests.outcomes import Pending
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import partition_state


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


def test_a_partition_of_another_topic_is_nobodys(parts: Parts) -> None:
    parts.lead("t")
    transactions = parts.transactions
    answer = transactions.call(
        transactions.coordinator.list_transactions, ListTransactions(), lambda result: result
    )
    assert (answer.error, [*answer.transactions]) == (ErrorCode.NONE, [])
    assert init(parts).error is ErrorCode.NOT_COORDINATOR


def init(parts: Parts) -> Any:
    transactions = parts.transactions
    return transactions.call(
        transactions.coordinator.init_producer_id, InitProducerId("x", 1), lambda result: result
    )


def test_leadership_that_moves_away_takes_its_ids_along(parts: Parts) -> None:
    parts.lead_transactions(isr=(1, 2))
    waiting = init(parts)
    assert isinstance(waiting, Pending)
    assert not waiting.done
    row = partition_state(2, (1, 2), None, 9, 9, TRANSACTION_STATE_TOPIC)
    assert not any(parts.apply_leader_and_isr(row).partition_errors.values())
    assert waiting.response.error is ErrorCode.NOT_COORDINATOR
    assert init(parts).error is ErrorCode.NOT_COORDINATOR


def test_a_stopped_service_serves_nobody(parts: Parts) -> None:
    parts.lead_transactions()
    parts.transactions.stop()
    assert init(parts).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_token_is_the_response_made_of_the_result() -> None:
    token = AnswerToken(lambda result: f"response of {result}")
    token.answer(5)
    assert token.response == "response of 5"
