"""The way to whoever is the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint, UpdateMetadataCommand
from kafkapy.controller.events import ControlledShutdown, ControlledShutdownResult, Event
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients
from kafkapy.server.interbroker.node_to_controller import NodeToController, request_own_controller
from tests.harness.scripted.scripted_node import LIMIT_MS, SILENCE, ScriptedNode, in_loop

ASK = ControlledShutdownRequest(broker_id=1)


def tell(metadata: MetadataCache, controller_id: int, *nodes: ScriptedNode) -> None:
    """The metadata has these nodes as brokers 2, 3 ... and this controller."""
    brokers = [
        BrokerInfo(broker_id, (Endpoint("C", "h", 1), Endpoint("I", "127.0.0.1", node.port)))
        for broker_id, node in enumerate(nodes, 2)
    ]
    metadata.apply(UpdateMetadataCommand(controller_id, 1, 1, [], brokers))


def channel(metadata: MetadataCache) -> NodeToController:
    nodes = NodeClients(metadata, "I", "1", request_timeout_ms=LIMIT_MS)
    return NodeToController(metadata, nodes)


def test_who_is_not_known_is_not_asked() -> None:
    metadata = MetadataCache()
    to_controller = channel(metadata)
    with pytest.raises(NodeUnavailable, match="nobody is known to be the controller"):
        to_controller.client()
    metadata.apply(UpdateMetadataCommand(2, 1, 1, [], [BrokerInfo(2, ())]))
    with pytest.raises(NodeUnavailable):
        to_controller.client()
    to_controller.close_others()
    to_controller.close()


def test_the_connection_stays_until_another_is_controller() -> None:
    async def scenario() -> None:
        def fine(request: Any, version: int) -> Any:
            return ControlledShutdownResponse()

        async with ScriptedNode(fine) as two, ScriptedNode(fine) as three:
            metadata = MetadataCache()
            to_controller = channel(metadata)
            tell(metadata, 2, two, three)
            for _ in range(2):
                await to_controller.client().request(ASK, 3)
                tell(metadata, 2, two, three)
            assert (two.connections, three.connections) == (1, 0)
            tell(metadata, 3, two, three)
            await to_controller.client().request(ASK, 3)
            assert (len(two.received_requests()), len(three.received_requests())) == (2, 1)
            to_controller.close()

    in_loop(scenario)


def test_nobody_waits_for_a_controller_of_the_past() -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: SILENCE) as two, ScriptedNode(lambda r, v: 0) as three:
            metadata = MetadataCache()
            to_controller = channel(metadata)
            tell(metadata, 2, two, three)
            waits = asyncio.ensure_future(to_controller.client().request(ASK, 3))
            await two.requests.at_least(1)
            to_controller.close_others()
            assert to_controller.client().is_connected
            tell(metadata, 3, two, three)
            to_controller.close_others()
            with pytest.raises(NodeUnavailable):
                await waits
            to_controller.close()

    in_loop(scenario)


def test_the_own_controller_replies_once_whatever_it_calls_twice() -> None:
    events: list[Event] = []

    async def scenario() -> None:
        asked: Coroutine[Any, Any, ControlledShutdownResult] = request_own_controller(
            events.append, lambda reply: ControlledShutdown(1, 2, reply)
        )
        waits = asyncio.ensure_future(asked)
        await asyncio.sleep(0)
        [event] = events
        assert isinstance(event, ControlledShutdown)
        first = ControlledShutdownResult()
        event.reply(first)
        event.reply(ControlledShutdownResult())
        assert await waits is first

    in_loop(scenario)
