"""Clients are shown the brokers that they can reach."""

from __future__ import annotations

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.api.cluster_view import ClusterView
from tests.harness.storage.partitions import TOPIC_ID


def update(
    metadata: MetadataCache,
    leaders: dict[str, tuple[int, ...]],
    brokers: tuple[BrokerInfo, ...] = (),
) -> None:
    """New metadata: for each topic the leaders of its partitions, -1 for none, -2 for deleted."""
    rows = [
        UpdateMetadataPartition(topic, TOPIC_ID, index, LeaderAndIsr(leader, 0, (1,), 0, 1), (1,))
        for topic, given in leaders.items()
        for index, leader in enumerate(given)
    ]
    metadata.apply(UpdateMetadataCommand(1, 1, 1, rows, list(brokers)))


def test_clients_are_shown_the_brokers_of_their_listener_in_order() -> None:
    metadata = MetadataCache()
    made = ClusterView("cluster", 1, metadata)
    inside = [Endpoint("INSIDE", f"in{i}", 9093) for i in range(4)]
    outside = Endpoint("OUTSIDE", "out1", 443)
    three, one = BrokerInfo(3, (inside[3],), "r3"), BrokerInfo(1, (inside[1], outside))
    update(metadata, {}, (three, one))
    assert made.nodes("INSIDE") == [(1, "in1", 9093, None), (3, "in3", 9093, "r3")]
    assert made.nodes("OUTSIDE") == [(1, "out1", 443, None)]
    assert made.nodes("INSIDE") is made.nodes("INSIDE")
    update(metadata, {}, (three,))
    assert made.nodes("INSIDE") == [(3, "in3", 9093, "r3")]
    assert made.nodes("OUTSIDE") == []
