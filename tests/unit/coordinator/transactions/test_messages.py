"""An answer for many partitions: one error for all, or each its own."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.transactions.messages import PartitionsResult
from tests.harness.cores.transaction_shell import T0, T1


def test_a_partition_has_its_own_error_or_that_of_all() -> None:
    result = PartitionsResult(
        ErrorCode.OPERATION_NOT_ATTEMPTED, {T0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    )
    assert result.error_for(T0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert result.error_for(T1) is ErrorCode.OPERATION_NOT_ATTEMPTED
