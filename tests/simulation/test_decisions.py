"""The checker of decisions objects to a marker whose decision may still be lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.record.control import ControlRecordType, EndTransactionMarker
from tests.simulation.checkers.base import PartitionKey, Violation
from tests.simulation.checkers.decisions import Decisions, _Decision

KEY = PartitionKey("id", TopicPartition(TRANSACTION_STATE_TOPIC, 0))
LEDGER = TopicPartition("ledger", 0)
PRODUCER_ID = 1001


def checker_with_decision(offset: int) -> Decisions:
    """The committed end is 85. A replaced leader commits late what the next one has, up to 88."""
    cluster: Any = SimpleNamespace(
        committed_ends={KEY: 85},
        required_ends={KEY: 88},
        history=SimpleNamespace(losses={}),
        world=SimpleNamespace(network=SimpleNamespace(late_data_us={})),
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
