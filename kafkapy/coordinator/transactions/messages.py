"""Requests and results of the transaction coordinator: no wire types, no wire versions.

Names: the verb for a request (`EndTransaction`), `...Result` for its answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Effects, Producer, Token
from kafkapy.coordinator.transactions.state import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
)


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """InitProducerId: become the producer of a transactional id, and fence the previous one.

    `expected` is the caller's present producer id and epoch (KIP-360), which must match.
    `new_producer_id` is an unused id, if the coordinator requested one.
    """

    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    new_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class InitProducerIdResult:
    """The producer id and epoch assigned to the caller."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Add partitions to a transaction; the first ones start it. `client_version` is the transaction
    version of the producer.
    """

    transactional_id: str
    producer: Producer
    partitions: Collection[TopicPartition]
    client_version: int = 0


@dataclass(frozen=True, slots=True)
class VerifyPartitions:
    """Verify for a broker that these partitions are in a producer's transaction (KIP-890)."""

    transactional_id: str
    producer: Producer
    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class PartitionsResult:
    """One error for all partitions, or one for each if they differ."""

    error: ErrorCode = ErrorCode.NONE
    errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict)

    def error_for(self, partition: TopicPartition) -> ErrorCode:
        """The error of one partition."""
        return self.errors.get(partition, self.error)


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """Commit or abort. `client_version` is the transaction version of the producer.

    `new_producer_id` is an unused id, if the coordinator requested one.
    """

    transactional_id: str
    producer: Producer
    commit: bool
    client_version: int = 0
    new_producer_id: int = NO_PRODUCER_ID


NO_PRODUCER: Final = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


@dataclass(frozen=True, slots=True)
class EndTransactionResult:
    """Without an error, the transaction is decided. Its markers follow. `producer` is the producer
    of the next transaction, if the version of the caller bumps its epoch.
    """

    error: ErrorCode = ErrorCode.NONE
    producer: Producer = NO_PRODUCER


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    """DescribeTransactions: describe some transactional ids."""

    transactional_ids: Sequence[str]


class DescribedTransaction(NamedTuple):
    """One transactional id. A `start_ms` of -1 means that it has no transaction."""

    transactional_id: str
    error: ErrorCode = ErrorCode.NONE
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = NO_TIMESTAMP
    producer_id: int = 0
    producer_epoch: int = 0
    partitions: Collection[TopicPartition] = ()


@dataclass(frozen=True, slots=True)
class DescribeTransactionsResult:
    """Results in the order of the request."""

    transactions: list[DescribedTransaction]


@dataclass(frozen=True, slots=True)
class ListTransactions:
    """List all transactions of this coordinator that match each filter. Empty or negative filters
    match all.
    """

    states: Sequence[str] = ()
    producer_ids: Sequence[int] = ()
    longer_than_ms: int = -1


class ListedTransaction(NamedTuple):
    """One transactional id."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class ListTransactionsResult:
    """`unknown_states` has the filters that are not names of states. The matching transactions are
    in pieces. Each piece is made when it is taken, from at most a few hundred ids."""

    error: ErrorCode = ErrorCode.NONE
    unknown_states: list[str] = field(default_factory=list)
    transactions: Iterable[list[ListedTransaction]] = ()


TransactionResult: TypeAlias = (
    InitProducerIdResult
    | PartitionsResult
    | EndTransactionResult
    | DescribeTransactionsResult
    | ListTransactionsResult
)


class Markers(NamedTuple):
    """A decision, and the partitions that need its marker, a control batch in their logs.

    The caller sends it to the leader of each, and reports with `markers_written`.
    `coordinator_epoch` fences previous coordinators. From `transaction_version` 2 on, the epoch of
    `producer` is later than that of the transaction (KIP-890).
    """

    transactional_id: str
    producer: Producer
    commit: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]
    transaction_version: int = 0


@dataclass(slots=True)
class TransactionEffects(Effects[TransactionResult]):
    """Effects with markers to write, and requests to repeat with a new producer id."""

    markers: list[Markers] = field(default_factory=list)
    awaiting_producer_id: list[tuple[Token, InitProducerId | EndTransaction]] = field(
        default_factory=list
    )
