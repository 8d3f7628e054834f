"""One replica of one partition on this broker: leader or follower (`kafka.cluster.Partition`).

Produce and fetch pass through here: is this the leader, is the epoch right, are enough replicas in
sync; then the log does the work. Takes `now_ms`, touches nothing but its log.
"""

from __future__ import annotations

from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.long_preparation import PreparedAhead
from kafkapy.replication.fetch_session import FetchPartition, FetchResult
from kafkapy.replication.partition_leadership import PartitionLeadership
from kafkapy.replication.replica import Replica
from kafkapy.storage.log_append import AppendOrigin, LogAppendInfo
from kafkapy.storage.log_offset import LogOffsetMetadata

CONSUMER: Final = -1
DEBUGGING_CONSUMER: Final = -2

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class Partition(PartitionLeadership):
    """A hosted partition that is appended to, read and cut at its start."""

    __slots__ = ()

    def append_as_leader(
        self,
        records: memoryview | bytes,
        acks: int,
        time_ms: int,
        now_ms: int,
        produce_version: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        briefly: bool = False,
        ahead: PreparedAhead | None = None,
    ) -> LogAppendInfo:
        """Append a producer's batch; the high watermark may move at once.

        `time_ms` is wall-clock, for the log; `now_ms` monotonic, for who lags.

        Raises:
            ApiError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or what the log refuses.
            LogDirFailure: the log directory failed.
        """
        if not self.is_leader:
            raise self.refused.refuse(records, self._not_leader(), now_ms)
        if acks == -1 and self.remote_replicas and self.is_under_min_isr:
            raise self.refused.refuse(records, self._not_enough_replicas(), now_ms)
        if self.refused:
            self.refused.check(records, self.log.producers.state, now_ms)
        info = self.log.append_as_leader(
            records, self.leader_epoch, time_ms, origin, produce_version, briefly, ahead
        )
        self.maybe_increment_high_watermark(now_ms)
        return info

    def read(
        self,
        wanted: FetchPartition,
        replica_id: int,
        isolation: int,
        max_bytes: int,
        min_one_message: bool,
        now_ms: int,
        *,
        leader_only: bool = True,
        updates_follower: bool = True,
    ) -> FetchResult:
        """Read for a consumer or follower; `leader_only` False lets consumers read a follower's
        committed records (KIP-392). A follower's position is noted unless the same fetch did it.

        Raises:
            ApiError: leadership, epoch fencing or OFFSET_OUT_OF_RANGE.
        """
        if wanted.current_leader_epoch != self.leader_epoch or not self.is_leader:
            self.check_leader(wanted.current_leader_epoch, leader_only)
        log = self.log
        leader_end_offset = log.log_end_offset
        if replica_id >= 0 and replica_id not in self.remote_replicas:
            raise ApiError(
                ErrorCode.UNKNOWN_LEADER_EPOCH
                if wanted.current_leader_epoch >= 0
                else ErrorCode.NOT_LEADER_OR_FOLLOWER
            )
        result = FetchResult(wanted)
        result.diverging_epoch = self._diverging_epoch(wanted)
        result.log_start_offset = log.log_start_offset
        if result.diverging_epoch is not None:
            result.high_watermark = log.high_watermark
            result.last_stable_offset = log.last_stable_offset
            return result
        upper_bound = self.upper_bound(replica_id, isolation)
        if wanted.fetch_offset == upper_bound >= log.log_start_offset:
            # Nothing new, as in most partitions of a long session.
            result.aborted_transactions = [] if isolation == READ_COMMITTED else None
        else:
            info = log.read(
                wanted.fetch_offset, max_bytes, upper_bound, min_one_message,
                isolation == READ_COMMITTED, True,
            )  # fmt: skip
            result.records = info.span
            result.size_bytes = info.size_bytes
            result.aborted_transactions = info.aborted_transactions
        if replica_id >= 0 and updates_follower:
            self.on_follower_fetch(replica_id, wanted, now_ms, leader_end_offset)
        # A follower hears of what its own fetch has committed (Kafka: one fetch later).
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        return result

    def is_continued_by(self, broker_id: int, wanted: FetchPartition) -> bool:
        """Whether a follower goes on where its log, which is this one so far, ends: its row has
        records, or nothing, but no refusal and no other epoch."""
        log = self.log
        return (
            self.is_leader
            and wanted.current_leader_epoch == self.leader_epoch
            and log.log_start_offset <= wanted.fetch_offset <= log.local.log_end_offset
            and broker_id in self.remote_replicas
            and (wanted.last_fetched_epoch == log.epochs.latest or self._is_of_past(wanted))
        )

    def _is_of_past(self, wanted: FetchPartition) -> bool:
        """Whether a follower's log ends in an earlier epoch, and not after that ended here."""
        if wanted.last_fetched_epoch < 0:
            return True
        epoch, end_offset = self.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        return epoch == wanted.last_fetched_epoch and wanted.fetch_offset <= end_offset

    def upper_bound(self, replica_id: int, isolation: int) -> int:
        """The offset that a reader must not see: log end, last stable offset or high watermark."""
        if replica_id != CONSUMER:
            return self.log.log_end_offset
        if isolation == READ_COMMITTED:
            return self.log.last_stable_offset
        return self.log.high_watermark

    def upper_bound_metadata(self, replica_id: int, isolation: int) -> LogOffsetMetadata:
        """The same bound with its place in the files."""
        if replica_id != CONSUMER:
            return self.log.log_end_offset_metadata
        if isolation == READ_COMMITTED:
            return self.log.last_stable_offset_metadata
        return self.log.high_watermark_metadata

    def _diverging_epoch(self, wanted: FetchPartition) -> tuple[int, int] | None:
        """KIP-595's truncate-on-fetch: where the follower's log parts from this one."""
        if wanted.last_fetched_epoch < 0:
            return None
        epoch, end_offset = self.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or wanted.fetch_offset < self.log.log_start_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            return (epoch, end_offset)
        return None

    def read_replicas(self, offset: int) -> list[Replica]:
        """The followers that a consumer may read `offset` from: in sync, and they have it."""
        return [
            replica
            for replica in self.remote_replicas.values()
            if replica.broker_id in self.isr
            and replica.log_start_offset <= offset <= replica.log_end_offset
        ]

    def check_leader(self, current_leader_epoch: int, leader_only: bool = True) -> None:
        """Fence by leader epoch, then, if only the leader will do, by leadership.

        Raises:
            ApiError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER.
        """
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            raise ApiError(
                ErrorCode.FENCED_LEADER_EPOCH
                if current_leader_epoch < self.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        if leader_only and not self.is_leader:
            raise self._not_leader()

    def delete_records(self, offset: int) -> int:
        """Raise the log start offset to `offset` (-1: the high watermark); returns what was asked
        for, which the `low_watermark` reaches when every live replica has followed.

        Raises:
            ApiError: NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, POLICY_VIOLATION.
        """
        if not self.is_leader:
            raise self._not_leader()
        if "delete" not in self.log.config.cleanup_policy:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                "Records of partition"
                f" {self.topic_partition} can not be deleted due to the configured policy",
            )
        target = self.log.high_watermark if offset == -1 else offset
        if target < 0 or target > self.log.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset of {self.topic_partition} to {target}:"
                f" the high watermark is {self.log.high_watermark}",
            )
        self.log.maybe_increment_log_start_offset(target, "client delete records request")
        return target

    def _not_enough_replicas(self) -> ApiError:
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"The size of the current ISR {sorted(self.isr)} is insufficient to satisfy the"
            f" min.isr requirement of {self.effective_min_isr} for partition"
            f" {self.topic_partition}",
        )

    def _not_leader(self) -> ApiError:
        return ApiError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Leader not local for partition {self.topic_partition} on broker {self.local_id}",
        )
