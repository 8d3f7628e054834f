"""The controller's words: endpoints by listener, rows that name their partition."""

from __future__ import annotations

from kafkapy.common.cluster_state import (
    SECURITY_PROTOCOL_IDS,
    BrokerInfo,
    CommandResult,
    Endpoint,
    LeaderAndIsr,
    LeaderAndIsrPartition,
)
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID


def test_a_client_is_told_the_endpoint_of_the_listener_it_came_by() -> None:
    inside = Endpoint("INSIDE", "10.0.0.1", 9093)
    outside = Endpoint("OUTSIDE", "kafka.example", 443, "SSL")
    broker = BrokerInfo(1, (inside, outside))
    assert broker.endpoint("OUTSIDE") == outside
    assert broker.endpoint("INSIDE") == inside
    assert broker.endpoint("outside") is None


def test_a_row_names_its_partition() -> None:
    state = LeaderAndIsr(1, 0, (1,), 0, 1)
    row = LeaderAndIsrPartition("t", ZERO_UUID, 3, state, (1,))
    assert row.topic_partition == TopicPartition("t", 3)


def test_answers_share_nothing() -> None:
    CommandResult().partition_errors[TopicPartition("t", 0)] = CommandResult().error
    assert CommandResult().partition_errors == {}


def test_security_protocols_have_the_ids_of_update_metadata() -> None:
    names = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
    assert {name: i for i, name in enumerate(names)} == SECURITY_PROTOCOL_IDS
