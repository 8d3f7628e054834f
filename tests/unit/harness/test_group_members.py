"""Errors that end a consumer of librdkafka."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from tests.harness.faults.group_members import FENCED, fatal_name


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (KafkaError(KafkaError.FENCED_INSTANCE_ID), FENCED),
        (KafkaError(KafkaError._FATAL, "Fatal error: Broker: Static consumer fenced by"), FENCED),
        (KafkaError(KafkaError._FATAL, "Fatal error: Group authorization failed"), "_FATAL"),
        (KafkaError(KafkaError._TRANSPORT), None),
    ],
)
def test_a_fenced_consumer_is_known_whatever_was_refused(
    error: KafkaError, name: str | None
) -> None:
    """A member whose heartbeat was refused would be waited for: it does not say so by its code."""
    assert fatal_name(error) == name
