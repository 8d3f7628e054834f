"""What handlers share: reachable nodes, background tasks, and waiting for metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.services import Services
from tests.support.partitions import TOPIC_ID
from tests.support.ports import ManualClock

A_MINUTE_MS = 60_000


def services(**properties: str) -> Services:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return Services(KafkaConfig(given), ManualClock(), MetadataCache())


def update(
    services: Services, leaders: dict[str, tuple[int, ...]], brokers: tuple[BrokerInfo, ...] = ()
) -> None:
    """New metadata: for each topic the leaders of its partitions, -1 for none, -2 for deleted."""
    rows = [
        UpdateMetadataPartition(topic, TOPIC_ID, index, LeaderAndIsr(leader, 0, (1,), 0, 1), (1,))
        for topic, given in leaders.items()
        for index, leader in enumerate(given)
    ]
    services.metadata.apply(UpdateMetadataCommand(1, 1, 1, rows, list(brokers)))
    services.metadata_changed()


def woken(
    services: Services, wait: Callable[[], Awaitable[bool]], *updates: dict[str, tuple[int, ...]]
) -> list[bool]:
    """After each update, whether the wait was over; and last its result."""

    async def scenario() -> list[bool]:
        waiting = asyncio.ensure_future(wait())
        over = []
        for leaders in updates:
            await asyncio.sleep(0)
            update(services, leaders)
            for _ in range(5):
                await asyncio.sleep(0)
            over.append(waiting.done())
        return [*over, await waiting]

    return asyncio.run(scenario())


def test_clients_are_shown_the_brokers_of_their_listener_in_order() -> None:
    made = services()
    inside = [Endpoint("INSIDE", f"in{i}", 9093) for i in range(4)]
    outside = Endpoint("OUTSIDE", "out1", 443)
    three, one = BrokerInfo(3, (inside[3],), "r3"), BrokerInfo(1, (inside[1], outside))
    update(made, {}, (three, one))
    assert made.nodes("INSIDE") == [(1, "in1", 9093, None), (3, "in3", 9093, "r3")]
    assert made.nodes("OUTSIDE") == [(1, "out1", 443, None)]
    assert made.nodes("INSIDE") is made.nodes("INSIDE")
    update(made, {}, (three,))
    assert made.nodes("INSIDE") == [(3, "in3", 9093, "r3")]
    assert made.nodes("OUTSIDE") == []


def test_what_requests_need_is_read_from_the_config_once() -> None:
    made = services(auto_create_topics_enable="false", fetch_max_bytes="2048")
    assert (made.auto_create_topics, made.fetch_max_bytes) == (False, 2048)


def test_topics_are_ready_when_every_partition_has_a_leader() -> None:
    made = services()
    assert woken(
        made,
        lambda: made.topics_ready(["a", "b"], A_MINUTE_MS),
        {"a": (1,)},
        {"b": (1, -1)},
        {"b": (1, 1)},
    ) == [False, False, True, True]


def test_a_topic_that_grows_is_ready_with_its_new_partitions() -> None:
    made = services()
    assert woken(
        made,
        lambda: made.topics_ready(["a"], A_MINUTE_MS, partitions=2),
        {"a": (1,)},
        {"a": (1, 1)},
    ) == [False, True, True]


def test_topics_are_gone_when_none_is_left() -> None:
    made = services()
    update(made, {"a": (1,), "b": (1,)})
    assert woken(
        made,
        lambda: made.topics_gone(["a", "b"], A_MINUTE_MS),
        {"a": (-2,)},
        {"b": (-2,)},
    ) == [False, True, True]


def test_what_holds_already_is_not_waited_for_and_nobody_waits_without_time() -> None:
    made = services()
    update(made, {"a": (1,)})
    assert woken(made, lambda: made.topics_ready(["a"], 0)) == [True]
    assert woken(made, lambda: made.topics_ready(["b"], 0)) == [False]


def test_a_wait_that_is_over_leaves_nothing_behind() -> None:
    made = services()
    assert woken(made, lambda: made.topics_ready(["a"], 1)) == [False]
    assert made._waiters == {}
    update(made, {"a": (1,)})


def test_a_background_fault_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    made = services()

    async def fail() -> None:
        raise ZeroDivisionError("a fault")

    async def scenario() -> None:
        made.spawn(fail())
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    [record] = caplog.records
    assert record.getMessage() == "A background task failed"
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_nothing_runs_on_after_the_broker(caplog: pytest.LogCaptureFixture) -> None:
    made = services()
    ended: list[str] = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def scenario() -> None:
        made.spawn(wait_for_ever())
        await asyncio.sleep(0)
        await made.cancel_tasks()

    asyncio.run(scenario())
    assert ended == ["cancelled"]
    assert caplog.records == []
