"""Requests and results of the share coordinator, each about one share partition: no wire types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafkapy.common.errors import ErrorCode
from kafkapy.common.share_state import (
    UNINITIALIZED_START_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionKey,
    StateBatch,
)
from kafkapy.coordinator.effects import Effects


@dataclass(frozen=True, slots=True)
class InitializeState:
    """Initialize a share partition, or reinitialize it at another offset."""

    key: SharePartitionKey
    state_epoch: int
    start_offset: int = UNINITIALIZED_START_OFFSET


@dataclass(frozen=True, slots=True)
class ReadState:
    """Read the whole state; the reader leads the partition at `leader_epoch`."""

    key: SharePartitionKey
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class WriteState:
    """Store a change."""

    key: SharePartitionKey
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: Sequence[StateBatch] = ()


@dataclass(frozen=True, slots=True)
class DeleteState:
    """Delete the state of a share partition."""

    key: SharePartitionKey


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """Read the state without its batches."""

    key: SharePartitionKey


StateRequest: TypeAlias = InitializeState | ReadState | WriteState | DeleteState | ReadSummary


@dataclass(frozen=True, slots=True)
class StateResult:
    """The result of any of the requests; the state if it was read."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = UNINITIALIZED_START_OFFSET
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: Sequence[StateBatch] = ()


ShareEffects: TypeAlias = Effects[StateResult]
