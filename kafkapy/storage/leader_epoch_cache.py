"""The start offset of each leader epoch (Kafka's `LeaderEpochFileCache`, KIP-101)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final

UNDEFINED_EPOCH: Final = -1
UNDEFINED_OFFSET: Final = -1

EpochEntries = list[tuple[int, int]]


class LeaderEpochCache:
    """(epoch, start offset) pairs, both ascending.

    `write` stores the entries in `leader-epoch-checkpoint`, durably.
    `latest` is the last epoch, -1 when there is none.
    """

    __slots__ = ("_epochs", "_starts", "_write", "latest")

    def __init__(self, entries: EpochEntries, write: Callable[[EpochEntries], None]) -> None:
        self._write = write
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        self.latest = self._epochs[-1] if entries else UNDEFINED_EPOCH

    def entries(self) -> EpochEntries:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, leader_epoch: int, start_offset: int) -> bool:
        """Record that `leader_epoch` begins at `start_offset`, durably. Returns False if it is
        known.

        Entries that contradict it are dropped, because their records no longer exist.
        """
        if leader_epoch < 0:
            return False
        if self._epochs and self.latest == leader_epoch and self._starts[-1] <= start_offset:
            return False
        kept = [(e, s) for e, s in self.entries() if e < leader_epoch and s < start_offset]
        self._save([*kept, (leader_epoch, start_offset)])
        return True

    def end_offset_for(self, leader_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetsForLeaderEpoch; (-1, -1) if undefined.

        The epoch is the greatest known one up to `leader_epoch`, the offset is its end.
        """
        if leader_epoch == UNDEFINED_EPOCH or leader_epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if leader_epoch == self.latest:
            return leader_epoch, log_end_offset
        higher = bisect_right(self._epochs, leader_epoch)
        if higher == 0:
            return leader_epoch, self._starts[0]
        return self._epochs[higher - 1], self._starts[higher]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch of `offset`; -1 if it is older than all known epochs."""
        i = bisect_right(self._starts, offset)
        return self._epochs[i - 1] if i else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or after `end_offset`."""
        if self._starts and self._starts[-1] >= end_offset >= 0:
            self._save([(e, s) for e, s in self.entries() if s < end_offset])

    def truncate_from_start(self, start_offset: int) -> None:
        """Replace the epochs that begin before `start_offset` with the latest of them, beginning
        there.
        """
        n = bisect_right(self._starts, start_offset)
        if n and (n > 1 or self._starts[0] != start_offset):
            self._save([(self._epochs[n - 1], start_offset), *self.entries()[n:]])

    def clear(self) -> None:
        """Remove every epoch, because the log is emptied, or has batches without epochs."""
        if self._epochs:
            self._save([])

    def _save(self, entries: EpochEntries) -> None:
        """Write the entries to disk, then use them. If the write fails, they do not count."""
        self._write(entries)
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        self.latest = self._epochs[-1] if entries else UNDEFINED_EPOCH
