"""Connections by broker id follow the metadata."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import BrokerInfo, Endpoint, UpdateMetadataCommand
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients


def tell(metadata: MetadataCache, port: int, version: int) -> None:
    broker = BrokerInfo(2, (Endpoint("I", "127.0.0.1", port),))
    metadata.apply(UpdateMetadataCommand(1, version, 1, [], [broker]))


def test_a_broker_has_one_client_until_it_moves() -> None:
    metadata = MetadataCache()
    tell(metadata, 1001, 1)
    nodes = NodeClients(metadata, "I", "1", request_timeout_ms=1000)
    first = nodes.of(2)
    assert nodes.of(2) is first
    tell(metadata, 1002, 2)
    second = nodes.of(2)
    assert (second.host, second.port) == ("127.0.0.1", 1002)
    assert first is not second
    nodes.close()


def test_all_but_one_are_dropped_and_it_too_if_it_moved() -> None:
    metadata = MetadataCache()
    brokers = [BrokerInfo(n, (Endpoint("I", "127.0.0.1", 1000 + n),)) for n in (2, 3)]
    metadata.apply(UpdateMetadataCommand(1, 1, 1, [], brokers))
    nodes = NodeClients(metadata, "I", "1", request_timeout_ms=1000)
    two, three = nodes.of(2), nodes.of(3)
    nodes.keep_only(2)
    assert nodes.of(2) is two
    assert nodes.of(3) is not three
    tell(metadata, 1005, 2)
    nodes.keep_only(2)
    with pytest.raises(NodeUnavailable, match="closed"):
        two.call(ControlledShutdownRequest(), 3, lambda answer: None)
    nodes.close()


def test_who_is_not_known_is_not_asked() -> None:
    metadata = MetadataCache()
    tell(metadata, 1001, 1)
    with pytest.raises(NodeUnavailable, match="broker 3 is not known"):
        NodeClients(metadata, "I", "1", request_timeout_ms=1000).of(3)
    with pytest.raises(NodeUnavailable, match="broker 2 is not known"):
        NodeClients(metadata, "OTHER", "1", request_timeout_ms=1000).of(2)
