"""Check that compaction keeps the last record of each key on every replica, deletions included."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.records import iter_records
from kafkapy.replication.partition import Partition
from tests.harness.faults.anomalies import Outcome
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import TABLE
from tests.simulation.tables import row_of

_READ_BYTES: Final = 1 << 20


class _Rows(NamedTuple):
    """A log's records: the last one of each key (offset, value), and the offsets without a batch
    (start, end)."""

    last: dict[bytes, tuple[int, bytes | None]]
    gaps: list[tuple[int, int]]

    def is_missing(self, offset: int) -> bool:
        """Whether no batch has this offset. Compaction keeps the batch of a key's last record."""
        return any(start <= offset < end for start, end in self.gaps)


class Tables(Checker):
    """Compares each replica's log with the producer's last acknowledged record of each key."""

    def on_end(self) -> None:
        at = TopicPartition(TABLE, 0)
        wanted: dict[bytes, tuple[int, bytes | None]] = {}
        lost = set()
        for send in self.cluster.history.judged(TABLE).sends:
            key, value = row_of(send.value)
            known = wanted.get(key, (-1, None))
            if send.outcome is not Outcome.ACKED:
                lost.add(key)
            elif send.offset > known[0]:
                wanted[key] = send.offset, value
        # Compaction may have removed the previous record before a record was lost.
        wanted = {key: row for key, row in wanted.items() if key not in lost}
        assigned = self.cluster.assignment(at) or ()
        for node in self.world.nodes.values():
            for partition in node.partitions():
                if partition.topic_partition == at and node.broker_id in assigned:
                    self._compare(node.broker_id, _read(partition), wanted)

    def _compare(
        self,
        broker_id: int,
        rows: _Rows,
        wanted: dict[bytes, tuple[int, bytes | None]],
    ) -> None:
        self.world.counts["keys of compacted topics"] += len(rows.last)
        for key, (offset, value) in wanted.items():
            at, last = rows.last.get(key, (-1, None))
            if at < offset and self.cluster.may_have_gaps and rows.is_missing(offset):
                continue
            if at < offset or (at == offset and last != value):
                self.violated(
                    f"{TABLE} on broker {broker_id}: {key!r} was set to {value!r} at offset"
                    f" {offset}; the last record is {last!r} at offset {at}"
                )


def _read(partition: Partition) -> _Rows:
    log = partition.log
    rows = _Rows({}, [])
    position, end = log.log_start_offset, log.log_end_offset
    while position < end:
        records = log.read(position, _READ_BYTES, end, True).records
        for row in iter_records(records):
            rows.last[row.key or b""] = row.offset, row.value
        for _, header in iter_headers(records):
            rows.gaps.append((position, header.base_offset))
            position = header.next_offset
        if not records:  # the last segment is empty
            rows.gaps.append((position, end))
            break
    return rows
