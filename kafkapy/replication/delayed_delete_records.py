"""A DeleteRecords that waits for the followers (`kafka.server.DelayedDeleteRecords`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkapy.common.errors import ErrorCode
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import DelayedOperation

INVALID_LOW_WATERMARK: Final = -1


class DeleteRecordsWait:
    """One partition that waits until the log of every live replica begins at `required_offset` or
    later."""

    __slots__ = ("error", "low_watermark", "partition", "required_offset", "waiting")

    def __init__(self, partition: Partition, required_offset: int) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.waiting = True
        self.error = ErrorCode.REQUEST_TIMED_OUT
        self.low_watermark = INVALID_LOW_WATERMARK

    def update_status(self) -> None:
        """Check again. Done when the low watermark has reached the offset, or another broker
        leads.
        """
        partition = self.partition
        if not partition.is_leader:
            self._done(ErrorCode.NOT_LEADER_OR_FOLLOWER, INVALID_LOW_WATERMARK)
            return
        self.low_watermark = partition.low_watermark
        if self.low_watermark >= self.required_offset:
            self._done(ErrorCode.NONE, self.low_watermark)

    def _done(self, error: ErrorCode, low_watermark: int) -> None:
        self.waiting = False
        self.error = error
        self.low_watermark = low_watermark


class DelayedDeleteRecords(DelayedOperation):
    """All partitions of one request. Answers when no partition waits any more."""

    __slots__ = ("_answer", "_waits")

    def __init__(
        self, deadline_ms: int, waits: list[DeleteRecordsWait], answer: Callable[[], None]
    ) -> None:
        super().__init__(deadline_ms)
        self._waits = waits
        self._answer = answer

    def ready(self) -> bool:
        for wait in self._waits:
            if wait.waiting:
                wait.update_status()
        return not any(wait.waiting for wait in self._waits)

    def on_complete(self) -> None:
        self._answer()
