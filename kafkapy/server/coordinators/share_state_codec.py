"""Requests to the share coordinator and its results, as messages between brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import DeliveryState, StateBatch
from kafkapy.coordinator.shares.messages import (
    DeleteState,
    InitializeState,
    ReadState,
    StateRequest,
    StateResult,
    WriteState,
)
from kafkapy.protocol.messages import delete_share_group_state as delete
from kafkapy.protocol.messages import initialize_share_group_state as initialize
from kafkapy.protocol.messages import read_share_group_state as read
from kafkapy.protocol.messages import read_share_group_state_summary as summary
from kafkapy.protocol.messages import write_share_group_state as write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkapy.protocol.schema import Message

_STATES: Final = {int(each): each for each in DeliveryState if each is not DeliveryState.ACQUIRED}


def to_message(request: StateRequest) -> Message:
    """The message of a request about one share partition."""
    group_id, topic_id, index = request.key
    if isinstance(request, InitializeState):
        initialized = initialize.PartitionData(
            partition=index, state_epoch=request.state_epoch, start_offset=request.start_offset
        )
        return initialize.InitializeShareGroupStateRequest(
            group_id=group_id,
            topics=[initialize.InitializeStateData(topic_id=topic_id, partitions=[initialized])],
        )
    if isinstance(request, ReadState):
        wanted = read.PartitionData(partition=index, leader_epoch=request.leader_epoch)
        return read.ReadShareGroupStateRequest(
            group_id=group_id, topics=[read.ReadStateData(topic_id=topic_id, partitions=[wanted])]
        )
    if isinstance(request, WriteState):
        written = write.PartitionData(
            partition=index,
            state_epoch=request.state_epoch,
            leader_epoch=request.leader_epoch,
            start_offset=request.start_offset,
            delivery_complete_count=request.delivery_complete_count,
            state_batches=[write.StateBatch(**_fields(batch)) for batch in request.batches],
        )
        return write.WriteShareGroupStateRequest(
            group_id=group_id,
            topics=[write.WriteStateData(topic_id=topic_id, partitions=[written])],
        )
    if isinstance(request, DeleteState):
        deleted = delete.PartitionData(partition=index)
        return delete.DeleteShareGroupStateRequest(
            group_id=group_id,
            topics=[delete.DeleteStateData(topic_id=topic_id, partitions=[deleted])],
        )
    summarized = summary.PartitionData(partition=index)
    return summary.ReadShareGroupStateSummaryRequest(
        group_id=group_id,
        topics=[summary.ReadStateSummaryData(topic_id=topic_id, partitions=[summarized])],
    )


def from_response(answer: Any) -> StateResult:
    """The result in the response to a request about one share partition."""
    row = answer.results[0].partitions[0]
    return StateResult(
        ErrorCode(row.error_code),
        row.error_message,
        getattr(row, "state_epoch", 0),
        getattr(row, "leader_epoch", 0),
        getattr(row, "start_offset", -1),
        getattr(row, "delivery_complete_count", -1),
        state_batches(getattr(row, "state_batches", ())),
    )


def state_batches(rows: Iterable[write.StateBatch | read.StateBatch]) -> tuple[StateBatch, ...]:
    """The batches of a message.

    Raises:
        ApiError: INVALID_REQUEST, a state is unknown, or is never stored.
    """
    found = []
    for row in rows:
        state = _STATES.get(row.delivery_state)
        if state is None:
            message = f"The delivery state {row.delivery_state} is invalid."
            raise ApiError(ErrorCode.INVALID_REQUEST, message)
        found.append(StateBatch(row.first_offset, row.last_offset, state, row.delivery_count))
    return tuple(found)


def read_batches(batches: Iterable[StateBatch]) -> list[read.StateBatch]:
    """The batches of a response to ReadShareGroupState."""
    return [read.StateBatch(**_fields(batch)) for batch in batches]


def _fields(batch: StateBatch) -> dict[str, int]:
    return {
        "first_offset": batch.first,
        "last_offset": batch.last,
        "delivery_state": batch.state,
        "delivery_count": batch.delivery_count,
    }
