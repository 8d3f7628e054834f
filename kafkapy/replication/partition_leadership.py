"""The leader of a partition, its in-sync replicas and high watermark (`kafka.cluster.Partition`).

LeaderAndIsr says who leads; followers' fetches say how far they are; the controller's answers say
who is in sync. From these come the high watermark and the low watermark of a leader.

Invariants of a leader: high watermark <= log end offset; the high watermark never moves back in a
leader epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkapy.common.cluster_state import RECOVERED, LeaderAndIsr, LeaderAndIsrPartition
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.isr import Answered, InSyncReplicas, IsrChange
from kafkapy.replication.refused_batches import RefusedBatches
from kafkapy.replication.replica import Replica
from kafkapy.storage.unified_log import UnifiedLog

NO_EPOCH: Final = -1


class PartitionLeadership:
    """One replica's place in its partition; `partition.Partition` adds what clients do with it.

    Fixed: `topic_partition`, `log`, `local_id`, `is_live(broker_id)`. Set by LeaderAndIsr: the
    rest. `topic_id` is zero until the controller names it; `is_served` is False for good once the
    replica is deleted or its disk failed: its log is not to be touched again.
    """

    __slots__ = (
        "adding_replicas",
        "assigned_replicas",
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
        "partition_epoch",
        "refused",
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
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.local_id = local_id
        self.lag_max_ms = lag_max_ms
        self.is_live = is_live
        self.is_served = True
        self.is_leader = False
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
        self.refused = RefusedBatches()

    def take_out_of_service(self) -> bool:
        """The replica is gone from this broker; whether it led."""
        led = self.is_leader
        self.is_leader = self.is_served = False
        return led

    def make_leader(self, told: LeaderAndIsrPartition, now_ms: int) -> bool:
        """Lead from now on; True if this begins a new leader epoch here.

        The new epoch's start is in the epoch cache before any record of it is appended.
        After an unclean election (RECOVERING) there is nothing to recover: what this log has is
        the partition, which the next AlterPartition says.
        """
        state = told.state
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        led_before = self.is_leader
        self._take_over(told)
        self.is_leader = True
        self.leader_recovery_state = RECOVERED
        if is_new_epoch:
            self.leader_epoch_start_offset = self.log.log_end_offset
            self.log.assign_epoch_start(state.leader_epoch, self.leader_epoch_start_offset)
            for replica in self.remote_replicas.values():
                is_in_sync = replica.broker_id in self.isr
                if led_before:
                    replica.keep(now_ms, is_in_sync, self.leader_epoch_start_offset)
                else:
                    replica.reset(now_ms, is_in_sync)
        self.maybe_increment_high_watermark(now_ms)
        return is_new_epoch

    def make_follower(self, told: LeaderAndIsrPartition) -> bool:
        """Follow from now on; True if this begins a new leader epoch here."""
        state = told.state
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self._take_over(told)
        self.is_leader = False
        self.leader_recovery_state = state.leader_recovery_state
        self.in_sync.commit(())
        self.remote_replicas = {}
        return is_new_epoch

    def _take_over(self, told: LeaderAndIsrPartition) -> None:
        state = told.state
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.controller_epoch = state.controller_epoch
        self.in_sync.commit(state.isr)
        self.assigned_replicas = told.replicas
        self.adding_replicas = told.adding_replicas
        self.removing_replicas = told.removing_replicas
        remote = self.remote_replicas
        self.remote_replicas = {
            b: remote.get(b) or Replica(b) for b in told.replicas if b != self.local_id
        }

    @property
    def isr(self) -> frozenset[int]:
        """The committed in-sync replicas, this one among them; empty on a follower."""
        return self.in_sync.committed

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, but no more than there are replicas."""
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
        """Move the high watermark to the least log end offset that counts; True if it moved.

        A follower's is its leader's to say. What counts (KIP-497): this replica, the ISR, and live
        replicas that are caught up and so may join it. With fewer in sync than the minimum it stays
        where it is.
        """
        if not self.is_leader:
            return False
        log = self.log
        end = log.local.log_end_offset
        before = log.high_watermark
        if before == end:
            return False
        if not self.remote_replicas:
            # The only replica is in sync with itself, and no minimum asks for more.
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
        """Note a follower's position; True if the high watermark moved."""
        replica = self.remote_replicas[broker_id]
        replica.on_fetch(
            wanted.fetch_offset, wanted.follower_log_start_offset, now_ms, leader_end_offset
        )
        return self.maybe_increment_high_watermark(now_ms)

    @property
    def low_watermark(self) -> int:
        """The least log start offset of the live replicas, -1 while one's is not known: below it
        nobody serves records any more."""
        starts = (
            replica.log_start_offset
            for replica in self.remote_replicas.values()
            if self.is_live(replica.broker_id)
        )
        return min([self.log.log_start_offset, *starts])

    # changes of the ISR

    def propose_expansion(self, broker_id: int) -> IsrChange | None:
        """A change that takes a follower in, if it has caught up with this leader's epoch.

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
        return self._propose(self.isr | {broker_id})

    def propose_shrinking(self, now_ms: int) -> IsrChange | None:
        """A change that leaves out members that lag for longer than `replica.lag.time.max.ms`."""
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

    def _propose(self, isr: frozenset[int]) -> IsrChange:
        ordered = tuple(b for b in self.assigned_replicas if b in isr)
        change = IsrChange(
            self.topic_partition,
            self.topic_id,
            self.leader_epoch,
            self.partition_epoch,
            ordered,
            self.leader_recovery_state,
        )
        self.in_sync.propose(change)
        return change

    def on_isr_answer(
        self, change: IsrChange, error: ErrorCode, state: LeaderAndIsr | None, now_ms: int
    ) -> Answered:
        """Take the controller's answer; the caller sends again what is to be sent again."""
        answered = self.in_sync.answered(change, error, state, self.partition_epoch)
        if answered is Answered.COMMITTED:
            assert state is not None
            self.partition_epoch = state.partition_epoch
            self.leader_recovery_state = state.leader_recovery_state
        if answered in (Answered.COMMITTED, Answered.DROPPED):
            self.maybe_increment_high_watermark(now_ms)
        return answered
