"""The properties of Java's consumer, by name. Pure.

A mistyped name would have no effect: with `isolation.levle`, a reader gets aborted records.
"""

from __future__ import annotations

from typing import Final

from kafkapy.client.producer_settings import is_producer_name

CONSUMER_ONLY: Final = frozenset(
    {
        *("allow.auto.create.topics", "auto.commit.interval.ms", "auto.offset.reset"),
        *("check.crcs", "client.rack", "enable.auto.commit", "exclude.internal.topics"),
        *("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.id"),
        *("group.instance.id", "group.protocol", "group.remote.assignor", "heartbeat.interval.ms"),
        *("isolation.level", "key.deserializer", "max.partition.fetch.bytes"),
        *("max.poll.interval.ms", "max.poll.records", "partition.assignment.strategy"),
        *("session.timeout.ms", "value.deserializer"),
    }
)
"""Names of Kafka 3.9's consumer that its producer does not have."""


def is_client_name(name: str) -> bool:
    """Whether Java's consumer or producer has a property of this name: a file may be for both."""
    return name in CONSUMER_ONLY or is_producer_name(name)
