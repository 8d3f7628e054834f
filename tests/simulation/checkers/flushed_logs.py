"""Check that everything below a recovery point is on the disk: recovery does not read it again."""

from __future__ import annotations

from kafkapy.replication.partition import Partition
from kafkapy.storage import log_names
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.unified_log import UnifiedLog
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import Cluster
from tests.simulation.node import Node


class FlushedLogs(Checker):
    """Inspects the disk after a recovery point moved or a log was cut: the segments below it, and
    the checkpoint that would remain after a power cut."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._known: dict[tuple[int, PartitionKey], tuple[UnifiedLog, int, int]] = {}

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        log, where = partition.log, (node.broker_id, key)
        now = log, log.recovery_point, log.local.truncation_count
        if self._known.get(where) == now:
            return
        self._known[where] = now
        self._check_flushed(node, log)
        self._check_checkpoint(node, log)

    def _check_flushed(self, node: Node, log: UnifiedLog) -> None:
        point = log.recovery_point
        if point > log.log_end_offset:
            self.violated(
                f"{log.topic_partition} of broker {node.broker_id} ends at {log.log_end_offset},"
                f" and is flushed up to {point}"
            )
        for segment in log.segments:
            if segment.base_offset >= point:
                return
            path = segment.records.path
            if node.disk.first_unsynced(path) < _position(segment, point):
                self.violated(
                    f"broker {node.broker_id} says that {log.topic_partition} is flushed up to"
                    f" {point}; a power cut takes some of {path}"
                )

    def _check_checkpoint(self, node: Node, log: UnifiedLog) -> None:
        path = f"{log.log_dir}/{log_names.RECOVERY_POINT_CHECKPOINT}"
        topic, partition = log.topic_partition
        for row in node.disk.durable_content(path).decode().splitlines()[2:]:
            name, index, point = row.split()
            if (name, int(index)) == (topic, partition) and int(point) > log.recovery_point:
                self.violated(
                    f"the checkpoint of broker {node.broker_id} says that {log.topic_partition} is"
                    f" flushed up to {point}, and it is up to {log.recovery_point}"
                )


def _position(segment: LogSegment, offset: int) -> int:
    """The end of the batches below `offset`."""
    found = segment.records.find(offset, 0)
    return segment.size if found is None else found[0]
