"""A transaction's offsets are not lost because `__consumer_offsets` is new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
)
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    FetchOffsets,
    OffsetToCommit,
)
from kafkapy.coordinator.transactions.messages import EndTransaction, InitProducerId
from kafkapy.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkapy.server.api.handlers import add_offsets_to_txn
from kafkapy.server.coordinators.transaction_verifier import PendingWrite
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run

T0, OFFSETS = TopicPartition("t", 0), TopicPartition(GROUP_METADATA_TOPIC, 0)
PRODUCER = Producer(4000, 0)


class FakeCreator:
    """Writes down what is to be created."""

    def __init__(self) -> None:
        self.wanted: list[str] = []

    async def create(self, names: list[str], _wait_ms: int) -> dict[str, ErrorCode]:
        self.wanted += names
        return {}


def add(parts: Parts, creator: FakeCreator) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id="x", group_id="g", producer_id=4000, producer_epoch=0
    )
    context = request_context(25, 3)
    outcome: Any = add_offsets_to_txn.handle(
        parts.transactions, parts.groups, parts.metadata, creator, context, request
    )
    if hasattr(outcome, "send"):
        outcome = run(outcome)
    code: int = outcome.error_code
    return code


def test_a_topic_of_offsets_that_is_not_in_the_metadata_is_created_first(tmp_path: Path) -> None:
    """The group's coordinator may be ready before this broker hears of the topic. A transaction
    that ends in between would take its partition for deleted: the offsets would be pending for
    ever."""
    parts, creator = Parts(tmp_path), FakeCreator()
    parts.announce("t", TRANSACTION_STATE_TOPIC)
    parts.lead_transactions()
    parts.coordinate()
    call, coordinator = parts.transactions.call, parts.transactions.coordinator
    call(coordinator.init_producer_id, InitProducerId("x", 60_000), lambda each: each)
    code = add(parts, creator)
    if code:
        assert (code, creator.wanted) == (
            ErrorCode.COORDINATOR_NOT_AVAILABLE, [GROUP_METADATA_TOPIC],
        )  # fmt: skip
        parts.announce(GROUP_METADATA_TOPIC)
        assert add(parts, creator) == 0
    commit = CommitOffsets("g", {T0: OffsetToCommit(7, -1, "", -1)}, producer=PRODUCER)
    groups = parts.groups.coordinator
    parts.verifier.verify("x", [PendingWrite(OFFSETS, PRODUCER)], lambda errors: None)
    parts.groups.call(groups.commit_offsets, commit, lambda each: each)
    end = EndTransaction("x", PRODUCER, True)
    call(coordinator.end_transaction, end, lambda each: each)
    for _ in range(5):
        parts.timers.fire()
    fetch = FetchOffsets("g", [T0], require_stable=True)
    found: Any = parts.groups.call_now(groups.fetch_offsets, fetch, lambda each: each)
    assert found.offsets[T0].offset == 7
