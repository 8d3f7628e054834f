"""ElectLeaders waits for the metadata, no longer than it may, and refuses in every version."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import ElectionResult, ElectionType, ElectLeaders
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafkapy.server.api import handler_table
from kafkapy.server.api.handlers import elect_leaders
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.requests.background_tasks import BackgroundTasks
from kafkapy.server.requests.turns import ROWS_AT_ONCE, run_now
from tests.harness.cores.areas import area
from tests.harness.cores.ports import ManualClock
from tests.harness.scripted import admins

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
REQUEST = ElectLeadersRequest(
    topic_partitions=[TopicPartitions(topic="t", partitions=[0])], timeout_ms=60_000
)


class Desk:
    """The handler over a broker whose metadata has t-0 and u-0 led by 1."""

    def __init__(self) -> None:
        self.events: list[ElectLeaders] = []
        self.clock = ManualClock()
        self.metadata = admins.metadata(("t", "u"))
        self.waiter = MetadataWaiter(self.metadata)
        controller: Any = SimpleNamespace(
            controller=SimpleNamespace(is_active=True), submit=self.events.append
        )
        areas = area(
            handler_table.controller,
            controller=controller,
            metadata=self.metadata,
            waiter=self.waiter,
            clock=self.clock,
        )
        background = handler_table.in_background(BackgroundTasks(), areas)
        self.handle = partial(background[ApiKey.ELECT_LEADERS], SimpleNamespace(version=2))

    async def ask(self, request: ElectLeadersRequest) -> tuple[asyncio.Future[Any], ElectLeaders]:
        """Send a request; return its future response and the event that the controller received."""
        answered = asyncio.get_running_loop().create_future()
        self.handle(request).when_complete(answered.set_result)
        await asyncio.sleep(0)
        return answered, self.events.pop()


def codes(response: Any) -> dict[tuple[str, int], tuple[int, str | None]]:
    return {
        (topic.topic, row.partition_id): (row.error_code, row.error_message)
        for topic in run_now(response).replica_election_results
        for row in topic.partition_result
    }


def elected(leader: int) -> ElectionResult:
    return ElectionResult(ErrorCode.NONE, None, leader)


def test_what_the_metadata_says_already_is_answered_at_once() -> None:
    async def scenario() -> None:
        answered, event = await Desk().ask(ElectLeadersRequest(election_type=1))
        assert (event.partitions, event.election_type) == (None, ElectionType.UNCLEAN)
        event.reply({T0: elected(1), U0: ElectionResult(ErrorCode.ELECTION_NOT_NEEDED)})
        assert codes(await answered) == {
            ("t", 0): (0, None),
            ("u", 0): (
                ErrorCode.ELECTION_NOT_NEEDED,
                "Leader election not needed for topic partition.",
            ),
        }

    asyncio.run(scenario())


def test_the_rows_of_many_partitions_are_made_a_few_at_a_time() -> None:
    """Those of 75,000 took a tenth of a second."""

    async def scenario() -> None:
        answered, event = await Desk().ask(REQUEST)
        needless = ElectionResult(ErrorCode.ELECTION_NOT_NEEDED)
        event.reply({TopicPartition("t", n): needless for n in range(5000)})
        steps = list(await answered)
        assert len(steps) > 5000 // ROWS_AT_ONCE
        assert max(steps) <= 2 * ROWS_AT_ONCE

    asyncio.run(scenario())


def test_a_new_leader_is_awaited() -> None:
    async def scenario() -> None:
        desk = Desk()
        answered, event = await desk.ask(REQUEST)
        assert event.partitions == [T0]
        event.reply({T0: elected(2)})
        await asyncio.sleep(0)
        assert not answered.done()
        desk.metadata.image = admins.metadata(("t",), leader=2).image
        desk.waiter.wake_waiters()
        assert codes(await answered) == {("t", 0): (0, None)}

    asyncio.run(scenario())


def test_one_that_takes_too_long_is_said() -> None:
    async def scenario() -> None:
        desk = Desk()
        answered, event = await desk.ask(REQUEST)
        desk.clock.now_ms += 60_000
        refused = ElectionResult(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "nobody")
        event.reply({T0: elected(2), U0: refused, TopicPartition("gone", 0): elected(1)})
        timed_out = (ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
        assert codes(await answered) == {
            ("t", 0): timed_out,
            ("u", 0): (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "nobody"),
            ("gone", 0): timed_out,
        }

    asyncio.run(scenario())


def test_a_controller_that_resigns_meanwhile_is_said_on_top_and_in_each_row() -> None:
    async def scenario() -> None:
        answered, event = await Desk().ask(REQUEST)
        event.reply(ErrorCode.NOT_CONTROLLER)
        response = await answered
        assert response.error_code == ErrorCode.NOT_CONTROLLER
        assert [code for code, _ in codes(response).values()] == [ErrorCode.NOT_CONTROLLER]

    asyncio.run(scenario())


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ApiError, match="Unknown election type 7") as refused:
        Desk().handle(ElectLeadersRequest(election_type=7))
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    response = elect_leaders.refuse(ElectLeadersRequest(), refused.value, 2)
    assert (response.error_code, codes(response)) == (ErrorCode.INVALID_REQUEST, {})
