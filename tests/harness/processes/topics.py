"""Topics for tests that talk to a broker through librdkafka."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic

QUIET = {"log_level": 0}


def create_topic(
    servers: str,
    topic: str,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    replication_factor: int = 1,
) -> None:
    """Create a topic and wait for the broker's answer; its error is raised."""
    client = AdminClient({"bootstrap.servers": servers, **QUIET})
    wanted = NewTopic(topic, partitions, replication_factor, config=dict(config or {}))
    client.create_topics([wanted])[topic].result(timeout=30)
