"""What handlers share: reachable nodes, and what they need of the config."""

from __future__ import annotations

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    LeaderAndIsr,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.services import Services
from tests.support.partitions import TOPIC_ID
from tests.support.ports import ManualClock


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
