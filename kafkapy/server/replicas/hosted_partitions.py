"""The partitions hosted here, and the requests that wait on them (`kafka.server.ReplicaManager`).

Produce and fetch find their partition here. One thread, the event loop's, calls all of this. What
an append, a follower's fetch or a failed disk changes, the purgatories are told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kafkapy.common.cluster_state import BrokerInfo
from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.awaited_followers import AwaitedFollowers
from kafkapy.replication.isr import IsrChange
from kafkapy.replication.partition import Partition
from kafkapy.replication.replication_quota import ReplicationQuotas
from kafkapy.server.replicas.isr_counts import IsrCounts
from kafkapy.server.replicas.timed_purgatory import CallLater, TimedPurgatory
from kafkapy.storage.log_append import AppendOrigin, LogAppendInfo
from kafkapy.storage.log_manager import LogManager

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.record.long_preparation import PreparedAhead

logger = logging.getLogger("kafka.server.ReplicaManager")


class HostedPartitions:
    """Hosts partitions; `replica_manager.ReplicaManager` adds the controller's commands.

    Fixed: broker id, log manager, clock. Shared with handlers: `partitions[topic][index]`, the
    purgatories, the replication quotas. The `on_*` tell the other parts: of leadership the
    coordinators, of a failed log directory the controller.
    """

    def __init__(
        self,
        broker_id: int,
        log_manager: LogManager,
        metadata: MetadataCache,
        clock: Clock,
        lag_max_ms: int,
        call_later: CallLater,
        quotas: ReplicationQuotas | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.log_manager = log_manager
        self.partitions: dict[str, dict[int, Partition]] = {}
        self.offline: set[TopicPartition] = set()
        self.isr_counts = IsrCounts()
        self.awaited_followers = AwaitedFollowers()
        self.produce_purgatory = TimedPurgatory("Produce", clock, call_later)
        self.fetch_purgatory = TimedPurgatory("Fetch", clock, call_later)
        self.delete_records_purgatory = TimedPurgatory("DeleteRecords", clock, call_later)
        self.quotas = quotas or ReplicationQuotas(broker_id)
        self.on_leadership: Callable[[Partition, bool], None] = lambda partition, leads: None
        self.on_follow: Callable[[Partition], None] = lambda partition: None
        self.on_unfollow: Callable[[TopicPartition], None] = lambda topic_partition: None
        self.on_isr_change: Callable[[Partition, IsrChange], None] = lambda partition, change: None
        self.on_deleted: Callable[[TopicPartition], None] = lambda topic_partition: None
        self.on_log_dir_failure: Callable[[], None] = lambda: None
        self.on_fatal: Callable[[LogDirFailure], None] = lambda failure: None
        self._metadata = metadata
        self._clock = clock
        self._lag_max_ms = lag_max_ms

    def all_partitions(self) -> Iterator[Partition]:
        for by_index in self.partitions.values():
            yield from by_index.values()

    @property
    def live_brokers(self) -> Mapping[int, BrokerInfo]:
        """The brokers that the controller says are live."""
        return self._metadata.image.brokers

    def is_live(self, broker_id: int) -> bool:
        return broker_id in self._metadata.image.brokers

    def get(self, topic: str, index: int) -> Partition:
        """The hosted partition.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER when another broker has it, else
                UNKNOWN_TOPIC_OR_PARTITION.
        """
        by_index = self.partitions.get(topic)
        partition = by_index.get(index) if by_index is not None else None
        if partition is not None:
            return partition
        if (topic, index) in self.offline:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"Partition {topic}-{index} is in an offline log directory",
            )
        if self._metadata.image.partition(topic, index) is not None:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def append(
        self,
        topic: str,
        index: int,
        records: memoryview | bytes,
        acks: int,
        produce_version: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        briefly: bool = False,
        ahead: PreparedAhead | None = None,
    ) -> tuple[LogAppendInfo, Partition]:
        """Append to a partition led here and wake what waits on it.

        Raises:
            ApiError: the refusal for this partition's row.
        """
        by_index = self.partitions.get(topic)
        partition = by_index.get(index) if by_index is not None else None
        if partition is None:
            partition = self.get(topic, index)
        log = partition.log
        high_watermark = log.high_watermark
        try:
            clock = self._clock
            info = partition.append_as_leader(
                records, acks, clock.time_ms(), clock.monotonic_ms(), produce_version, origin,
                briefly, ahead,
            )  # fmt: skip
        except LogDirFailure as failure:
            self.log_dir_failed(failure)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure)) from failure
        self._advanced(partition, log.high_watermark > high_watermark)
        return info, partition

    def _advanced(self, partition: Partition, committed: bool) -> None:
        """Records were appended or replicated. Produces wait for what is `committed` only: with
        many of them in flight, looking at each for every one of them would cost their square."""
        if committed and self.produce_purgatory.size:
            self.produce_purgatory.check(partition.topic_partition)
        if self.fetch_purgatory.size:
            self.fetch_purgatory.check(partition.topic_partition)
        if self.delete_records_purgatory.size:
            self.delete_records_purgatory.check(partition.topic_partition)

    def checked(self, partition: Partition) -> None:
        """The partition's end, high watermark or leadership may have changed: look who waited."""
        self._advanced(partition, committed=True)

    def recheck(self, partition: Partition) -> None:
        """A config that bounds the high watermark changed."""
        if partition.is_leader:
            partition.maybe_increment_high_watermark(self._clock.monotonic_ms())
        self.checked(partition)

    # in-sync replicas

    def followed(self, partition: Partition, broker_id: int, high_watermark: int) -> None:
        """A follower fetched: the high watermark, `high_watermark` before, may have moved, the
        follower may have caught up."""
        if partition.log.high_watermark > high_watermark:
            self.checked(partition)
        elif self.delete_records_purgatory.size:
            # Its log start offset may have moved. A fetch waits for no follower's position: with
            # thousands of partitions in a session, looking for each would cost their square.
            self.delete_records_purgatory.check(partition.topic_partition)
        if broker_id not in partition.isr:
            change = partition.propose_expansion(broker_id)
            if change is not None:
                logger.info(
                    "[Partition %s broker=%d] Expanding ISR to %s",
                    partition.topic_partition,
                    self.broker_id,
                    ",".join(map(str, change.isr)),
                )
                self.on_isr_change(partition, change)

    def shrink_isrs(self) -> None:
        """Propose to leave out the members that lag for too long; every half lag time."""
        now_ms = self._clock.monotonic_ms()
        for partition in list(self.all_partitions()):
            change = partition.propose_shrinking(now_ms)
            if change is not None:
                logger.info(
                    "[Partition %s broker=%d] Shrinking ISR from %s to %s",
                    partition.topic_partition,
                    self.broker_id,
                    ",".join(map(str, sorted(partition.isr))),
                    ",".join(map(str, change.isr)),
                )
                self.on_isr_change(partition, change)

    # log directories

    def log_dir_failed(self, failure: LogDirFailure) -> None:
        """Take every partition of a failed directory offline; the others go on.

        `on_fatal` is told when that was the last directory, else the controller is.
        """
        if failure.log_dir not in self.log_manager.live_log_dirs:
            return
        logger.error("Stopping serving logs in dir %s: %s", failure.log_dir, failure)
        gone = [p for p in self.all_partitions() if p.log.log_dir == failure.log_dir]
        for partition in gone:
            topic, index = partition.topic_partition
            self.offline.add(partition.topic_partition)
            del self.partitions[topic][index]
        led = [partition for partition in gone if partition.take_out_of_service()]
        logger.warning(
            "Broker %d stopped serving %d partitions in failed log directory %s",
            self.broker_id,
            len(gone),
            failure.log_dir,
        )
        try:
            self.log_manager.fail_log_dir(failure.log_dir, failure)
        except LogDirFailure as last:
            self.on_fatal(last)
        else:
            self.on_log_dir_failure()
        # Only now: whoever hears of it must find the directory gone.
        for partition in gone:
            self.on_unfollow(partition.topic_partition)
        for partition in led:
            self.on_leadership(partition, False)
        for partition in gone:
            self.checked(partition)

    def stop(self) -> None:
        """Answer what waits: the broker stops."""
        self.produce_purgatory.complete_all()
        self.fetch_purgatory.complete_all()
        self.delete_records_purgatory.complete_all()
