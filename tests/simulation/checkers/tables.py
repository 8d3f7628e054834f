"""Check that compaction keeps the last record of each key on every replica, deletions included."""

from __future__ import annotations

from typing import Final

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.records import iter_records
from kafkapy.replication.partition import Partition
from tests.harness.faults.anomalies import Outcome
from tests.simulation.checkers.base import Checker
from tests.simulation.cluster import TABLE
from tests.simulation.tables import row_of

_READ_BYTES: Final = 1 << 20


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
                    self._compare(node.broker_id, _last_rows(partition), wanted)

    def _compare(
        self,
        broker_id: int,
        found: dict[bytes, tuple[int, bytes | None]],
        wanted: dict[bytes, tuple[int, bytes | None]],
    ) -> None:
        self.world.counts["keys of compacted topics"] += len(found)
        for key, (offset, value) in wanted.items():
            at, last = found.get(key, (-1, None))
            if at < offset or (at == offset and last != value):
                self.violated(
                    f"{TABLE} on broker {broker_id}: {key!r} was set to {value!r} at offset"
                    f" {offset}; the last record is {last!r} at offset {at}"
                )


def _last_rows(partition: Partition) -> dict[bytes, tuple[int, bytes | None]]:
    """The offset and value of each key's last record."""
    log = partition.log
    found: dict[bytes, tuple[int, bytes | None]] = {}
    position = log.log_start_offset
    while position < log.log_end_offset:
        records = log.read(position, _READ_BYTES, log.log_end_offset, True).records
        for row in iter_records(records):
            found[row.key or b""] = row.offset, row.value
        position = max(header.next_offset for _, header in iter_headers(records))
    return found
