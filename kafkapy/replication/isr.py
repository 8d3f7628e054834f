"""The in-sync replicas of a partition, and their pending change.

A leader never changes its ISR by itself: it proposes a change (AlterPartition, KIP-497), the
controller writes the state znode, and its response commits the change. Until then the *maximal* ISR
counts for acks and the high watermark: an addition at once, a removal only when it is committed.

| state     | event                                   | next                   |
|-----------|-----------------------------------------|------------------------|
| Committed | a follower caught up, or fell behind    | Pending                |
| Pending   | response NONE                           | Committed (its ISR)    |
| Pending   | refused, the rest of the state stands   | Committed (as before)  |
| Pending   | refused, the leader's state is stale    | Pending                |
| any       | LeaderAndIsr                            | Committed (its ISR)    |
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from kafkapy.common.cluster_state import RECOVERED, LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid


class IsrChange(NamedTuple):
    """A proposed ISR, valid for the epochs that the leader has.

    After an unclean election (RECOVERING), the leader's proposal says RECOVERED (KIP-704).
    `isr_epochs` has the broker epoch with which a new member fetched, and -1 for the others. A
    broker that restarts before the controller has the proposal must not become a member by it
    (KIP-903).
    """

    topic_partition: TopicPartition
    topic_id: Uuid
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int = RECOVERED
    isr_epochs: tuple[int, ...] = ()


class ProposalOutcome(Enum):
    """Outcomes of a proposal."""

    COMMITTED = "committed"
    DROPPED = "dropped"
    WAITS_FOR_CONTROLLER = "waits for LeaderAndIsr"
    RETRY = "to be sent again"


_ROLL_BACK_ERRORS: Final = frozenset(
    {ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA}
)
_STALE_STATE_ERRORS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


class InSyncReplicas:
    """Committed members and the pending proposal. `committed` is the controller's latest state."""

    __slots__ = ("committed", "maximal", "pending")

    def __init__(self) -> None:
        self.committed: frozenset[int] = frozenset()
        self.maximal: frozenset[int] = frozenset()
        self.pending: IsrChange | None = None

    def commit(self, isr: tuple[int, ...]) -> None:
        """Commit the controller's state."""
        self.committed = self.maximal = frozenset(isr)
        self.pending = None

    def propose(self, change: IsrChange) -> None:
        """Set the pending change. No other may be pending."""
        assert self.pending is None, (self.pending, change)
        self.pending = change
        self.maximal = self.committed.union(change.isr)

    def handle_response(
        self, change: IsrChange, error: ErrorCode, state: LeaderAndIsr | None, partition_epoch: int
    ) -> ProposalOutcome:
        """Apply the controller's response to `change`. `partition_epoch` is the leader's.

        A response to a proposal that is no longer pending changes nothing.
        """
        if self.pending is not change:
            return ProposalOutcome.DROPPED
        if error is ErrorCode.NONE:
            assert state is not None, change
            stale = (
                state.leader_epoch != change.leader_epoch or state.partition_epoch < partition_epoch
            )
            if stale:
                return ProposalOutcome.WAITS_FOR_CONTROLLER
            self.commit(state.isr)
            return ProposalOutcome.COMMITTED
        if error in _ROLL_BACK_ERRORS:
            self.commit(tuple(self.committed))
            return ProposalOutcome.DROPPED
        return (
            ProposalOutcome.WAITS_FOR_CONTROLLER
            if error in _STALE_STATE_ERRORS
            else ProposalOutcome.RETRY
        )
