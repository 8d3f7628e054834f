"""One transactional id: its producer, its transaction, and the transitions between their states.

A transition has two steps, as in Kafka. `prepare_...` computes the next state and marks the
transition as `pending`, which prevents others. `complete` applies it after its record is in the
log; `abandon` drops it if the append failed. Kafka: `TransactionMetadata`.

With transaction version 2 (KIP-890) the end of each transaction assigns the next epoch, or another
producer id if there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
LAST_EPOCH: Final = 2**15 - 1
EPOCH_BUMP_VERSION: Final = 2
"""From this transaction version on, the end of a transaction assigns the next epoch."""


class TransactionState(IntEnum):
    """States, with their bytes in the log."""

    EMPTY = 0
    """No partition was added since InitProducerId."""
    ONGOING = 1
    """Partitions were added."""
    PREPARE_COMMIT = 2
    """The commit is decided, and the markers are being written."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """Every partition has its marker."""
    COMPLETE_ABORT = 5
    DEAD = 6
    """The transactional id has expired, and its tombstone is being appended."""
    PREPARE_EPOCH_FENCE = 7
    """The producer will be fenced and its transaction aborted. Never in the log."""

    @property
    def text(self) -> str:
        """The name in Kafka's tools: `CompleteCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT
DEAD: Final = TransactionState.DEAD
PREPARE_EPOCH_FENCE: Final = TransactionState.PREPARE_EPOCH_FENCE

PREPARED: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
COMPLETE: Final = frozenset({COMPLETE_COMMIT, COMPLETE_ABORT})
IDLE: Final = COMPLETE | {EMPTY}
"""No transaction: the producer may begin one, be replaced, or expire."""

VALID_PREVIOUS_STATES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    EMPTY: IDLE,
    ONGOING: IDLE | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: IDLE | {ONGOING, PREPARE_EPOCH_FENCE},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: IDLE,
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
}
"""The states from which each state may be reached. With version 2 a producer may abort a
transaction without partitions: it may not know whether one was added.
"""


class Transition(NamedTuple):
    """A transition of a transactional id, and its record. Timestamps are wall-clock milliseconds.

    `previous_producer_id` is the one before the transition. `next_producer_id` is set in a decision
    that exhausts the epochs of the producer id: the completion assigns it, with epoch 0.
    """

    state: TransactionState
    producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    client_version: int = 0
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID

    @property
    def next_producer(self) -> Producer:
        """The producer that a decision leaves to its caller."""
        if self.next_producer_id == NO_PRODUCER_ID:
            return Producer(self.producer_id, self.producer_epoch)
        return Producer(self.next_producer_id, 0)


