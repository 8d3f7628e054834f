"""An acks=all produce that waits for the high watermark (`kafka.server.DelayedProduce`)."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.errors import ErrorCode
from kafkapy.replication.partition import Partition
from kafkapy.replication.purgatory import DelayedOperation


class ProduceWait:
    """One appended partition that waits until its high watermark reaches `required_offset`."""

    __slots__ = ("become_follower_count", "error", "partition", "required_offset", "waiting")

    def __init__(self, partition: Partition, required_offset: int) -> None:
        self.partition = partition
        self.become_follower_count = partition.become_follower_count
        self.required_offset = required_offset
        self.waiting = True
        self.error = ErrorCode.REQUEST_TIMED_OUT

    def update_status(self) -> None:
        """Check again. Done when the records are replicated, or can no longer be."""
        partition = self.partition
        # The same leader keeps the records in a later epoch: only a follower may truncate them.
        if not partition.is_leader or partition.become_follower_count != self.become_follower_count:
            self._done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition.log.high_watermark >= self.required_offset:
            enough = len(partition.in_sync.maximal) >= partition.effective_min_isr
            self._done(ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def _done(self, error: ErrorCode) -> None:
        self.waiting = False
        self.error = error


class DelayedProduce(DelayedOperation):
    """All partitions of one produce request. Answers when no partition waits any more."""

    __slots__ = ("_answer", "waits")

    def __init__(
        self, deadline_ms: int, waits: list[ProduceWait], answer: Callable[[], None]
    ) -> None:
        super().__init__(deadline_ms)
        self.waits = waits
        self._answer = answer

    def ready(self) -> bool:
        ready = True
        for wait in self.waits:
            if wait.waiting:
                wait.update_status()
                ready = ready and not wait.waiting
        return ready

    def on_complete(self) -> None:
        self._answer()
