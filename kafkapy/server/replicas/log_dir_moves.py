"""Moves logs from one directory of the broker to another (`kafka.server.ReplicaAlterLogDirs`).

Pieces are copied on the event loop, which serves requests between them. Only the loop's thread
appends, so a complete copy can replace the log at once.
"""

from __future__ import annotations

import logging

from kafkapy.common.errors import ApiError, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.server.replicas.replica_manager import ReplicaManager

logger = logging.getLogger("kafka.server.ReplicaAlterLogDirsThread")


class LogDirMoves:
    """The moves of one broker, within `replica.alter.log.dirs.io.max.bytes.per.second`."""

    def __init__(self, replicas: ReplicaManager, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock

    def step(self) -> bool:
        """Copy a piece of the next log. Returns whether more can be copied at once."""
        quota, now_ms = self._replicas.quotas.log_dirs, self._clock.monotonic_ms()
        copies = self._replicas.log_manager.future_logs.logs
        if not copies or quota.is_exceeded(now_ms):
            return False
        topic_partition = next(iter(copies))
        copies[topic_partition] = copies.pop(topic_partition)
        try:
            copied = self._replicas.log_manager.future_logs.copy(
                topic_partition, self._clock.time_ms()
            )
            quota.record(copied, now_ms)
            return copied > 0 or self._replace(topic_partition)
        except LogDirFailure as failure:
            self._replicas.log_dir_failed(failure)
            return True
        except ApiError as error:
            logger.warning("The move of %s goes on later: %s", topic_partition, error.message)
            return False

    def _replace(self, topic_partition: TopicPartition) -> bool:
        """Replace the log with its copy, if the copy is complete."""
        log = self._replicas.log_manager.future_logs.replace(topic_partition, self._clock.time_ms())
        if log is None:
            return False
        topic, index = topic_partition
        partition = self._replicas.partitions.get(topic, {}).get(index)
        if partition is not None:
            partition.log = log
            self._replicas.check_delayed_requests(partition)
        return True
