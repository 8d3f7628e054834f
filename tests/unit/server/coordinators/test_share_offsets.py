"""Offsets of a share group are altered when the logs of both coordinators have them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.coordinator.groups.consumer.assignment import TopicIdPartition
from kafkapy.coordinator.groups.share.messages import (
    ShareStatesDeleted,
    ShareStatesResult,
    StateRequest,
)
from kafkapy.coordinator.shares.messages import InitializeState, StateResult
from kafkapy.server.coordinators.share_offsets import ShareOffsets
from kafkapy.server.requests.turns import SliceScheduler
from tests.harness.storage.partitions import TOPIC_ID

EPOCH = 3
AT = TopicIdPartition(TOPIC_ID, 0)


class Coordinators:
    """Answer each step with the result that a test has set."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.begun = StateResult()
        self.noted = ShareStatesResult()
        coordinator = SimpleNamespace(
            alter_share_offsets=ShareStatesResult(state_epoch=EPOCH),
            share_states_altered=self.noted,
            delete_share_offsets=ShareStatesResult(partitions={TOPIC_ID: frozenset({0})}),
            share_states_deleted=self.noted,
        )
        self.groups: Any = SimpleNamespace(coordinator=coordinator, run_internal=self._ask)
        self.persister: Any = SimpleNamespace(send=self._send)

    def _ask(self, answer: Any, request: Any, answered: Callable[[Any], None]) -> None:
        self.steps.append(request)
        answered(answer)

    def _send(self, request: Any, answered: Callable[[Any], None]) -> None:
        self.steps.append(request)
        answered(self.begun)

    @property
    def offsets(self) -> ShareOffsets:
        nothing: Any = None
        return ShareOffsets(self.groups, self.persister, nothing, nothing, SliceScheduler())

    def alter(self) -> StateResult:
        return asyncio.run(self.offsets.alter("g", {AT: 7}))[AT]

    def delete(self) -> ErrorCode:
        return asyncio.run(self.offsets.delete("g", None))[TOPIC_ID]


def test_partitions_that_have_begun_are_noted() -> None:
    coordinators = Coordinators()
    assert coordinators.alter().error is ErrorCode.NONE
    _, begins, noted = coordinators.steps
    assert begins == InitializeState(SharePartitionKey("g", *AT), EPOCH, 7)
    assert noted == StateRequest("g", EPOCH, {TOPIC_ID: frozenset({0})})


@pytest.mark.parametrize(("group_id", "count"), [("g", 1_000), ("g" * 32_000, 9)])
def test_an_alteration_of_many_partitions_does_not_stop_other_clients(
    group_id: str, count: int
) -> None:
    """A request of 33 KB for 100 partitions kept other clients waiting for 1.7 s."""
    coordinators = Coordinators()
    other = "another client is served"

    async def alter() -> None:
        asyncio.get_running_loop().call_soon(lambda: coordinators.steps.append(other))
        offsets = {TopicIdPartition(TOPIC_ID, index): 7 for index in range(count)}
        await coordinators.offsets.alter(group_id, offsets)

    asyncio.run(alter())
    assert coordinators.steps.index(other) < count // 2


def test_what_cannot_be_noted_is_not_altered() -> None:
    coordinators = Coordinators()
    coordinators.noted.error = ErrorCode.NOT_COORDINATOR
    with pytest.raises(ApiError) as raised:
        coordinators.alter()
    assert raised.value.code is ErrorCode.NOT_COORDINATOR


def test_partitions_that_could_not_begin_are_not_noted() -> None:
    coordinators = Coordinators()
    coordinators.begun = StateResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert coordinators.alter().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(coordinators.steps) == 2


def test_a_deletion_that_has_failed_is_not_under_way_any_more() -> None:
    coordinators = Coordinators()
    assert coordinators.delete() is ErrorCode.NONE
    assert coordinators.steps[-1] == ShareStatesDeleted("g", [TOPIC_ID], [])
    coordinators.begun = StateResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert coordinators.delete() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert coordinators.steps[-1] == ShareStatesDeleted("g", [], [TOPIC_ID])
