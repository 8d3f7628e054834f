"""Check that a log's leader epoch cache agrees with its batches and answers accordingly (KIP-101).

These answers determine where a follower's log and its leader's diverge. The batches are read by
code other than production's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from kafkapy.record.batch_header import iter_headers
from kafkapy.replication.partition import Partition
from kafkapy.storage.unified_log import UnifiedLog
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import RETAINED, TRIMMED, Cluster
from tests.simulation.node import Node

_READ_BYTES: Final = 1 << 20


@dataclass(slots=True)
class _Epochs:
    """The epochs of the batches of a log that were read so far: (epoch, first last offset)."""

    log: UnifiedLog
    truncation_count: int
    end: int
    found: list[tuple[int, int]] = field(default_factory=list)
    entries: list[tuple[int, int]] = field(default_factory=list)
    """Entries of the cache at the last comparison."""


class EpochCaches(Checker):
    """Reads new batches, and all batches again after a log was opened or cut."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._read: dict[tuple[int, PartitionKey], _Epochs] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        log = partition.log
        known = self._known(node, key, log)
        before = len(known.found)
        self._read_on(log, known)
        entries = log.epochs.entries()
        where = f"{key.topic_partition} on broker {node.broker_id}"
        if entries and entries[-1][1] > log.log_end_offset:
            self.violated(f"{where} ends at {log.log_end_offset}, and has the epochs {entries}")
        if entries == known.entries and len(known.found) == before:
            return
        known.entries = entries
        for earlier, later in pairwise(entries):
            if earlier[0] >= later[0] or earlier[1] >= later[1]:
                self.violated(f"{where} has the epochs {entries}, which do not ascend")
        start = log.log_start_offset
        if key.topic_partition.topic in (TRIMMED, RETAINED) and entries:
            start = max(start, entries[0][1])  # after a crash a log may begin earlier again
        for epoch, offset in known.found:
            if offset >= start and log.epochs.epoch_for_offset(offset) != epoch:
                self.violated(
                    f"{where}: offset {offset} was written in epoch {epoch}; the epochs are"
                    f" {entries}"
                )
        self._check_answers(where, log, entries)

    def _known(self, node: Node, key: PartitionKey, log: UnifiedLog) -> _Epochs:
        known = self._read.get((node.broker_id, key))
        truncations = log.local.truncation_count
        if known is None or known.log is not log or known.truncation_count != truncations:
            known = _Epochs(log, truncations, log.log_start_offset)
            self._read[node.broker_id, key] = known
        return known

    @staticmethod
    def _read_on(log: UnifiedLog, known: _Epochs) -> None:
        known.end = max(known.end, log.log_start_offset)
        while known.end < log.log_end_offset:
            before = known.end
            records = log.read(before, _READ_BYTES, log.log_end_offset, True).records
            for _, header in iter_headers(records):
                known.end = header.next_offset
                if not known.found or known.found[-1][0] != header.partition_leader_epoch:
                    known.found.append((header.partition_leader_epoch, header.last_offset))
            if known.end == before:
                return

    def _check_answers(self, where: str, log: UnifiedLog, entries: list[tuple[int, int]]) -> None:
        """Compare the answer for each epoch: the last epoch up to it, and the end of that one."""
        ends = [start for _, start in entries[1:]] + [log.log_end_offset]
        for asked in range(entries[-1][0] + 1 if entries else 0):
            rows = [(e, end) for (e, _), end in zip(entries, ends, strict=True) if e <= asked]
            wanted = rows[-1] if rows else (asked, entries[0][1])
            found = log.end_offset_for_epoch(asked)
            if found != wanted:
                self.violated(f"{where} answers {found} for epoch {asked}, not {wanted}: {entries}")
