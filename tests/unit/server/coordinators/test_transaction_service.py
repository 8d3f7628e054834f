"""Transactions over real logs: an id gets its producer, a decision its markers, a commit its
offsets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    DescribeTransactions,
    EndTransaction,
    InitProducerId,
)
from kafkapy.server.requests.outcomes import Pending
from tests.harness.cores.server_parts import Parts

T0 = TopicPartition("t", 0)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = Parts(tmp_path)
    made.announce("t")
    made.lead("t")
    made.lead_transactions()
    return made


def ask(parts: Parts, request: Any) -> Any:
    coordinator = parts.transactions.coordinator
    method = {
        InitProducerId: coordinator.init_producer_id,
        AddPartitions: coordinator.add_partitions,
        EndTransaction: coordinator.end_transaction,
        DescribeTransactions: coordinator.describe_transactions,
    }[type(request)]
    outcome = parts.transactions.call(method, request, lambda result: result)
    return outcome.response if isinstance(outcome, Pending) else outcome


def state(parts: Parts) -> str:
    described = ask(parts, DescribeTransactions(["x"])).transactions[0]
    return str(described.state)


def begin(parts: Parts) -> Producer:
    result = ask(parts, InitProducerId("x", 60_000))
    assert result.error is ErrorCode.NONE
    return Producer(result.producer_id, result.producer_epoch)


def test_a_new_id_gets_the_next_producer_id(parts: Parts) -> None:
    assert begin(parts) == (4000, 0)
    assert begin(parts) == (4000, 1)


def test_without_producer_ids_the_producer_is_told_to_come_again(parts: Parts) -> None:
    async def none() -> int:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    parts.producer_ids.next_id = none  # type: ignore[method-assign]
    result = ask(parts, InitProducerId("x", 60_000))
    assert result.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_decision_is_marked_in_the_partitions_and_then_complete(parts: Parts) -> None:
    producer = begin(parts)
    ask(parts, AddPartitions("x", producer, [T0]))
    assert ask(parts, EndTransaction("x", producer, True)).error is ErrorCode.NONE
    log = parts.replicas.get("t", 0).log
    assert (state(parts), log.log_end_offset) == ("PrepareCommit", 0)
    parts.timers.fire()
    assert (state(parts), log.log_end_offset) == ("CompleteCommit", 1)


def test_a_restarted_broker_finishes_what_was_decided(parts: Parts, tmp_path: Path) -> None:
    producer = begin(parts)
    ask(parts, AddPartitions("x", producer, [T0]))
    ask(parts, EndTransaction("x", producer, False))
    parts.logs.shutdown(1)
    again = Parts(tmp_path)
    again.announce("t")
    again.lead("t")
    again.lead_transactions(leader_epoch=2, partition_epoch=2)
    assert state(again) == "PrepareAbort"
    again.timers.fire()
    assert state(again) == "CompleteAbort"


def test_a_decision_is_acted_on_only_when_the_loaded_log_is_replicated(
    parts: Parts, tmp_path: Path
) -> None:
    """Broker 2 is in sync and lacks the decision yet: it might lead next, and decide otherwise."""
    producer = begin(parts)
    ask(parts, AddPartitions("x", producer, [T0]))
    parts.lead_transactions(isr=(1, 2), leader_epoch=2, partition_epoch=2)
    assert ask(parts, EndTransaction("x", producer, True)) is None, "it waits for broker 2"
    parts.logs.shutdown(1)
    again = Parts(tmp_path)
    again.announce("t")
    again.lead("t")
    loaded = again.lead_transactions(isr=(1, 2), leader_epoch=3, partition_epoch=3)
    end = loaded.log.log_end_offset
    log = again.replicas.get("t", 0).log
    again.fetch_as_follower(loaded, end - 1)
    for _ in range(5):
        again.timers.fire()
    assert (state(again), log.log_end_offset) == ("PrepareCommit", 0)
    again.fetch_as_follower(loaded, end)
    again.timers.fire()
    assert log.log_end_offset == 1, "the marker"
