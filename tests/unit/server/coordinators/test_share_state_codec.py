"""Requests for the share coordinator as messages: handlers and codec agree."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import DeliveryState, SharePartitionKey, StateBatch
from kafkapy.coordinator.shares.messages import (
    DeleteState,
    InitializeState,
    ReadState,
    ReadSummary,
    StateRequest,
    StateResult,
    WriteState,
)
from kafkapy.protocol.messages import read_share_group_state as read
from kafkapy.protocol.messages.write_share_group_state import StateBatch as WireBatch
from kafkapy.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from kafkapy.server.coordinators.share_state_codec import (
    from_response,
    read_batches,
    state_batches,
    to_message,
)
from tests.harness.cores.consumer_shell import topic_id

KEY = SharePartitionKey("g", topic_id(1), 2)
BATCHES = (StateBatch(3, 4, DeliveryState.ARCHIVED, 5),)


@pytest.mark.parametrize(
    "request_",
    [
        InitializeState(KEY, 1, 2),
        ReadState(KEY, 3),
        WriteState(KEY, 1, 2, 3, 4, BATCHES),
        DeleteState(KEY),
        ReadSummary(KEY),
    ],
)
def test_a_message_names_the_share_partition(request_: StateRequest) -> None:
    message = to_message(request_)
    [topic] = message.topics  # type: ignore[attr-defined]
    [row] = topic.partitions
    assert (message.group_id, topic.topic_id, row.partition) == KEY  # type: ignore[attr-defined]
    for name in ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"):
        if hasattr(request_, name):
            assert getattr(row, name) == getattr(request_, name)


def test_batches() -> None:
    message = to_message(WriteState(KEY, 1, 2, 3, 4, BATCHES))
    assert isinstance(message, WriteShareGroupStateRequest)
    assert state_batches(message.topics[0].partitions[0].state_batches) == BATCHES


@pytest.mark.parametrize("state", [1, 3, 5, -1, 127])
def test_states_that_are_not_stored(state: int) -> None:
    row = WireBatch(first_offset=0, last_offset=0, delivery_state=state, delivery_count=1)
    with pytest.raises(ApiError) as refusal:
        state_batches([row])
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


def test_an_answer() -> None:
    row = read.PartitionResult(
        partition=2, state_epoch=1, start_offset=3, state_batches=read_batches(BATCHES)
    )
    result = read.ReadStateResult(topic_id=KEY.topic_id, partitions=[row])
    answer = read.ReadShareGroupStateResponse(results=[result])
    assert from_response(answer) == StateResult(state_epoch=1, start_offset=3, batches=BATCHES)
    row.error_code = ErrorCode.FENCED_LEADER_EPOCH
    assert from_response(answer).error is ErrorCode.FENCED_LEADER_EPOCH