@dataclass(slots=True)
class Transaction:
    """One transactional id.

    `last_producer_id` and `last_producer_epoch` are the previous ones: a producer that repeats its
    InitProducerId with them is the same one. Records v0 do not have them; a load of v1 records
    restores the id, and after a bump the epoch. Once the transaction is decided, `partitions` are
    those that still need a marker. `client_version` is the transaction version of the request that
    caused the last transition of a transaction. `next_producer_id` is that of a decision.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    state: TransactionState = EMPTY
    partitions: set[TopicPartition] = field(default_factory=set)
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    pending: TransactionState | None = None
    has_failed_epoch_fence: bool = False
    client_version: int = 0
    next_producer_id: int = NO_PRODUCER_ID

    @property
    def producer(self) -> Producer:
        """The present producer id and epoch."""
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def has_bumped_epoch(self) -> bool:
        """Whether the end of the last transaction has assigned the present epoch."""
        return self.state in PREPARED | COMPLETE and self.client_version >= EPOCH_BUMP_VERSION

    def is_ended_by(self, producer: Producer) -> bool:
        """Whether this producer, before the bump of its epoch, has ended the last transaction."""
        if not self.has_bumped_epoch:
            return False
        if self.producer_epoch == 0 and self.state in COMPLETE:
            return producer == (self.last_producer_id, LAST_EPOCH - 1)
        return producer == (self.producer_id, self.producer_epoch - 1)

    def is_next_producer(self, producer: Producer) -> bool:
        """Whether the completion of the decided transaction assigns this producer id and epoch."""
        return self.state in PREPARED and producer == (self.next_producer_id, 0)

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no epoch left. The last one is reserved for fencing."""
        return is_epoch_exhausted(self.producer_epoch)

    # first step: prepare

    def prepare_next_epoch(
        self, timeout_ms: int, expected_epoch: int | None, time_ms: int
    ) -> Transition | ErrorCode:
        """Assign the next epoch, or the present one again if the producer repeats a call whose
        answer was lost. PRODUCER_FENCED if another producer has taken over.
        """
        epoch, last = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if self.producer_epoch in (NO_PRODUCER_EPOCH, expected_epoch):
                last = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                epoch, last = self.producer_epoch, self.last_producer_epoch
            else:
                return ErrorCode.PRODUCER_FENCED
        return self._to(
            EMPTY, time_ms, epoch=epoch, last_epoch=last, timeout_ms=timeout_ms, partitions=()
        )

    def prepare_new_producer_id(
        self, producer_id: int, timeout_ms: int, time_ms: int, *, keeps_last_epoch: bool
    ) -> Transition:
        """Assign another producer id, since this one has no epoch left."""
        last = self.producer_epoch if keeps_last_epoch else NO_PRODUCER_EPOCH
        return self._to(
            EMPTY, time_ms, epoch=0, last_epoch=last, timeout_ms=timeout_ms, partitions=(),
            producer_id=producer_id,
        )  # fmt: skip

    def prepare_fence(self) -> Transition:
        """Assign the next epoch, which no producer gets, so that the transaction can be aborted. If
        the append failed, the same epoch is used again. A client that forged the last epoch keeps
        it: there is no higher one, and the transaction must end.
        """
        epoch = self.producer_epoch if self.has_failed_epoch_fence else self.producer_epoch + 1
        epoch = min(epoch, LAST_EPOCH)
        return self._to(
            PREPARE_EPOCH_FENCE, self.last_update_ms, epoch=epoch, last_epoch=NO_PRODUCER_EPOCH
        )

    def prepare_add(
        self, added: Collection[TopicPartition], time_ms: int, client_version: int = 0
    ) -> Transition:
        """Add partitions to the transaction."""
        start_ms = time_ms if self.state in IDLE else self.start_ms
        partitions = self.partitions | set(added)
        return self._to(
            ONGOING, time_ms, partitions=partitions, start_ms=start_ms,
            client_version=client_version,
        )  # fmt: skip

    def prepare_end(self, *, commit: bool, time_ms: int) -> Transition:
        """Decide the transaction: commit or abort."""
        return self._to(PREPARE_COMMIT if commit else PREPARE_ABORT, time_ms, client_version=0)

    def prepare_end_with_bump(
        self, *, commit: bool, time_ms: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> Transition:
        """Decide the transaction, and assign the next epoch, which the markers have. No producer
        gets the last epoch: instead, the completion assigns `next_producer_id`.
        """
        assert (next_producer_id != NO_PRODUCER_ID) == self.is_epoch_exhausted
        return self._to(
            PREPARE_COMMIT if commit else PREPARE_ABORT,
            time_ms,
            epoch=min(self.producer_epoch + 1, LAST_EPOCH),
            last_epoch=self.producer_epoch,
            start_ms=time_ms if self.state in IDLE else self.start_ms,
            client_version=EPOCH_BUMP_VERSION,
            next_producer_id=next_producer_id,
        )

    def prepare_completion(self, time_ms: int) -> Transition:
        """Complete the transaction, after the marker of each partition."""
        state = COMPLETE_COMMIT if self.state is PREPARE_COMMIT else COMPLETE_ABORT
        self.has_failed_epoch_fence = False
        if self.next_producer_id == NO_PRODUCER_ID:
            return self._to(state, time_ms, partitions=())
        return self._to(
            state, time_ms, partitions=(), producer_id=self.next_producer_id, epoch=0
        )  # fmt: skip

    def prepare_dead(self) -> Transition:
        """Remove an expired id."""
        return self._to(DEAD, self.last_update_ms, partitions=())

    def prepare_repetition(self) -> Transition:
        """Write the present state to the log again."""
        assert self.pending is None, f"{self.transactional_id}: {self.pending!r} is under way"
        self.pending = self.state
        return Transition(
            self.state, self.producer_id, self.producer_epoch, self.last_producer_epoch,
            self.timeout_ms, frozenset(self.partitions), self.start_ms, self.last_update_ms,
            self.client_version, self._previous_producer_id, self.next_producer_id,
        )  # fmt: skip

    def begin_fence(self, fence: Transition) -> None:
        """Apply the fencing epoch before the abort."""
        assert self.pending is PREPARE_EPOCH_FENCE
        self.pending = None
        self.producer_epoch = fence.producer_epoch
        self.last_producer_epoch = NO_PRODUCER_EPOCH

    def _to(
        self,
        state: TransactionState,
        time_ms: int,
        *,
        epoch: int | None = None,
        last_epoch: int | None = None,
        timeout_ms: int | None = None,
        partitions: Collection[TopicPartition] | None = None,
        start_ms: int | None = None,
        producer_id: int | None = None,
        client_version: int | None = None,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> Transition:
        assert self.pending is None, f"{self.transactional_id}: {self.pending!r} is under way"
        assert self.state in VALID_PREVIOUS_STATES[state], (
            f"{self.transactional_id}: {self.state!r} to {state!r}"
        )
        self.pending = state
        if state is EMPTY:
            start_ms = NO_TIMESTAMP
        return Transition(
            state,
            self.producer_id if producer_id is None else producer_id,
            self.producer_epoch if epoch is None else epoch,
            self.last_producer_epoch if last_epoch is None else last_epoch,
            self.timeout_ms if timeout_ms is None else timeout_ms,
            frozenset(self.partitions if partitions is None else partitions),
            self.start_ms if start_ms is None else start_ms,
            time_ms,
            self.client_version if client_version is None else client_version,
            self.producer_id,
            next_producer_id,
        )

    @property
    def _previous_producer_id(self) -> int:
        known = self.last_producer_id != NO_PRODUCER_ID
        return self.last_producer_id if known else self.producer_id

    # second step: complete or abandon

    def complete(self, to: Transition) -> None:
        """Apply the pending transition, whose record is in the log."""
        assert self.pending is to.state, f"{self.transactional_id}: {self.pending!r} is under way"
        if to.producer_id != self.producer_id:
            self.last_producer_id = self.producer_id
        self.producer_id = to.producer_id
        self.producer_epoch = to.producer_epoch
        self.last_producer_epoch = to.last_producer_epoch
        self.timeout_ms = to.timeout_ms
        self.partitions = set(to.partitions)
        self.start_ms = to.start_ms
        self.last_update_ms = to.last_update_ms
        self.client_version = to.client_version
        self.next_producer_id = to.next_producer_id
        self.state = to.state
        self.pending = None

    def abandon(self) -> None:
        """Drop the pending transition, whose append failed."""
        self.pending = None


def is_epoch_exhausted(epoch: int) -> bool:
    """Whether no higher epoch may be assigned to a producer."""
    return epoch >= LAST_EPOCH - 1
