"""Requests of administrators for one share group, over both coordinators, whose steps overtake each
other: the states at the share coordinator stay those that the group's record names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.coordinator.config import ShareConfig
from kafkapy.coordinator.groups.consumer.assignment import TopicIdPartition, partitions_of
from kafkapy.coordinator.shares.messages import (
    InitializeState,
    ReadState,
    ShareEffects,
    StateRequest,
    StateResult,
)
from kafkapy.coordinator.shares.share_coordinator import ShareCoordinator
from kafkapy.server.coordinators.share_offsets import ShareOffsets
from kafkapy.server.requests.turns import SliceScheduler
from tests.harness.cores.consumer_shell import topic_id
from tests.harness.cores.share_shell import ShareShell

T = topic_id(1)
ALL = [TopicIdPartition(T, index) for index in range(4)]


class World:
    """A group with share partitions and no members. `network` has what is on its way to the share
    coordinator, whose records are replicated at once."""

    def __init__(self) -> None:
        self.shell = ShareShell()
        clock: Any = SimpleNamespace(time_ms=lambda: 1)
        config = ShareConfig(share_coordinator_state_topic_num_partitions=1)
        self.states = ShareCoordinator(config, clock, self.shell.topics)
        self.states.start_loading(0, 0)
        self.states.finish_loading(0, 0)
        self.network: list[tuple[StateRequest, Callable[[StateResult], None]]] = []
        nothing: Any = None
        groups: Any = SimpleNamespace(coordinator=self.shell.coordinator, run_internal=self._ask)
        persister: Any = SimpleNamespace(send=lambda *row: self.network.append(row))
        self.offsets = ShareOffsets(groups, persister, nothing, nothing, SliceScheduler())
        self.member = self.shell.member("a")
        self.begin()
        self.member.beat(-1)

    def _ask(self, method: Any, request: Any, answered: Callable[[Any], None]) -> None:
        answered(self.shell.ask(method, request))

    def begin(self) -> None:
        """Begin what the group requests."""
        for request in self.shell.requests():
            error = ErrorCode.NONE
            for partition in partitions_of(request.partitions):
                key = SharePartitionKey("g", *partition)
                error = self.handle(InitializeState(key, request.state_epoch)).error or error
            done = self.shell.coordinator.share_states_initialized
            self.shell.perform(done(self.shell.now_ms, request, error))

    def handle(self, request: StateRequest) -> StateResult:
        results: list[StateResult] = []

        def perform(effects: ShareEffects) -> None:
            results.extend(result for _, result in effects.replies)
            for append in effects.appends:
                completed = self.states.append_completed
                perform(completed(0, append.append_id, ErrorCode.NONE, append.append_id))

        perform(self.states.handle(0, "token", request))
        [result] = results
        return result

    async def deliver(self, count: int, *, last: bool = False) -> None:
        """Deliver requests: the first ones, or the last ones."""
        rows = self.network[-count:] if last else self.network[:count]
        for row in rows:
            self.network.remove(row)
            row[1](self.handle(row[0]))
        await settle()

    def delete(self) -> Awaitable[ErrorCode]:
        return asyncio.ensure_future(outcome(self.offsets.delete("g", None)))

    def alter(self) -> Awaitable[ErrorCode]:
        return asyncio.ensure_future(outcome(self.offsets.alter("g", dict.fromkeys(ALL, 7))))

    def rejoin(self) -> None:
        self.member.epoch = 0
        self.member.beat()
        self.begin()
        self.member.beat()

    def check(self) -> None:
        """Require states of the share partitions that the group's record names, and no others."""
        assert not self.network
        named = set(partitions_of(self.shell.shares.states.initialized))
        reads = {each: self.handle(ReadState(SharePartitionKey("g", *each), 0)) for each in ALL}
        held = {each for each, result in reads.items() if result.error is ErrorCode.NONE}
        assert held == named


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def outcome(step: Awaitable[object]) -> ErrorCode:
    try:
        await step
    except ApiError as refusal:
        return refusal.code
    return ErrorCode.NONE


async def overtaken(
    world: World,
    begin: Callable[[], Awaitable[object]],
    overtake: Callable[[], Awaitable[object]],
) -> None:
    first = begin()
    await settle()
    second = overtake()
    await settle()
    if len(world.network) > len(ALL):
        await world.deliver(4, last=True)
    await world.deliver(4)
    assert await first is ErrorCode.NONE
    assert await second is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def delete_overtaken_by_alter(world: World) -> None:
    """The last states to come are deleted: no member could fetch any more."""
    await overtaken(world, world.delete, world.alter)


async def alter_overtaken_by_delete(world: World) -> None:
    """States that nobody knows of would fence those of a new group of this name."""
    await overtaken(world, world.alter, world.delete)


async def delete_twice(world: World) -> None:
    """The second one comes when a member has begun the share partitions again."""
    first = world.delete()
    await settle()
    second = world.delete()
    await settle()
    await world.deliver(4)
    world.rejoin()
    await world.deliver(4)
    assert await first is ErrorCode.NONE
    assert await second is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize(
    "scenario", [delete_overtaken_by_alter, alter_overtaken_by_delete, delete_twice]
)
def test_one_request_of_a_group_is_with_the_share_coordinator(
    scenario: Callable[[World], Any],
) -> None:
    world = World()

    async def run() -> None:
        try:
            await scenario(world)
        finally:
            await settle()
            world.check()

    asyncio.run(run())


def test_another_request_may_follow() -> None:
    world = World()

    async def run() -> None:
        for begin in (world.alter, world.delete, world.alter, world.delete):
            done = begin()
            await settle()
            await world.deliver(4)
            assert await done is ErrorCode.NONE
            world.check()

    asyncio.run(run())
