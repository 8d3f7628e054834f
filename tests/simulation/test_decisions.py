"""The checker of decisions objects to a marker whose decision may still be lost, and reads all
markers that a leader wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.record.control import (
    ControlRecordType,
    EndTransactionMarker,
    end_transaction_marker,
)
from tests.simulation.checkers.base import PartitionKey, Violation
from tests.simulation.checkers.decisions import Decisions, _Decision

KEY = PartitionKey("id", TopicPartition(TRANSACTION_STATE_TOPIC, 0))
LEDGER = TopicPartition("ledger", 0)
LEDGER_KEY = PartitionKey("id", LEDGER)
PRODUCER_ID = 1001


def checker_with_decision(offset: int) -> Decisions:
    """The committed end is 85. A replaced leader commits late what the next one has, up to 88."""
    cluster: Any = SimpleNamespace(
        committed_ends={KEY: 85},
        required_ends={KEY: 88},
        history=SimpleNamespace(losses={}),
        world=SimpleNamespace(network=SimpleNamespace(late_data_us={})),
        plan=SimpleNamespace(transactional_ids=["books"]),
    )
    checker = Decisions(cluster)
    checker._key = KEY
    decision = _Decision(offset, 1, False, frozenset({LEDGER}), has_own_epoch=True, seen_us=0)
    checker._decisions[PRODUCER_ID] = [decision]
    return checker


def marks(checker: Decisions) -> None:
    """The coordinator of epoch 1 writes an abort marker."""
    marker = EndTransactionMarker(ControlRecordType.ABORT, 1)
    checker._markers.append(("b1", LEDGER, PRODUCER_ID, marker))
    checker.on_step(SimpleNamespace())  # type: ignore[arg-type]


@pytest.mark.parametrize("offset", [84, 87])
def test_a_marker_follows_a_decision_that_no_leader_loses(offset: int) -> None:
    checker = checker_with_decision(offset)
    marks(checker)
    assert checker._decisions[PRODUCER_ID][0].marked == {LEDGER}


def test_a_marker_of_a_decision_that_may_be_lost_is_objected_to() -> None:
    with pytest.raises(Violation, match="decision is at offset 88: committed is what is below 88"):
        marks(checker_with_decision(88))


def test_a_marker_counts_whose_leader_lost_its_log_directory_in_the_same_step() -> None:
    checker = checker_with_decision(84)
    marker = end_transaction_marker(
        commit=False, producer_id=PRODUCER_ID, producer_epoch=0, coordinator_epoch=1, timestamp=0
    )
    read = SimpleNamespace(records=bytes(marker))
    log = SimpleNamespace(log_start_offset=0, log_end_offset=0, read=lambda *_: read)
    partition: Any = SimpleNamespace(is_leader=True, leader_epoch=0, log=log)
    node: Any = SimpleNamespace(broker_id=1, host="b1")
    checker.on_partition(node, LEDGER_KEY, partition)
    log.log_end_offset, partition.is_leader = 1, False
    checker.on_stopped_serving(node, LEDGER_KEY, partition)
    checker.on_step(node)
    assert checker._decisions[PRODUCER_ID][0].marked == {LEDGER}
