"""One replica of one partition on this broker: leader or follower (`kafka.cluster.Partition`).

LeaderAndIsr sets the leader, followers' fetches their positions, and the controller's responses the
in-sync replicas. A leader's high watermark and low watermark follow from these. Produce and fetch
check leadership, epoch and in-sync replicas here, then call the log. Takes `now_ms`, and accesses
nothing but its log.

Invariants of a leader: high watermark <= log end offset; the high watermark never moves back in a
leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkapy.common.cluster_state import RECOVERED, LeaderAndIsr, LeaderAndIsrPartition
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.record.long_preparation import PreparationResult
from kafkapy.replication.fetch_session import FetchPartition, FetchResult
from kafkapy.replication.isr import InSyncReplicas, IsrChange, ProposalOutcome
from kafkapy.replication.refused_batches import RefusedBatches
from kafkapy.replication.replica import Replica
from kafkapy.storage.disk_errors import StorageShortage
from kafkapy.storage.log_append import AppendOrigin, LogAppendInfo
from kafkapy.storage.log_offset import LogOffsetMetadata
from kafkapy.storage.unified_log import UnifiedLog

NO_EPOCH: Final = -1
CONSUMER: Final = -1
DEBUGGING_CONSUMER: Final = -2

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


class Partition:
    """A hosted partition.

    Fixed: `topic_partition`, `log`, `local_id`, `is_live(broker_id)`, and `may_be_replaced()`,
    which is true while this broker may have missed an election. LeaderAndIsr sets the rest.
    `topic_id` is zero until the controller sends it. `is_served` is False forever once the replica
    is deleted or its disk failed: its log must not be used again. `become_follower_count` counts
    the times it became a follower, because the log may be truncated each time.
    """

    __slots__ = (
        "adding_replicas",
        "assigned_replicas",
        "become_follower_count",
        "controller_epoch",
        "in_sync",
        "is_leader",
        "is_live",
        "is_served",
        "lag_max_ms",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "leader_recovery_state",
        "local_id",
        "log",
        "may_be_replaced",
        "partition_epoch",
        "refused_batches",
        "remote_replicas",
        "removing_replicas",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: UnifiedLog,
        local_id: int,
        lag_max_ms: int,
        is_live: Callable[[int], bool] = lambda broker_id: True,
        may_be_replaced: Callable[[], bool] = lambda: False,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.local_id = local_id
        self.lag_max_ms = lag_max_ms
        self.is_live = is_live
        self.may_be_replaced = may_be_replaced
        self.is_served = True
        self.is_leader = False
        self.become_follower_count = 0
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.leader_recovery_state = RECOVERED
        self.partition_epoch = -1
        self.controller_epoch = 0
        self.in_sync = InSyncReplicas()
        self.assigned_replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.remote_replicas: dict[int, Replica] = {}
        self.refused_batches = RefusedBatches()

    def take_out_of_service(self) -> bool:
        """Stop serving the replica for good. Returns whether it led."""
        led = self.is_leader
        self.is_leader = self.is_served = False
        return led

    def make_leader(self, partition_state: LeaderAndIsrPartition, now_ms: int) -> bool:
        """Become leader. Returns whether this begins a new leader epoch.

        The new epoch's start is in the epoch cache before any record of it is appended. After an
        unclean election (RECOVERING) there is nothing to recover: the partition has the content of
        this log. The next AlterPartition reports RECOVERED.

        Raises:
            StorageShortage: no descriptor is left to write the epoch with. Nothing has changed.
        """
        state = partition_state.state
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        if is_new_epoch:
            self.log.check_descriptors()
        # If another broker led in between, the followers may have truncated records of this leader.
        # (Kafka counts their old positions.)
        led_before = self.is_leader and state.leader_epoch == self.leader_epoch + 1
        self._apply_partition_state(partition_state)
        self.is_leader = True
        self.leader_recovery_state = RECOVERED
        if is_new_epoch:
            self.leader_epoch_start_offset = self.log.log_end_offset
            self.log.assign_epoch_start(state.leader_epoch, self.leader_epoch_start_offset)
            for replica in self.remote_replicas.values():
                is_in_sync = replica.broker_id in self.isr
                if led_before:
                    replica.keep_position(now_ms, is_in_sync, self.leader_epoch_start_offset)
                else:
                    replica.reset(now_ms, is_in_sync)
        self.maybe_increment_high_watermark(now_ms)
        return is_new_epoch

    def make_follower(self, partition_state: LeaderAndIsrPartition) -> bool:
        """Become follower. Returns whether this begins a new leader epoch."""
        state = partition_state.state
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self._apply_partition_state(partition_state)
        self.is_leader = False
        self.become_follower_count += 1
        self.leader_recovery_state = state.leader_recovery_state
        self.in_sync.commit(())
        self.remote_replicas = {}
        return is_new_epoch

    def _apply_partition_state(self, partition_state: LeaderAndIsrPartition) -> None:
        state = partition_state.state
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.controller_epoch = state.controller_epoch
        self.in_sync.commit(state.isr)
        self.assigned_replicas = partition_state.replicas
        self.adding_replicas = partition_state.adding_replicas
        self.removing_replicas = partition_state.removing_replicas
        remote = self.remote_replicas
        self.remote_replicas = {
            b: remote.get(b) or Replica(b) for b in partition_state.replicas if b != self.local_id
        }

    @property
    def isr(self) -> frozenset[int]:
        """The committed in-sync replicas, with this one; empty on a follower."""
        return self.in_sync.committed

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but at most the number of replicas."""
        return min(self.log.config.min_insync_replicas, len(self.assigned_replicas) or 1)

    @property
    def is_under_replicated(self) -> bool:
        """Whether this leader's ISR is smaller than its assignment."""
        return self.is_leader and len(self.isr) < len(self.assigned_replicas) - len(
            self.adding_replicas
        )

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_leader and len(self.isr) < self.effective_min_isr

    # the high watermark and the low watermark

    def maybe_increment_high_watermark(self, now_ms: int) -> bool:
        """Advance the high watermark to the lowest log end offset of the replicas that count.
        Returns whether it advanced.

        Only a leader advances it here; a follower gets it from its leader. The replicas that count
        are this one, the ISR, and live, caught-up replicas that may join the ISR (KIP-497). With
        fewer in-sync replicas than the minimum it does not advance.
        """
        if not self.is_leader:
            return False
        log = self.log
        end = log.local.log_end_offset
        before = log.high_watermark
        if before == end:
            return False
        if not self.remote_replicas:
            # The only replica is in sync, and the minimum is at most the number of replicas.
            return end > before and log.update_high_watermark(end) > before
        if len(self.in_sync.committed) < self.effective_min_isr:
            return False
        maximal = self.in_sync.maximal
        for replica in self.remote_replicas.values():
            if replica.log_end_offset < end and (
                replica.broker_id in maximal
                or (
                    replica.is_caught_up(end, now_ms, self.lag_max_ms)
                    and self.is_live(replica.broker_id)
                )
            ):
                end = replica.log_end_offset
        return end > before and log.update_high_watermark(end) > before

    def on_follower_fetch(
        self, broker_id: int, wanted: FetchPartition, now_ms: int, leader_end_offset: int
    ) -> bool:
        """Record a follower's position. Returns whether the high watermark advanced."""
        replica = self.remote_replicas[broker_id]
        replica.on_fetch(
            wanted.fetch_offset, wanted.follower_log_start_offset, now_ms, leader_end_offset
        )
        return self.maybe_increment_high_watermark(now_ms)

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset of the live replicas, or -1 while one is unknown. No replica
        serves records below it.
        """
        starts = (
            replica.log_start_offset
            for replica in self.remote_replicas.values()
            if self.is_live(replica.broker_id)
        )
        return min([self.log.log_start_offset, *starts])

    # changes of the ISR

    def propose_expansion(self, broker_id: int, broker_epoch: int = -1) -> IsrChange | None:
        """Propose to add a follower, if it has caught up with this leader's epoch. It fetched with
        `broker_epoch`; -1 is unknown.

        None while another change is pending.
        """
        replica = self.remote_replicas.get(broker_id)
        if replica is None or not self.is_leader or broker_id in self.in_sync.maximal:
            return None
        reached = max(self.log.high_watermark, self.leader_epoch_start_offset)
        if self.in_sync.pending is not None or replica.log_end_offset < reached:
            return None
        if not self.is_live(broker_id):
            return None
        return self._propose(self.isr | {broker_id}, broker_id, broker_epoch)

    def propose_shrinking(self, now_ms: int) -> IsrChange | None:
        """Propose to remove members that lag for longer than `replica.lag.time.max.ms`."""
        if not self.is_leader or self.in_sync.pending is not None:
            return None
        end = self.log.log_end_offset
        lagging = {
            replica.broker_id
            for replica in self.remote_replicas.values()
            if replica.broker_id in self.isr
            and not replica.is_caught_up(end, now_ms, self.lag_max_ms)
        }
        return self._propose(self.isr - lagging) if lagging else None

    def _propose(self, isr: frozenset[int], joined: int = -1, epoch: int = -1) -> IsrChange:
        ordered = tuple(b for b in self.assigned_replicas if b in isr)
        change = IsrChange(
            self.topic_partition,
            self.topic_id,
            self.leader_epoch,
            self.partition_epoch,
            ordered,
            self.leader_recovery_state,
            tuple(epoch if b == joined else -1 for b in ordered),
        )
        self.in_sync.propose(change)
        return change

    def on_alter_partition_response(
        self, change: IsrChange, error: ErrorCode, state: LeaderAndIsr | None, now_ms: int
    ) -> ProposalOutcome:
        """Apply the controller's response. The caller repeats a proposal if needed."""
        outcome = self.in_sync.handle_response(change, error, state, self.partition_epoch)
        if outcome is ProposalOutcome.COMMITTED:
            assert state is not None
            self.partition_epoch = state.partition_epoch
            self.leader_recovery_state = state.leader_recovery_state
        if outcome in (ProposalOutcome.COMMITTED, ProposalOutcome.DROPPED):
            self.maybe_increment_high_watermark(now_ms)
        return outcome

    # appends and reads

    def append_as_leader(
        self,
        records: memoryview | bytes,
        acks: int,
        time_ms: int,
        now_ms: int,
        produce_version: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        fast_only: bool = False,
        preparation: PreparationResult | None = None,
    ) -> LogAppendInfo:
        """Append a producer's batch. The high watermark may advance at once.

        `time_ms` is wall-clock, for the log; `now_ms` monotonic, for the lag of replicas.

        Raises:
            ApiError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or an error of the log.
            LogDirFailure: the log directory failed.
        """
        if not self.is_leader:
            raise self.refused_batches.refuse(records, self._not_leader(), now_ms)
        if acks == -1 and self.remote_replicas and self.is_under_min_isr:
            raise self.refused_batches.refuse(records, self._not_enough_replicas(), now_ms)
        if self.refused_batches:
            self.refused_batches.check(records, self.log.producers.state, now_ms)
        try:
            info = self.log.append_as_leader(
                records, self.leader_epoch, time_ms, origin, produce_version, fast_only, preparation
            )
        except StorageShortage as shortage:
            raise self.refused_batches.refuse(records, shortage, now_ms) from shortage.__cause__
        except ApiError as error:
            if error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self.may_be_replaced():
                # The missing batches may be in the next leader's log.
                raise self.refused_batches.refuse(
                    records, self._perhaps_not_leader(), now_ms
                ) from error
            raise
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
        """Read for a consumer or follower. Without `leader_only`, consumers may read a follower's
        committed records (KIP-392). Records a follower's position, unless that is done already.

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
        elif wanted.fetch_offset > leader_end_offset and self.may_be_replaced():
            raise self._perhaps_not_leader()  # the next leader's log may contain that offset
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
        # The response has the high watermark that this fetch advanced (Kafka: one fetch later).
        result.high_watermark = log.high_watermark
        result.last_stable_offset = log.last_stable_offset
        return result

    def is_continued_by(self, broker_id: int, wanted: FetchPartition) -> bool:
        """Whether a follower's log matches this one up to the follower's end, so that its next row
        has records or is empty, without an error or a diverging epoch.
        """
        log = self.log
        return (
            self.is_leader
            and wanted.current_leader_epoch == self.leader_epoch
            and log.log_start_offset <= wanted.fetch_offset <= log.local.log_end_offset
            and broker_id in self.remote_replicas
            and (
                wanted.last_fetched_epoch == log.epochs.latest or self._is_in_earlier_epoch(wanted)
            )
        )

    def _is_in_earlier_epoch(self, wanted: FetchPartition) -> bool:
        """Whether a follower's log ends in an earlier epoch, at or before the end of that epoch
        here.
        """
        if wanted.last_fetched_epoch < 0:
            return True
        epoch, end_offset = self.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        return epoch == wanted.last_fetched_epoch and wanted.fetch_offset <= end_offset

    def upper_bound(self, replica_id: int, isolation: int) -> int:
        """The first offset that a reader must not see: log end, last stable offset or high
        watermark.
        """
        if replica_id != CONSUMER:
            return self.log.log_end_offset
        if isolation == READ_COMMITTED:
            return self.log.last_stable_offset
        return self.log.high_watermark

    def upper_bound_metadata(self, replica_id: int, isolation: int) -> LogOffsetMetadata:
        """The upper bound with its position in the files."""
        if replica_id != CONSUMER:
            return self.log.local.end_metadata()
        if isolation == READ_COMMITTED:
            return self.log.offset_metadata(self.log.last_stable_offset)
        return self.log.high_watermark_metadata

    def _diverging_epoch(self, wanted: FetchPartition) -> tuple[int, int] | None:
        """The offset at which the follower's log diverges from this one (truncate on fetch,
        KIP-595).
        """
        if wanted.last_fetched_epoch < 0:
            return None
        epoch, end_offset = self.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or wanted.fetch_offset < self.log.log_start_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
            return (epoch, end_offset)
        return None

    def read_replicas(self, offset: int) -> list[Replica]:
        """The followers that a consumer may read `offset` from: they are in sync, and have it."""
        return [
            replica
            for replica in self.remote_replicas.values()
            if replica.broker_id in self.isr
            and replica.log_start_offset <= offset <= replica.log_end_offset
        ]

    def check_leader(self, current_leader_epoch: int, leader_only: bool = True) -> None:
        """Check the leader epoch, and leadership if only the leader may answer.

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
        """Raise the log start offset to `offset` (-1: the high watermark). Returns that offset; the
        `low_watermark` reaches it when every live replica has deleted as much.

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

    def _perhaps_not_leader(self) -> ApiError:
        return ApiError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"Another broker may lead partition {self.topic_partition}: broker {self.local_id} has"
            " no connection to ZooKeeper, or no LeaderAndIsr since its last registration",
        )
