"""Effects that a coordinator returns to its caller: replies, and batches for its log."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from kafkapy.common.errors import ErrorCode
from kafkapy.record.builder import RecordData

REPLICATED: Final = (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
"""The results of an append after the high watermark has passed it."""

Token: TypeAlias = Hashable
"""The caller's identification of a request."""

R = TypeVar("R")


class Producer(NamedTuple):
    """A producer's id and epoch within a transaction."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Append:
    """One batch for a partition of the coordinator's topic.

    The caller appends it (origin COORDINATOR) and reports with `append_completed`; with
    `required_acks` 0 no request waits for that. `leader_epoch` is the one at which the partition
    was loaded. `producer` is set for a batch in that producer's transaction.
    """

    append_id: int
    partition: int
    leader_epoch: int
    records: list[RecordData]
    required_acks: int = -1
    producer: Producer | None = None


@dataclass(slots=True)
class Effects(Generic[R]):
    """Effects for the caller to perform, in order: replies to send and appends to make. R is the
    type of the results.
    """

    replies: list[tuple[Token, R]] = field(default_factory=list)
    appends: list[Append] = field(default_factory=list)
