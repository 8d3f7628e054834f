"""The errors of commits whose partition the transaction's coordinator does not confirm."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkapy.server.api.handlers import txn_offset_commit
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.request_contexts import request_context

Errors = dict[TopicPartition, ErrorCode]


class Groups:
    """A group service with one partition."""

    coordinator = SimpleNamespace(partition_for=lambda group_id: 0)


class Verifier:
    """Refuses the partition of every group."""

    def writes_to_verify(self, writes: list[Any]) -> list[Any]:
        return writes

    def verify(self, _: str, writes: list[Any], on_verified: Callable[[Errors], None]) -> None:
        on_verified({write.partition: ErrorCode.TRANSACTION_ABORTABLE for write in writes})


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_producer_that_can_abort_its_transaction_does_not_get_a_fatal_error(
    version: int, error: ErrorCode
) -> None:
    """Kafka 3.9: `GroupCoordinator.handleTxnCommitOffsets`."""
    row = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = TxnOffsetCommitRequestTopic(name="t", partitions=[row])
    request = TxnOffsetCommitRequest(transactional_id="x", group_id="g", topics=[topic])
    groups: Any = Groups()
    verifier: Any = Verifier()
    context = request_context(28, version)
    answer: Any = run_now(
        txn_offset_commit.handle(groups, MetadataCache(), verifier, context, request)
    )
    assert answer.topics[0].partitions[0].error_code == error
