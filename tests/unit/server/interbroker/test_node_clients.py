"""Connections by broker id follow the metadata."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint, UpdateMetadataCommand
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients
from tests.harness.scripted.scripted_node import LIMIT_MS, SILENCE, ScriptedNode, in_loop


def tell(metadata: MetadataCache, port: int, version: int) -> None:
    broker = BrokerInfo(2, (Endpoint("I", "127.0.0.1", port),))
    metadata.apply(UpdateMetadataCommand(1, version, 1, [], [broker]))


def test_a_broker_has_one_client_until_it_moves() -> None:
    metadata = MetadataCache()
    tell(metadata, 1001, 1)
    nodes = NodeClients(metadata, "I", "1", request_timeout_ms=1000)
    first = nodes.client_for(2)
    assert nodes.client_for(2) is first
    tell(metadata, 1002, 2)
    second = nodes.client_for(2)
    assert (second.host, second.port) == ("127.0.0.1", 1002)
    assert first is not second
    nodes.close()


def test_all_but_one_are_dropped_and_it_too_if_it_moved() -> None:
    metadata = MetadataCache()
    brokers = [BrokerInfo(n, (Endpoint("I", "127.0.0.1", 1000 + n),)) for n in (2, 3)]
    metadata.apply(UpdateMetadataCommand(1, 1, 1, [], brokers))
    nodes = NodeClients(metadata, "I", "1", request_timeout_ms=1000)
    two, three = nodes.client_for(2), nodes.client_for(3)
    nodes.keep_only(2)
    assert nodes.client_for(2) is two
    assert nodes.client_for(3) is not three
    tell(metadata, 1005, 2)
    nodes.keep_only(2)
    with pytest.raises(NodeUnavailable, match="closed"):
        two.call(ControlledShutdownRequest(), 3, lambda answer: None)
    nodes.close()


def test_whoever_is_refused_at_the_end_may_ask_another_one() -> None:
    """The answer of a request that waits is a refusal, after which the next one is made."""

    async def scenario() -> None:
        async with ScriptedNode(lambda request, version: SILENCE) as node:
            metadata = MetadataCache()
            brokers = [BrokerInfo(n, (Endpoint("I", "127.0.0.1", node.port),)) for n in (2, 3, 4)]
            metadata.apply(UpdateMetadataCommand(1, 1, 1, [], brokers))
            nodes = NodeClients(metadata, "I", "1", request_timeout_ms=LIMIT_MS)
            answers: list[object] = []

            def answered(answer: object) -> None:
                answers.append(answer)
                with pytest.raises(NodeUnavailable, match="closed"):
                    nodes.client_for(4)

            for broker_id in (2, 3):
                nodes.client_for(broker_id).call(ControlledShutdownRequest(), 3, answered)
            nodes.close()
            assert [type(answer) for answer in answers] == [NodeUnavailable, NodeUnavailable]

    in_loop(scenario)


def test_one_client_takes_the_place_of_one_that_moved() -> None:
    """Also where the end of the old one makes somebody ask again."""

    async def scenario() -> None:
        async with ScriptedNode(lambda request, version: SILENCE) as node:
            metadata = MetadataCache()
            tell(metadata, node.port, 1)
            nodes = NodeClients(metadata, "I", "1", request_timeout_ms=LIMIT_MS)
            found: list[object] = []
            old = nodes.client_for(2)
            old.call(
                ControlledShutdownRequest(), 3, lambda answer: found.append(nodes.client_for(2))
            )
            tell(metadata, 1002, 2)
            assert nodes.client_for(2) is nodes.client_for(2)
            assert found == [nodes.client_for(2)]
            nodes.close()

    in_loop(scenario)


def test_who_is_not_known_is_not_asked() -> None:
    metadata = MetadataCache()
    tell(metadata, 1001, 1)
    with pytest.raises(NodeUnavailable, match="broker 3 is not known"):
        NodeClients(metadata, "I", "1", request_timeout_ms=1000).client_for(3)
    with pytest.raises(NodeUnavailable, match="broker 2 is not known"):
        NodeClients(metadata, "OTHER", "1", request_timeout_ms=1000).client_for(2)
