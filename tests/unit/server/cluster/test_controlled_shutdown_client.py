"""A stopping broker asks the controller, wherever it is, and gives up after its retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint, UpdateMetadataCommand
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import ControlledShutdown, ControlledShutdownResult, Event
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.controlled_shutdown import (
    ControlledShutdownResponse,
    RemainingPartition,
)
from kafkapy.server.cluster.controlled_shutdown_client import (
    ControlledShutdownClient,
    ZooKeeperTimeout,
)
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.zk.embedded.memory import MemoryZooKeeper
from kafkapy.zk.stores.fencing import Fence
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.zookeeper import Watch, Znode
from tests.harness.cores.znodes import server
from tests.harness.scripted.scripted_node import (
    DISCONNECT,
    LIMIT_MS,
    SILENCE,
    ScriptedNode,
    in_loop,
)

BROKER_EPOCH = 77
LED = ControlledShutdownResponse(remaining_partitions=[RemainingPartition(topic_name="t")])
REFUSED = ControlledShutdownResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
DONE = ControlledShutdownResponse()


class Silent(MemoryZooKeeper):
    """An ensemble that takes requests and does not answer."""

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        return await asyncio.Event().wait()  # type: ignore[return-value]


class Cluster:
    """Broker 1 wants to stop; the store, and the metadata, say who is the controller."""

    def __init__(self, **settings: str) -> None:
        self.ensemble = server()
        self.client = self.ensemble.connect()
        self.store = ZkStore(self.client)
        self.metadata = MetadataCache()
        self.zookeeper_limit_ms = LIMIT_MS
        self.settings = {
            "controlled.shutdown.retry.backoff.ms": "1",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }

    async def controller_is(self, broker_id: int, port: int = 1) -> Fence:
        await self.store.create_persistent_paths()
        endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", port),)
        registered = ZkStore(self.ensemble.connect())
        await registered.brokers.register(BrokerInfo(broker_id, endpoints), 0)
        return await registered.election.elect(broker_id, 0)

    async def stop(self, submit: Callable[[Event], None] = lambda event: None) -> bool:
        config = KafkaConfig(self.settings)
        client = ControlledShutdownClient(
            1, config, self.store, self.metadata, submit, zookeeper_limit_ms=self.zookeeper_limit_ms
        )
        return await client.run(BROKER_EPOCH)

    def told_of_controller(self, broker_id: int, port: int) -> None:
        """UpdateMetadata said so; ZooKeeper has nothing to say from now on."""
        controller = BrokerInfo(broker_id, (Endpoint("PLAINTEXT", "127.0.0.1", port),))
        self.metadata.apply(UpdateMetadataCommand(broker_id, 1, 1, [], [controller]))
        self.zookeeper_limit_ms = 20
        self.zookeeper_falls_silent()

    def zookeeper_falls_silent(self) -> None:
        self.client.__class__ = Silent


@pytest.mark.parametrize(
    ("answers", "agreed"),
    [
        ([DONE], True),
        ([LED, DONE], True),
        ([DISCONNECT, REFUSED, DONE], True),
        ([LED, LED, LED, DONE], False),
        ([DISCONNECT, DISCONNECT, DISCONNECT, DONE], False),
    ],
)
def test_another_broker_is_asked_until_nothing_is_left_or_three_times(
    answers: list[Any], agreed: bool
) -> None:
    given = iter(answers)

    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: next(given)) as node:
            cluster = Cluster()
            await cluster.controller_is(2, node.port)
            assert await cluster.stop() is agreed
            assert len(node.received_requests()) == min(len(answers), 3)
            header, request = node.requests.items[0]
            assert (header.api_version, header.client_id) == (3, "1")
            assert (request.broker_id, request.broker_epoch) == (1, BROKER_EPOCH)

    in_loop(scenario)


def test_a_controller_that_is_silent_is_not_waited_for_forever() -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: SILENCE) as node:
            limits = {"controller_socket_timeout_ms": "20", "controlled_shutdown_max_retries": "2"}
            cluster = Cluster(**limits)
            await cluster.controller_is(2, node.port)
            assert not await cluster.stop()

    in_loop(scenario)


def test_each_attempt_looks_up_who_is_the_controller_now() -> None:
    cluster = Cluster()

    async def scenario() -> None:
        async def moves(request: Any) -> Any:
            await cluster.store.election.delete_controller(fence)
            await cluster.controller_is(3, second.port)
            return REFUSED

        async with (
            ScriptedNode(lambda r, v: moves(r)) as first,
            ScriptedNode(lambda r, v: DONE) as second,
        ):
            fence = await cluster.controller_is(2, first.port)
            assert await cluster.stop()
            assert (len(first.received_requests()), len(second.received_requests())) == (1, 1)

    in_loop(scenario)


def test_a_controller_that_was_replaced_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.zookeeper_limit_ms = 20

    async def scenario() -> None:
        async def moves(request: Any) -> Any:
            await cluster.store.election.delete_controller(fence)
            await cluster.controller_is(3, second.port)
            return SILENCE

        async with (
            ScriptedNode(lambda r, v: moves(r)) as first,
            ScriptedNode(lambda r, v: DONE) as second,
        ):
            fence = await cluster.controller_is(2, first.port)
            assert await cluster.stop()
            assert (len(first.received_requests()), len(second.received_requests())) == (1, 1)

    in_loop(scenario)


def test_a_controller_that_waits_for_zookeeper_is_not_waited_for() -> None:
    """ZooKeeper answers who is the controller, and nothing after that."""
    cluster = Cluster()
    cluster.zookeeper_limit_ms = 20

    async def scenario() -> None:
        async def loses_zookeeper(request: Any) -> Any:
            cluster.zookeeper_falls_silent()
            return SILENCE

        async with ScriptedNode(lambda r, v: loses_zookeeper(r)) as node:
            await cluster.controller_is(2, node.port)
            with pytest.raises(ZooKeeperTimeout):
                await cluster.stop()

    in_loop(scenario)


def test_an_own_controller_that_waits_for_zookeeper_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.zookeeper_limit_ms = 20

    async def scenario() -> None:
        await cluster.controller_is(1)
        with pytest.raises(ZooKeeperTimeout):
            await cluster.stop(lambda event: cluster.zookeeper_falls_silent())

    in_loop(scenario)


def test_without_a_controller_there_is_nobody_to_agree() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.store.create_persistent_paths()
        assert not await cluster.stop()

    in_loop(scenario)


def test_the_controller_of_this_broker_is_asked_directly() -> None:
    results = [
        ControlledShutdownResult(remaining=[TopicPartition("t", 0)]),
        ControlledShutdownResult(),
    ]

    async def scenario() -> None:
        def submit(event: Event) -> None:
            assert isinstance(event, ControlledShutdown)
            assert (event.broker_id, event.broker_epoch) == (1, BROKER_EPOCH)
            event.reply(results.pop(0))

        cluster = Cluster()
        await cluster.controller_is(1)
        assert await cluster.stop(submit)
        assert results == []

    in_loop(scenario)


def test_an_own_controller_that_does_not_answer_is_given_up() -> None:
    async def scenario() -> None:
        cluster = Cluster(controller_socket_timeout_ms="1")
        await cluster.controller_is(1)
        assert not await cluster.stop()

    in_loop(scenario)


def test_without_zookeeper_the_controller_of_the_metadata_is_asked_once() -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: DONE) as node:
            cluster = Cluster()
            cluster.told_of_controller(2, node.port)
            cluster.zookeeper_limit_ms = 500  # the node has as long
            assert await cluster.stop()
            assert len(node.received_requests()) == 1

    in_loop(scenario)


@pytest.mark.parametrize("answer", [LED, REFUSED, SILENCE, DISCONNECT])
def test_without_zookeeper_nothing_is_tried_twice(answer: Any) -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: answer) as node:
            cluster = Cluster()
            cluster.told_of_controller(2, node.port)
            with pytest.raises(ZooKeeperTimeout, match="ZooKeeper did not answer within 20 ms"):
                await cluster.stop()
            assert len(node.received_requests()) <= 1

    in_loop(scenario)


def test_without_zookeeper_the_own_controller_is_not_asked() -> None:
    async def scenario() -> None:
        asked: list[Event] = []
        cluster = Cluster()
        cluster.told_of_controller(1, 1)
        with pytest.raises(ZooKeeperTimeout):
            await cluster.stop(asked.append)
        assert asked == []

    in_loop(scenario)


def test_a_new_session_in_place_of_an_expired_one_is_waited_for() -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: DONE) as node:
            cluster = Cluster()
            await cluster.controller_is(2, node.port)
            cluster.ensemble.expire(cluster.client.session_id)
            stopping = asyncio.ensure_future(cluster.stop())
            await asyncio.wait([stopping], timeout=0)
            assert not stopping.done()
            cluster.client.reconnect()
            assert await stopping

    in_loop(scenario)
