"""The controller's task: order, expiry, faults and the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kafkapy.common.cluster_state import BrokerInfo
from kafkapy.common.errors import ErrorCode
from kafkapy.controller import events
from kafkapy.controller.config import ControllerConfig
from kafkapy.server.cluster import controller_task
from kafkapy.server.cluster.controller_task import ControllerTask
from tests.harness.cores.ports import CountingRandom, ManualClock
from tests.harness.scripted import admins


class Deaf:
    """A sender to nobody."""

    def add_broker(self, broker: BrokerInfo, broker_epoch: int) -> None:
        return

    def remove_broker(self, broker_id: int) -> None:
        return

    def send_leader_and_isr(self, broker_id: int, command: object) -> None:
        return

    def send_update_metadata(self, broker_id: int, command: object) -> None:
        return

    def send_stop_replica(self, broker_id: int, command: object) -> None:
        return


def in_loop(scenario: Callable[[ControllerTask], Awaitable[None]]) -> None:
    async def run() -> None:
        store = admins.store((1,), controller=False)
        await scenario(ControllerTask(ControllerConfig(1), store, ManualClock(), CountingRandom()))

    asyncio.run(run())


def test_after_start_the_controller_acts_and_after_stop_it_does_not() -> None:
    async def scenario(task: ControllerTask) -> None:
        await task.start(Deaf())
        assert task.controller is not None
        assert task.controller.is_active
        answered = asyncio.get_running_loop().create_future()
        task.submit(events.ElectLeaders(None, events.ElectionType.PREFERRED, answered.set_result))
        assert task.queue_size == 1
        assert await answered == {}
        await task.stop()
        assert not task.controller.is_active
        late: list[object] = []
        task.submit(events.ElectLeaders(None, events.ElectionType.PREFERRED, late.append))
        assert late == [ErrorCode.NOT_CONTROLLER]
        await task.stop()

    in_loop(scenario)


def test_who_waits_for_zookeeper_ends_with_the_session() -> None:
    async def scenario(task: ControllerTask) -> None:
        await task.start(Deaf())
        assert task.controller is not None
        session = asyncio.Event()

        async def stuck(_: events.Event) -> None:
            await session.wait()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(task.controller, "handle", stuck)
            task.submit(events.BrokerChange())
            assert not await task.stop(0)
            session.set()
            assert await task.stop()
        assert await task.stop(0)

    in_loop(scenario)


def test_only_the_acting_controllers_events_are_timed() -> None:
    async def scenario(task: ControllerTask) -> None:
        await task.start(Deaf())
        for event in (events.BrokerChange(), events.BrokerChange(), events.SessionExpired()):
            task.submit(event)
            answered = asyncio.get_running_loop().create_future()
            none = events.ElectionType.PREFERRED
            task.submit(events.ElectLeaders(None, none, answered.set_result))
            await answered
        task.submit(events.BrokerChange())
        await task.stop()
        counts = {name: times.count for name, times in task.event_times.by_name.items()}
        assert (counts["LeaderElection"], counts["ManualLeaderBalance"]) == (2, 2)

    in_loop(scenario)


def test_a_session_that_ends_voids_what_waits() -> None:
    async def scenario(task: ControllerTask) -> None:
        await task.start(Deaf())
        replies: list[object] = []
        task.submit(events.ControlledShutdown(1, -1, replies.append))
        task.submit(events.SessionExpired())
        assert replies == [events.ControlledShutdownResult(ErrorCode.STALE_CONTROLLER_EPOCH)]
        assert task.queue_size == 1
        await task.stop()

    in_loop(scenario)


def test_a_fault_is_fatal_and_said() -> None:
    async def scenario(task: ControllerTask) -> None:
        failed = asyncio.get_running_loop().create_future()
        task.on_fatal = failed.set_result
        await task.start(Deaf())

        def fault(_: object) -> None:
            raise ZeroDivisionError

        task.submit(events.ElectLeaders(None, events.ElectionType.PREFERRED, fault))
        assert isinstance(await failed, ZeroDivisionError)
        await task.stop()

    in_loop(scenario)


def test_unclean_elections_are_tried_as_soon_as_they_are_allowed() -> None:
    async def scenario(task: ControllerTask) -> None:
        await task.start(Deaf())
        for allowed, queued in ((False, 0), (True, 1), (True, 1), (False, 1), (True, 2)):
            task.allow_unclean_elections(allowed)
            assert task.queue_size == queued
            assert task._config.unclean_leader_election_enable is allowed
        await task.stop()

    in_loop(scenario)


def test_rebalance_comes_after_five_seconds_and_then_at_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert controller_task._FIRST_REBALANCE_S == 5.0

    async def scenario(task: ControllerTask) -> None:
        scheduled: list[tuple[float, Callable[[], None]]] = []
        loop = asyncio.get_running_loop()

        def call_later(delay: float, due: Callable[[], None]) -> asyncio.TimerHandle:
            scheduled.append((delay, due))
            return loop.call_at(loop.time() + 1000, due)

        monkeypatch.setattr(loop, "call_later", call_later)
        await task.start(Deaf(), 300.0)
        scheduled[0][1]()
        assert [delay for delay, _ in scheduled] == [5.0, 300.0]
        assert task.queue_size == 1
        await task.stop()

    in_loop(scenario)
