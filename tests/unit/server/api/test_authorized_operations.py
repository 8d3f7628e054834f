"""Without an authorizer a client may do all that Kafka's resource types support."""

from __future__ import annotations

import pytest

from kafkapy.server.api.authorized_operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    TOPIC_OPERATIONS,
)

# `AclOperation` by code; 0 to 2 are unknown, any and all.
CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}


@pytest.mark.parametrize(
    ("bits", "operations", "as_kafka_sends_it"),
    [
        (
            TOPIC_OPERATIONS,
            "READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS",
            3576,
        ),
        (GROUP_OPERATIONS, "READ DESCRIBE DELETE", 328),
        (
            CLUSTER_OPERATIONS,
            "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE",
            8096,
        ),
    ],
)
def test_the_bits_are_those_of_acl_entry(
    bits: int, operations: str, as_kafka_sends_it: int
) -> None:
    assert bits == sum(1 << CODES[name] for name in operations.split()) == as_kafka_sends_it
