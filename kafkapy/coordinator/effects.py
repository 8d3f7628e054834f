"""What a coordinator's shell is told to do: replies, and batches for the coordinator's log."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from kafkapy.record.builder import RecordData

Token: TypeAlias = Hashable
"""What the shell knows a request by."""

R = TypeVar("R")


class Producer(NamedTuple):
    """Who writes within a transaction."""

    producer_id: int
    producer_epoch: int


@dataclass(slots=True)
class Append:
    """One batch for a partition of the coordinator's topic.

    The shell appends it (origin COORDINATOR) and reports with `append_completed`; with
    `required_acks` 0 nobody waits for that. `leader_epoch`: at which the partition was loaded.
    `producer`: of a batch that is part of that producer's transaction.
    """

    append_id: int
    partition: int
    leader_epoch: int
    records: list[RecordData]
    required_acks: int = -1
    producer: Producer | None = None


@dataclass(slots=True)
class Effects(Generic[R]):
    """What the shell must do now: send the replies and make the appends, in order. R: the
    results."""

    replies: list[tuple[Token, R]] = field(default_factory=list)
    appends: list[Append] = field(default_factory=list)
